# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Is a node in service: work that uses its GPUs is on it, or may come at any time. Private to the collection."""

from __future__ import annotations

import typing as t

from .identity import Node, node_name
from .node_patch import is_cordoned
from .pods import Pod, asks_for_gpus, has_ended, named, pod_name
from .resources import advertised_resources, describe

OURS = "kubegpu.io/"
"""The prefix of our labels and annotations."""


def state_of(node: Node, pods: t.Iterable[Pod]) -> dict[str, t.Any]:
    """What matters to somebody who wants to disturb the GPUs of this node; `pods` are those on it."""
    gpu_pods = sorted(pod_name(pod) for pod in pods if asks_for_gpus(pod) and not has_ended(pod))
    cordoned = is_cordoned(node)
    allocatable = advertised_resources(node)
    offered = {resource: amount for resource, amount in allocatable.items() if amount != 0}
    reasons = []
    if offered and not cordoned:
        reasons.append(f"schedulable with {describe(offered)}")
    if gpu_pods:
        reasons.append(f"runs GPU pods {named(gpu_pods)}")
    return {
        "node": node_name(node),
        "schedulable": not cordoned,
        "cordoned": cordoned,
        "in_service": bool(reasons),
        "reasons": reasons,
        "gpu_pods": gpu_pods,
        "labels": _beginning(node["metadata"].get("labels"), "nvidia.com/", OURS),
        "annotations": _beginning(node["metadata"].get("annotations"), OURS),
        "allocatable": allocatable,
    }


def _beginning(items: t.Mapping[str, str] | None, *prefixes: str) -> dict[str, str]:
    return {key: value for key, value in (items or {}).items() if key.startswith(prefixes)}
