# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container images of the testbed's pods, in every node's containerd: there is no registry to pull them from."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

from .command import built, say
from .config import SOURCE, Node
from .machines.podman import podman

# Containerd keeps it beside an image: of which file that was made.
LABEL = "kubegpu-testbed.archive"


def archives() -> list[Path]:
    return sorted(built(SOURCE / "images" / "build.sh").glob("*.tar"))


def ensure(node: Node, files: list[Path]) -> None:
    """Imports what the node does not have or has of another file."""
    present = _ctr(node, "list")
    for path in files:
        label = f"{LABEL}={hashlib.sha256(path.read_bytes()).hexdigest()[:32]}"
        if label in present:
            continue
        say(f"importing {path.name} into {node.name}")
        with path.open("rb") as archive:
            podman("exec", "-i", node.name, "ctr", "-n", "k8s.io", "images", "import", "-", stdin=archive)
        for name in _names(path):
            _ctr(node, "label", name, label)


def _ctr(node: Node, *arguments: str) -> str:
    return podman("exec", node.name, "ctr", "--namespace", "k8s.io", "images", *arguments)


def _names(path: Path) -> list[str]:
    with tarfile.open(path) as archive:
        manifest = archive.extractfile("manifest.json")
        assert manifest is not None
        return [name for image in json.load(manifest) for name in image["RepoTags"]]
