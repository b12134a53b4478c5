# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a node does not advertise its GPUs: what the cluster shows, what usually causes it. Private to the collection."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .daemon_set import Object, Rollout, condition, is_ending, is_ready, node_of

SHOWN_LOG_LINES = 8


@dataclass(frozen=True)
class PluginPod:
    """A pod of the device plugin on a node, and what it left behind."""

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
        " its pod needs runtimeClassName nvidia, the node a runtime nvidia and a working driver."
        " Or it runs since before the node's MIG instances were made, and does not notice such a change: restart it.",
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
        "The image cannot be pulled: see kubegpu_registry, and the pull secrets of the namespace.",
    ),
    (
        ("Insufficient Permissions",),
        "MIG devices can only be read with NVIDIA_MIG_MONITOR_DEVICES=all and CAP_SYS_ADMIN.",
    ),
    (
        ("invalid spec, no devices",),
        "When the plugin was started, all GPUs of the node were in MIG mode without a MIG device, and so it ended:"
        " make instances, or delete its pod if they are there now.",
    ),
    (
        ("does not match any resource patterns",),
        "With the MIG strategy mixed the plugin wants one compute instance of full size in each GPU instance.",
    ),
    (
        (
            "same migEnabled value",
            "has no MIG devices configured",
            "more than one MIG device type present",
        ),
        "The MIG strategy single wants all GPUs of a node in MIG mode with devices of one profile:"
        " change the layout, or use the strategy mixed.",
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


def explain(
    node: Object | None, plugins: t.Sequence[PluginPod], rollout: Rollout | None, *, must_be_away: bool = False
) -> list[str]:
    """Sentences for a person; `rollout` is None when nobody said which DaemonSet to look at.

    `must_be_away`: no pod of the DaemonSet should be on the node, rather than one that works.
    """
    if node is None:
        return ["The cluster has no such node (any more)."]
    found = [*_node_troubles(node)]
    said: list[str] = []
    if rollout and rollout.daemonset:
        if not rollout.revision:
            found.append(
                "The DaemonSet's controller has not seen its newest specification: see kube-controller-manager."
            )
        if must_be_away:
            found += _why_not_away(node, rollout.daemonset, plugins)
        elif not plugins:
            found += _why_no_pod(node, rollout.daemonset)
        for plugin in plugins:
            found += _pod_troubles(plugin, rollout)
            said += plugin.log
    evidence = "\n".join([*found, *said])
    return found + [cause for signs, cause in CAUSES if any(sign in evidence for sign in signs)]


def _node_troubles(node: Object) -> t.Iterator[str]:
    if not is_ready(node):
        why = condition(node, "Ready")
        yield f"The node is not ready: {_because(why) if why else 'its kubelet never said so'}."


def _why_not_away(node: Object, daemonset: Object, plugins: t.Sequence[PluginPod]) -> t.Iterator[str]:
    wanted, missing = _selected_labels(node, daemonset)
    if not plugins:
        yield (
            "No pod of the device plugin is on the node: another one offers these resources, or the kubelet has not"
            " noticed yet."
        )
    elif missing:
        yield "The device plugin has to leave the node, and its pod has not ended yet."
    else:
        yield f"The device plugin has to leave the node, and its DaemonSet still selects it by {', '.join(wanted)}."


def _why_no_pod(node: Object, daemonset: Object) -> t.Iterator[str]:
    _wanted, missing = _selected_labels(node, daemonset)
    tolerations = daemonset["spec"]["template"]["spec"].get("tolerations") or []
    taints = [_taint(taint) for taint in node["spec"].get("taints") or [] if _keeps_away(taint, tolerations)]
    yield "No pod of the device plugin is on the node."
    if missing:
        yield f"The plugin's DaemonSet wants the label {', '.join(missing)}."
    if taints:
        yield f"The node has the taints {', '.join(taints)}: the DaemonSet must tolerate them."


def _selected_labels(node: Object, daemonset: Object) -> tuple[list[str], list[str]]:
    """The labels by which the DaemonSet selects nodes, and those of them that this node lacks."""
    labels = node["metadata"].get("labels") or {}
    selector = daemonset["spec"]["template"]["spec"].get("nodeSelector") or {}
    missing = [
        f"{key}={value} (the node has {labels.get(key, 'no such label')})"
        for key, value in selector.items()
        if labels.get(key) != value
    ]
    return [f"{key}={value}" for key, value in selector.items()], missing


def _keeps_away(taint: Object, tolerations: t.Iterable[Object]) -> bool:
    """Whether the DaemonSet has to tolerate this taint, and does not.

    Kubernetes' own taints show the state of a node, such as cordoned: the DaemonSet's controller deals with these.
    """
    if taint["effect"] == "PreferNoSchedule" or taint["key"].startswith("node.kubernetes.io/"):
        return False
    return not any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Object, taint: Object) -> bool:
    """What a toleration does not name fits every taint, except that a missing value is an empty one."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return (toleration.get("value") or "") == (taint.get("value") or "")


def _pod_troubles(plugin: PluginPod, rollout: Rollout) -> t.Iterator[str]:
    name, status = plugin.pod["metadata"]["name"], plugin.pod["status"]
    scheduled = condition(plugin.pod, "PodScheduled")
    unscheduled = f": {_because(scheduled)}" if scheduled and scheduled["status"] == "False" else ""
    yield f"The pod {name} is {status.get('phase', 'Unknown')}{unscheduled}{_ending(plugin.pod)}."
    if rollout.revision and not rollout.is_current(plugin.pod):
        yield f"It runs an old revision of the DaemonSet{_what_is_awaited(rollout)}."
    for container, stopped in _stopped_containers(plugin.pod):
        restarts = container.get("restartCount", 0)
        yield f"Its container {container['name']} is not ready: {_because(stopped)}; {restarts} restarts so far."
    for warning in plugin.warnings:
        yield f"Event: {warning}"
    if plugin.log:
        yield "Its log ends with:\n" + "\n".join(f"  {line}" for line in plugin.log[-SHOWN_LOG_LINES:])


def _what_is_awaited(rollout: Rollout) -> str:
    """Why a pod has not been replaced yet: the controller lets only so many be away at a time."""
    strategy = ((rollout.daemonset or {})["spec"].get("updateStrategy") or {}).get("type")
    if strategy == "OnDelete":
        return ", whose update strategy is OnDelete: delete the pod"
    away = [pod for pod in rollout.pods.values() if not is_ready(pod)]
    named = [f"{pod['metadata']['name']} on {node_of(pod)}{_first_reason(pod)}" for pod in away[:3]]
    return f", which first waits for {', '.join(named)}" if named else ""


def _first_reason(pod: Object) -> str:
    reasons = [stopped.get("reason") for _container, stopped in _stopped_containers(pod)]
    return next((f" ({reason})" for reason in reasons if reason), "")


def _stopped_containers(pod: Object) -> t.Iterator[tuple[Object, Object]]:
    """Each container that is not ready because it waits or has ended, and what is known of that."""
    status = pod["status"]
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        state, before = container.get("state") or {}, container.get("lastState") or {}
        stopped = state.get("waiting") or before.get("terminated") or state.get("terminated")
        if not container.get("ready") and (stopped or container.get("restartCount")):
            yield container, stopped or {}


def _ending(pod: Object) -> str:
    return " and is being deleted" if is_ending(pod) else ""


def _because(state: Object) -> str:
    parts = [str(part).rstrip(".") for part in (state.get("reason"), state.get("message")) if part]
    return ": ".join(parts) or "no reason is given"


def _taint(taint: Object) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"
