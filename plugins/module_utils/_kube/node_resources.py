# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait until nodes advertise what NVML said they have, or say why they do not. Private to the collection."""

from __future__ import annotations

import time
import typing as t

from .._errors import KubegpuError
from .daemon_set import Object, condition, is_ready, node_of
from .diagnosis import PluginPod, explain
from .resources import advertised_resources, describe, expected_resources, is_as_expected
from .waiting import Cluster, Follower, Lacks

if t.TYPE_CHECKING:  # pragma: no cover
    from .client import Api

LOG_LINES = 50
"""The line that names the cause may be some way above the last one."""
DIAGNOSED_NODES = 10
"""So many nodes are looked into; when more fail, they fail for the same reason."""

Expected = t.Mapping[str, t.Optional[t.Mapping[str, int]]]
"""Resources by node. None: there are no GPUs to serve, so the DaemonSet has to be away from the node."""


def expected_of(
    nodes: t.Sequence[t.Mapping[str, t.Any]], strategy: str
) -> tuple[dict[str, dict[str, int] | None], dict[str, str]]:
    """And the nodes of which nothing can be expected, with the reasons; one of them keeps nobody from the others."""
    expected: dict[str, dict[str, int] | None] = {}
    reasons: dict[str, str] = {}
    for node in nodes:
        try:
            expected[node["name"]] = expected_resources(node["gpus"], strategy) if node["gpus"] else None
        except KubegpuError as error:
            reasons[node["name"]] = str(error)
    return expected, reasons


def await_resources(
    api: Api, expected: Expected, daemonset: tuple[str, str] | None, timeout: float
) -> tuple[dict[str, t.Any], Cluster]:
    """The module's result, and the cluster as it was last seen; with a timeout of 0, one look."""
    started = time.monotonic()
    cluster = Follower(api, expected.keys(), daemonset).follow(timeout, lambda seen: lacking(seen, expected))
    unsettled = _unsettled(cluster, expected)
    nodes = {
        name: {
            "expected": resources or {},
            "allocatable": advertised_resources(cluster.nodes[name]) if name in cluster.nodes else {},
            "ready": name in cluster.nodes
            and is_as_expected(resources or {}, advertised_resources(cluster.nodes[name]))
            and name not in unsettled,
        }
        for name, resources in expected.items()
    }
    return {"changed": False, "nodes": nodes, "elapsed": round(time.monotonic() - started, 1)}, cluster


def lacking(cluster: Cluster, expected: Expected) -> Lacks:
    """Nobody waits for a node that is gone."""
    if _unsettled(cluster, expected):
        return Lacks.PODS if cluster.rollout and cluster.rollout.daemonset else Lacks.DAEMONSET
    nodes = [(name, node, expected[name] or {}) for name, node in cluster.nodes.items()]
    if not all(is_as_expected(resources, advertised_resources(node)) for _name, node, resources in nodes):
        return Lacks.RESOURCES
    serving = cluster.rollout.serving() if cluster.rollout else {}
    if not all(_has_reported(node, serving[name]) for name, node, resources in nodes if resources and serving):
        return Lacks.REPORT
    return Lacks.NOTHING


def _unsettled(cluster: Cluster, expected: Expected) -> set[str]:
    """The nodes to which a pod has to come, or from which one has to go, before their resources mean anything.

    A node that has GPUs but nothing to offer may have a pod or not; when nobody said whose pods they are, they cannot
    be missed.
    """
    if not cluster.rollout:
        return set()
    serving, occupied = cluster.rollout.serving(), set(map(node_of, cluster.rollout.pods.values()))
    return {
        name
        for name in cluster.nodes
        if (name in occupied if (resources := expected[name]) is None else resources and name not in serving)
    }


def _has_reported(node: Object, pod: Object) -> bool:
    """The kubelet has reported since the plugin was started, so what the node advertises is not its predecessor's.

    Both times are the kubelet's own, and a predecessor ends some seconds before its successor starts.
    """
    containers = pod["status"].get("containerStatuses") or []
    starts = [(container.get("state") or {}).get("running", {}).get("startedAt") or "" for container in containers]
    reported = condition(node, "Ready") or {}
    return bool(max(starts, default="") <= (reported.get("lastHeartbeatTime") or ""))


def failure(
    api: Api,
    expected: Expected,
    result: t.Mapping[str, t.Any],
    cluster: Cluster,
    daemonset: tuple[str, str] | None,
) -> KubegpuError:
    """What is wrong with the nodes that are not ready, each with what the cluster shows about it."""
    late = [name for name, node in result["nodes"].items() if not node["ready"]]
    looked_into = late[:DIAGNOSED_NODES]
    count = f"{len(late)} of {len(result['nodes'])} nodes"
    lines = [f"{count} do not offer the expected GPUs after {result['elapsed']:.0f} seconds."]
    if daemonset and not (cluster.rollout and cluster.rollout.daemonset):
        lines.append(f"There is no DaemonSet {'/'.join(daemonset)}: nothing can advertise GPUs before it is applied.")
    plugins: dict[str, list[PluginPod]] = {}
    if cluster.rollout and cluster.rollout.daemonset:
        for pod in cluster.rollout.pods.values():
            name = node_of(pod)
            if name and name in looked_into:
                # The log comes from the node's kubelet, which must be there to be asked.
                with_log = name in cluster.nodes and is_ready(cluster.nodes[name])
                if is_ready(pod) and (expected[name] is None or not cluster.rollout.is_current(pod)):
                    plugin = PluginPod(pod)  # it works; that it is still there is the news
                else:
                    plugin = _plugin_pod(api, pod, with_log)
                plugins.setdefault(name, []).append(plugin)
    reasons = {
        name: explain(
            cluster.nodes.get(name), plugins.get(name, []), cluster.rollout, must_be_away=expected[name] is None
        )
        for name in looked_into
    }
    for name in late:
        node = result["nodes"][name]
        lines.append(f"{name}: wanted {describe(node['expected'])}; found {describe(node['allocatable'])}.")
        lines += [f"  {line}" for reason in reasons.get(name, ()) for line in reason.splitlines()]
    return KubegpuError("\n".join(lines), **result, reasons=reasons)


def _plugin_pod(api: Api, pod: Object, with_log: bool) -> PluginPod:
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    try:
        warnings = [f"{event.get('reason')}: {event.get('message')}" for event in api.warnings(namespace, name)]
    except KubegpuError as error:  # what cannot be asked must not hide the rest
        warnings = [str(error)]
    log: list[str] = []
    if with_log:
        for container in pod["status"].get("containerStatuses") or []:
            try:
                log += _log(api, namespace, name, container)
            except KubegpuError as error:
                log.append(str(error))
    return PluginPod(pod, warnings[-2:], log)


def _log(api: Api, namespace: str, pod: str, container: Object) -> list[str]:
    """Of the container's last run that can have said something: one that waits has no log, one just started little."""
    state, name = container.get("state") or {}, container["name"]
    has_run_before = bool(container.get("restartCount") or (container.get("lastState") or {}).get("terminated"))
    log: list[str] = []
    if "running" in state or "terminated" in state:
        log = api.log(namespace, pod, name, lines=LOG_LINES)
    if not log and has_run_before:
        log = api.log(namespace, pod, name, lines=LOG_LINES, previous=True)
    return log
