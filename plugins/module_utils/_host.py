# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Facts about the host that matter to GPUs and to its identity as a Kubernetes node; no process is started."""

from __future__ import annotations

import os
import platform
import re
import shlex
import socket
import typing as t

from . import _python
from ._files import content, first_line
from ._processes import running

# Python modules of the distribution that Ansible's modules need, and parsers that ours can use.
PYTHON_MODULES = ["apt", "apt_pkg", "debian", "dnf", "libdnf5", "pynvml", "rpm", "tomli", "tomllib", "yaml"]

# Whatever carries the kubelet: itself, or the distribution that has it inside (kubelite is MicroK8s).
KUBELETS = frozenset({"kubelet", "k3s", "k3s-server", "k3s-agent", "rke2", "k0s", "kubelite"})

SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


def facts(root: str = "/") -> dict[str, t.Any]:
    def path(name: str) -> str:
        return os.path.join(root, name)

    system_uuid = first_line(path("sys/class/dmi/id/product_uuid"))
    return {
        "machine_id": first_line(path("etc/machine-id")) or first_line(path("var/lib/dbus/machine-id")),
        "system_uuid": system_uuid.lower() if system_uuid else None,
        "hostname": platform.node(),
        "addresses": addresses(content(path("proc/net/fib_trie")) or "", content(path("proc/net/if_inet6")) or ""),
        "kernel": platform.release(),
        "os": os_release(content(path("etc/os-release")) or content(path("usr/lib/os-release")) or ""),
        "architecture": platform.machine(),
        "secure_boot": _secure_boot(path(SECURE_BOOT)),
        "python": {"version": platform.python_version(), "modules": _python.importable(PYTHON_MODULES)},
        "kubelet_running": running(KUBELETS, path("proc")),
    }


def os_release(text: str) -> dict[str, t.Any]:
    values = {}
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and not key.startswith("#"):
            values[key] = _unquoted(value)
    version_id = values.get("VERSION_ID") or None
    major = re.match(r"\d+", version_id or "")
    return {
        "id": values.get("ID", "linux"),
        "id_like": values.get("ID_LIKE", "").split(),
        "version_id": version_id,
        "major": int(major.group()) if major else None,
        "codename": values.get("VERSION_CODENAME") or None,
        "name": values.get("PRETTY_NAME") or values.get("NAME", "Linux"),
    }


def addresses(fib_trie: str, if_inet6: str) -> list[str]:
    """The host's own addresses from the kernel's tables: IPv4 first, without loopback and link-local ones."""
    own: dict[str, None] = {}
    leaf = ""
    for line in fib_trie.splitlines():
        words = line.split()
        if words[:1] == ["|--"]:
            leaf = words[-1]
        elif words == ["/32", "host", "LOCAL"] and not leaf.startswith(("127.", "169.254.")):
            own[leaf] = None
    # Address, interface number, prefix length, scope (00 is global), flags, interface.
    for digits in re.findall(r"^([0-9a-f]{32}) \w+ \w+ 00 ", if_inet6, re.MULTILINE):
        own[socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))] = None
    return list(own)


def _unquoted(value: str) -> str:
    try:
        return " ".join(shlex.split(value))
    except ValueError:  # an unbalanced quote
        return value.strip("\"'")


def _secure_boot(path: str) -> bool | None:
    """The last byte of the firmware's variable (four bytes of attributes come first); None without EFI."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return None
    return data[-1] == 1 if data else None
