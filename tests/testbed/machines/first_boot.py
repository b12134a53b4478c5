# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that a machine takes over when it boots for the first time, as cloud-init would bring them."""

from __future__ import annotations

import json
import shutil

from ..config import Node
from ..kubernetes import kubelet
from . import apt, ssh


def write(node: Node, codename: str) -> None:
    root = node.first_boot
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    apt.write_settings(root, codename)
    kubelet.write_settings(root, node)

    keys = root / "home" / ssh.USER / ".ssh" / "authorized_keys"
    keys.parent.mkdir(parents=True)
    keys.write_text(ssh.public_key())

    pod_network = root / "etc/cni/net.d/10-pods.conflist"
    pod_network.parent.mkdir(parents=True)
    pod_network.write_text(json.dumps(_pod_network(node.pod_network), indent=2))


def _pod_network(subnet: str) -> dict[str, object]:
    """A bridge for the node's pods; what leaves it has the node's address. Pods of two nodes have no route."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": True,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": subnet}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    return {
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}],
    }
