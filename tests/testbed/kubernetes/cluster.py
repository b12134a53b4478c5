# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the testbed itself asks of the cluster."""

from __future__ import annotations

import sys
from pathlib import Path

from ..command import TestbedError, run, say
from ..config import Node
from ..machines import machine
from .control_plane import KUBECONFIG


def kubectl(*arguments: str) -> str:
    return run(Path(sys.executable).with_name("kubectl"), "--kubeconfig", KUBECONFIG, *arguments)


def remove_node(node: Node) -> None:
    """Forgets the node and its pods; the machine must be off, or its kubelet registers it again."""
    kubectl("delete", "node", node.name, "--ignore-not-found", "--wait=false")
    kubectl(
        *("delete", "pods", "--all-namespaces", f"--field-selector=spec.nodeName={node.name}"),
        *("--force", "--grace-period=0", "--ignore-not-found", "--wait=false"),
    )


def wait_until_ready(nodes: list[Node]) -> None:
    """Until the kubelets of the machines that run now (not of an earlier boot) say so."""
    for node in nodes:
        kubelet_started = "jsonpath={.status.nodeInfo.bootID}=" + machine.boot_id(node)
        try:
            for condition in ("create", kubelet_started, "condition=Ready"):
                kubectl("wait", f"node/{node.name}", f"--for={condition}", "--timeout=120s")
        except TestbedError as error:
            hint = f"See `podman exec {node.name} journalctl -u kubelet -u containerd`."
            raise TestbedError(f"{node.name} does not become ready. {hint}\n{error}") from error
    say(f"nodes ready: {', '.join(node.name for node in nodes)}")
