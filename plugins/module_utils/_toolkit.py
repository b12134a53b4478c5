# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""The NVIDIA Container Toolkit on this host: its packages, its programs, and the CDI specifications beside it."""

from __future__ import annotations

import os
import re
import shutil
import typing as t

PACKAGES = frozenset(
    {
        "nvidia-container-toolkit",
        "nvidia-container-toolkit-base",
        "nvidia-container-toolkit-operator-extensions",
        "libnvidia-container-tools",
        "libnvidia-container1",
    }
)
BINARIES = ("nvidia-ctk", "nvidia-cdi-hook", "nvidia-container-runtime")

# /usr/local/nvidia/toolkit is where the GPU Operator's toolkit container installs it.
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/nvidia/toolkit"

# Where container runtimes look for CDI specifications. /var/run leads to /run nearly everywhere.
CDI_DIRECTORIES = ("/etc/cdi", "/var/run/cdi", "/run/cdi")


def facts(
    packages: dict[str, str], search_path: str = SEARCH_PATH, cdi_directories: t.Sequence[str] = CDI_DIRECTORIES
) -> dict[str, t.Any]:
    ours = {name: version for name, version in packages.items() if name in PACKAGES}
    found = {name: shutil.which(name, path=search_path) for name in BINARIES}
    return {
        "version": version(ours),
        "packages": ours,
        "binaries": {name: path for name, path in found.items() if path},
        "cdi_specifications": _specifications(cdi_directories),
    }


def version(packages: dict[str, str]) -> str | None:
    """The upstream version: `1.20.2` of a package `1.20.2-1`; `-base` alone has the programs that CDI needs."""
    text = packages.get("nvidia-container-toolkit") or packages.get("nvidia-container-toolkit-base") or ""
    match = re.match(r"(?:\d+:)?(\d+(?:\.\d+)*)", text)
    return match.group(1) if match else None


def _specifications(directories: t.Sequence[str]) -> list[str]:
    distinct = {os.path.realpath(directory): directory for directory in reversed(directories)}
    return sorted(
        path
        for directory in distinct.values()
        for path in (os.path.join(directory, name) for name in _names(directory))
        if path.endswith((".yaml", ".json")) and os.path.isfile(path)
    )


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []
