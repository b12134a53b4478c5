# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods as somebody sees them who wants their node's GPUs. Private to the collection."""

from __future__ import annotations

import typing as t

from .resources import of_device_plugin

Pod = t.Mapping[str, t.Any]

RUNTIME_CLASSES = ("nvidia", "nvidia-cdi", "nvidia-legacy")
"""What this collection, NVIDIA's GPU Operator and the toolkit name their runtimes."""
MIRROR = "kubernetes.io/config.mirror"
"""The kubelet's own mark on what stands in the API for a pod that it runs from a file."""
NAMED_PODS = 5
"""So many are named in a sentence; a node may have hundreds."""


def pod_name(pod: Pod) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def named(pods: t.Sequence[str]) -> str:
    more = len(pods) - NAMED_PODS
    return ", ".join(pods[:NAMED_PODS]) + (f" and {more} more" if more > 0 else "")


def has_ended(pod: Pod) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def is_moved_by_eviction(pod: Pod) -> bool:
    """Those of DaemonSets and of the kubelet itself come back at once, whatever the node's state."""
    owner = controller_of(pod)
    of_a_daemon_set = bool(owner and owner["kind"] == "DaemonSet")
    return not of_a_daemon_set and MIRROR not in (pod["metadata"].get("annotations") or {})


def asks_for_gpus(pod: Pod) -> bool:
    """One of its containers was given resources of the device plugin, or will be."""
    spec = pod["spec"]
    for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
        resources = container.get("resources") or {}
        asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
        if any(amount != 0 for amount in of_device_plugin(asked).values()):
            return True
    return False


def uses_gpus(pod: Pod) -> bool:
    """It asks for GPUs, or may have them all the same.

    Any claim counts: whether it is of a device class of NVIDIA's takes reading claims, templates and classes, and a
    pod that is evicted without need is a smaller harm than one that loses its GPU while it works.
    """
    spec = pod["spec"]
    claims = spec.get("resourceClaims")
    return asks_for_gpus(pod) or bool(claims) or spec.get("runtimeClassName") in RUNTIME_CLASSES


def controller_of(pod: Pod) -> Pod | None:
    """The reference to whoever makes the pod anew."""
    owners = pod["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def owner_of(pod: Pod) -> str | None:
    """Its controller by kind and name, and the Deployment instead of one of its ReplicaSets."""
    owner = controller_of(pod)
    if not owner:
        return None
    kind, name = owner["kind"], owner["name"]
    template = (pod["metadata"].get("labels") or {}).get("pod-template-hash")
    if kind == "ReplicaSet" and template and name.endswith(f"-{template}"):
        kind, name = "Deployment", name[: -len(template) - 1]
    return f"{kind} {name}"
