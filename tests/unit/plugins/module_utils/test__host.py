# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils import _host

DEBIAN = """PRETTY_NAME="Debian GNU/Linux 13 (trixie)"
NAME="Debian GNU/Linux"
VERSION_ID="13"
VERSION="13 (trixie)"
VERSION_CODENAME=trixie
ID=debian
"""
ROCKY = """NAME="Rocky Linux"
ID="rocky"
ID_LIKE="rhel centos fedora"
VERSION_ID="9.6"
PRETTY_NAME="Rocky Linux 9.6 (Blue Onyx)"
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DEBIAN, ("debian", [], "13", 13, "trixie", "Debian GNU/Linux 13 (trixie)")),
        (ROCKY, ("rocky", ["rhel", "centos", "fedora"], "9.6", 9, None, "Rocky Linux 9.6 (Blue Onyx)")),
        ("ID=arch\nNAME='Arch Linux'\n", ("arch", [], None, None, None, "Arch Linux")),
        ("", ("linux", [], None, None, None, "Linux")),
        ('# comment\nnonsense\nNAME="no end\n', ("linux", [], None, None, None, "no end")),
    ],
)
def test_os_release(text, expected):
    assert tuple(_host.os_release(text).values()) == expected


FIB_TRIE = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.0.0.0/24 2 0 2
        |-- 10.0.0.0
           /24 link UNICAST
        |-- 10.0.0.11
           /32 host LOCAL
        |-- 10.0.0.255
           /32 link BROADCAST
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.1
           /32 host LOCAL
Local:
        |-- 10.0.0.11
           /32 host LOCAL
        |-- 192.168.7.1
           /32 host LOCAL
"""
IF_INET6 = """00000000000000000000000000000001 01 80 10 80       lo
fd00000000000000000000000000000b 02 40 00 80     eth0
fe80000000000000505400fffe123456 02 40 20 80     eth0
"""


def test_addresses():
    assert _host.addresses(FIB_TRIE, IF_INET6) == ["10.0.0.11", "192.168.7.1", "fd00::b"]


def test_addresses_of_garbage():
    assert _host.addresses("|--\n/32 host", "x\n" * 3 + "g" * 32) == []


def test_a_host(tmp_path):
    files = {
        "etc/machine-id": "0c3f2f6fd3e34dc6a1b3b6f0e7a0a0aa\n",
        "sys/class/dmi/id/product_uuid": "4C4C4544-0051-3610-8052-B4C04F4E3733\n",
        "usr/lib/os-release": DEBIAN,
        "proc/net/fib_trie": FIB_TRIE,
        "proc/12/comm": "k3s-server\n",
        _host.SECURE_BOOT: b"\x06\x00\x00\x00\x01",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(text if isinstance(text, bytes) else text.encode())
    found = _host.facts(str(tmp_path))
    assert found["machine_id"] == "0c3f2f6fd3e34dc6a1b3b6f0e7a0a0aa"
    assert found["system_uuid"] == "4c4c4544-0051-3610-8052-b4c04f4e3733"
    assert found["os"]["id"] == "debian"
    assert found["addresses"] == ["10.0.0.11", "192.168.7.1"]
    assert found["secure_boot"] is True
    assert found["kubelet_running"] is True


def test_a_host_that_tells_nothing(tmp_path):
    found = _host.facts(str(tmp_path))
    assert (found["machine_id"], found["system_uuid"], found["secure_boot"]) == (None, None, None)
    assert (found["addresses"], found["kubelet_running"]) == ([], False)


@pytest.mark.parametrize(("data", "expected"), [(b"\x06\0\0\0\0", False), (b"\x06\0\0\0\x01", True), (b"", None)])
def test_secure_boot(tmp_path, data, expected):
    path = tmp_path / _host.SECURE_BOOT
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    assert _host.facts(str(tmp_path))["secure_boot"] is expected
