# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Is a node in service: work that uses its GPUs is on it, or may come at any time. Private to the collection."""

from __future__ import annotations

import typing as t

from .identity import Node, node_name
from .resources import advertised_resources, describe, of_device_plugin

Pod = t.Mapping[str, t.Any]

ENDED = ("Succeeded", "Failed")
NAMED_PODS = 5
"""So many are named in a sentence; a node may have hundreds."""


def state_of(node: Node, pods: t.Iterable[Pod]) -> dict[str, t.Any]:
    """What matters to somebody who wants to disturb the GPUs of this node; `pods` are those on it."""
    gpu_pods = sorted(_pod_name(pod) for pod in pods if _uses_gpus(pod))
    schedulable = not node.get("spec", {}).get("unschedulable")
    allocatable = advertised_resources(node)
    offered = {resource: amount for resource, amount in allocatable.items() if amount != 0}
    reasons = []
    if schedulable and offered:
        reasons.append(f"schedulable with {describe(offered)}")
    if gpu_pods:
        reasons.append(f"runs GPU pods {_named(gpu_pods)}")
    return {
        "node": node_name(node),
        "schedulable": schedulable,
        "in_service": bool(reasons),
        "reasons": reasons,
        "gpu_pods": gpu_pods,
        "labels": {
            key: value
            for key, value in (node["metadata"].get("labels") or {}).items()
            if key.startswith(("nvidia.com/", "kubegpu.io/"))
        },
        "allocatable": allocatable,
    }


def _uses_gpus(pod: Pod) -> bool:
    """It has not ended, and one of its containers was given resources of the device plugin, or will be."""
    if pod.get("status", {}).get("phase") in ENDED:
        return False
    spec = pod["spec"]
    for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
        resources = container.get("resources") or {}
        asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
        if any(amount != 0 for amount in of_device_plugin(asked).values()):
            return True
    return False


def _pod_name(pod: Pod) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _named(pods: t.Sequence[str]) -> str:
    more = len(pods) - NAMED_PODS
    return ", ".join(pods[:NAMED_PODS]) + (f" and {more} more" if more > 0 else "")
