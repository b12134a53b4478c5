#!/usr/bin/env python3
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packs a directory as a container image of one layer (docker-archive), the same bytes for the same input.

Usage: archive.py ROOT OUTPUT.tar NAME:TAG [--env NAME=VALUE]... -- ENTRYPOINT...
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import tarfile
from pathlib import Path


def anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """The file without who built it when, and with what umask."""
    info.uid = info.gid = info.mtime = 0
    info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
    info.uname = info.gname = ""
    return info


def layer(root: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in sorted(root.rglob("*")):
            tar.add(path, arcname=str(path.relative_to(root)), recursive=False, filter=anonymous)
    return buffer.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description="Packs a directory as a container image.")
    parser.add_argument("root", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("name")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("entrypoint", nargs="+")
    arguments = parser.parse_args()

    content = layer(arguments.root)
    digest = hashlib.sha256(content).hexdigest()
    image = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": arguments.entrypoint, "Env": ["PATH=/usr/bin:/bin", *arguments.env]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    config = json.dumps(image, sort_keys=True).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    layer_name = f"{digest}/layer.tar"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [arguments.name], "Layers": [layer_name]}]).encode()
    with tarfile.open(arguments.output, "w") as tar:
        for name, data in ((config_name, config), (layer_name, content), ("manifest.json", manifest)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


if __name__ == "__main__":
    main()
