# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Is a node's kubelet new enough. Private to the collection."""

from __future__ import annotations

import re
import typing as t

from .._errors import KubegpuError
from .identity import Node, node_name

Version = tuple[int, ...]

# v1.31.4, and what distributions add to it: v1.31.4+k3s1, v1.31.4-gke.1200
_VERSION = re.compile(r"v?(\d+(?:\.\d+){1,2})(?![\d.])")


def minimum_of(given: t.Any) -> Version:
    version = _parsed(given) if isinstance(given, str) and re.fullmatch(r"[\d.]+", given) else None
    if version is None:
        raise KubegpuError(
            f"minimum_kubelet is {given!r} and must be a version such as '1.31': put it in quotes,"
            " because YAML reads 1.30 as the number 1.3."
        )
    return version


def too_old(node: Node, minimum: Version) -> str | None:
    """What to tell about a node whose kubelet is older than that."""
    found = node.get("status", {}).get("nodeInfo", {}).get("kubeletVersion") or "of unknown version"
    version = _parsed(found)
    if version is not None and version[: len(minimum)] >= minimum:
        return None
    needed = ".".join(map(str, minimum))
    return (
        f"the kubelet of its node {node_name(node)} is {found}, and {needed} or newer is needed:"
        " GPUs reach containers as CDI devices, which older ones do not reliably pass on to the container runtime."
        " Upgrade the kubelet."
    )


def _parsed(text: str) -> Version | None:
    match = _VERSION.match(text)
    return tuple(map(int, match[1].split("."))) if match else None
