# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node's kubelet needs to join the cluster. The unit is part of the node's image."""

from __future__ import annotations

import shutil
from pathlib import Path

from ..config import SOURCE, Node
from . import kubeconfig, pki


def write_settings(root: Path, node: Node) -> None:
    """Writes /etc/kubernetes into the tree of files that a new node gets."""
    certificate, key = pki.issue(
        f"kubelet-{node.name}",
        user=f"system:node:{node.name}",
        group="system:nodes",
        addresses=(node.name, node.address),
    )
    target = root / "etc/kubernetes"
    (target / "pki").mkdir(parents=True)
    shutil.copy(SOURCE / "kubernetes" / "kubelet.yaml", target)
    shutil.copy(pki.CA, target / "pki/ca.crt")
    shutil.copy(certificate, target / "pki/kubelet.crt")
    shutil.copy(key, target / "pki/kubelet.key")
    kubeconfig.write(target / "kubelet.kubeconfig", certificate, key)
