# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client's configuration for the cluster, in one file without references to others."""

from __future__ import annotations

import base64
from pathlib import Path

import yaml

from ..config import API
from . import pki


def write(path: Path, certificate: Path, key: Path) -> Path:
    user = {"client-certificate-data": _encoded(certificate), "client-key-data": _encoded(key)}
    cluster = {"server": API, "certificate-authority-data": _encoded(pki.CA)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "testbed", "cluster": cluster}],
        "users": [{"name": "testbed", "user": user}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "testbed"}}],
        "current-context": "testbed",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
