# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a node does not advertise its GPUs: what the cluster shows, what usually causes it. Private to the collection."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .labels import DAEMONSET_LABELS

Object = t.Mapping[str, t.Any]


@dataclass(frozen=True)
class PluginPod:
    """A pod of the device plugin and what it left behind."""

    pod: Object
    warnings: t.Sequence[str] = ()
    log: t.Sequence[str] = ()


# What is said in logs, events and states of the device plugin, and what users found to be behind it.
CAUSES: t.Sequence[tuple[tuple[str, ...], str]] = (
    (
        ("no runtime for",),
        "The node's container runtime has no such handler: configure it (role container_toolkit), or restart it.",
    ),
    (
        (
            "No devices found",
            "Incompatible strategy detected",
            "ERROR_LIBRARY_NOT_FOUND",
            "could not load NVML library",
        ),
        "The plugin's container was started without the driver's files:"
        " its pod needs runtimeClassName nvidia, the node a runtime nvidia and a working driver.",
    ),
    (
        ("RM_VERSION_MISMATCH", "river/library version mismatch"),
        "The driver's kernel module and its library have different versions: load the new module, or reboot the node.",
    ),
    (
        ("unresolvable CDI devices",),
        "The node's CDI specification is missing or out of date: restart nvidia-cdi-refresh.service, then the plugin.",
    ),
    (
        ("ErrImagePull", "ImagePullBackOff", "InvalidImageName"),
        "The node cannot pull the image: see kubegpu_registry, and the pull secrets of the namespace.",
    ),
    (
        ("Insufficient Permissions",),
        "MIG devices can only be read with NVIDIA_MIG_MONITOR_DEVICES=all and CAP_SYS_ADMIN.",
    ),
    (
        ("error waiting for MPS daemon",),
        "The MPS daemon of the device plugin does not run on the node, or another one is in its way.",
    ),
    (
        ("specified config",),
        "The node's label nvidia.com/device-plugin.config names a configuration that the plugin's ConfigMap lacks.",
    ),
    (
        ("violates PodSecurity",),
        "The namespace needs the label pod-security.kubernetes.io/enforce=privileged.",
    ),
)


def is_on(pod: Object, node_name: str) -> bool:
    """A pod of a DaemonSet belongs to its node before it is scheduled there."""
    if pod["spec"].get("nodeName"):
        return bool(pod["spec"]["nodeName"] == node_name)
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or []
    fields = [field for term in terms for field in term.get("matchFields") or []]
    return any(field["key"] == "metadata.name" and node_name in field["values"] for field in fields)


def is_ready(node: Object) -> bool:
    ready = _condition(node["status"], "Ready")
    return bool(ready and ready["status"] == "True")


def explain(node: Object | None, plugins: t.Sequence[PluginPod] | None) -> list[str]:
    """Sentences for a person; `plugins` is None when nobody said which pods to look at."""
    if node is None:
        return ["The cluster has no such node (any more)."]
    found = [*_node_troubles(node)]
    if plugins is not None and not plugins:
        found += _why_no_pod(node)
    for plugin in plugins or ():
        found += _pod_troubles(plugin)
    evidence = "\n".join(found)
    return found + [cause for signs, cause in CAUSES if any(sign in evidence for sign in signs)]


def _node_troubles(node: Object) -> t.Iterator[str]:
    if not is_ready(node):
        why = _condition(node["status"], "Ready")
        yield f"The node is not ready: {_because(why) if why else 'its kubelet never said so'}."


def _why_no_pod(node: Object) -> t.Iterator[str]:
    labels = node["metadata"].get("labels") or {}
    differing = [
        f"{key}={value} (the node has {labels.get(key, 'no such label')})"
        for key, value in DAEMONSET_LABELS.items()
        if labels.get(key) != value
    ]
    taints = [_taint(taint) for taint in node["spec"].get("taints") or [] if taint["effect"] != "PreferNoSchedule"]
    yield "No pod of the device plugin is on the node."
    if differing:
        yield f"The plugin's DaemonSet wants the label {', '.join(differing)}."
    if taints:
        yield f"The node has the taints {', '.join(taints)}: the DaemonSet must tolerate them."


def _pod_troubles(plugin: PluginPod) -> t.Iterator[str]:
    name, status = plugin.pod["metadata"]["name"], plugin.pod["status"]
    scheduled = _condition(status, "PodScheduled")
    unscheduled = f": {_because(scheduled)}" if scheduled and scheduled["status"] == "False" else ""
    yield f"The pod {name} is {status.get('phase', 'Unknown')}{unscheduled}."
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        state = container.get("state") or {}
        stopped = (
            state.get("waiting") or (container.get("lastState") or {}).get("terminated") or state.get("terminated")
        )
        if container.get("ready") or not (stopped or container.get("restartCount")):
            continue
        restarts = container.get("restartCount", 0)
        yield f"Its container {container['name']} is not ready: {_because(stopped or {})}; {restarts} restarts so far."
    for warning in plugin.warnings:
        yield f"Event: {warning}"
    if plugin.log:
        yield "Its log ends with:\n" + "\n".join(f"  {line}" for line in plugin.log)


def _condition(status: Object, kind: str) -> Object | None:
    return next((item for item in status.get("conditions") or [] if item["type"] == kind), None)


def _because(state: Object) -> str:
    parts = [str(part).rstrip(".") for part in (state.get("reason"), state.get("message")) if part]
    return ": ".join(parts) or "no reason is given"


def _taint(taint: Object) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"
