# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait until nodes advertise what NVML said they have, or say why they do not. Private to the collection."""

from __future__ import annotations

import time
import typing as t

from .diagnosis import PluginPod, explain, is_on, is_ready
from .errors import KubeError
from .identity import Node, node_name
from .resources import advertised_resources, describe, expected_resources, is_as_expected
from .waiting import Nodes, follow_nodes

if t.TYPE_CHECKING:  # pragma: no cover
    from .client import Api

LOG_LINES = 8
DIAGNOSED_NODES = 10
"""So many nodes are looked into; when more fail, they fail for the same reason."""


def expected_of(nodes: t.Sequence[t.Mapping[str, t.Any]]) -> dict[str, dict[str, int]]:
    expected = {}
    for node in nodes:
        try:
            expected[node["name"]] = expected_resources(node["gpus"])
        except KubeError as error:
            raise KubeError(f"{node['name']}: {error}") from error
    return expected


def await_resources(
    api: Api, expected: t.Mapping[str, t.Mapping[str, int]], timeout: float
) -> tuple[dict[str, t.Any], Nodes]:
    """The module's result, and the nodes as they were last seen; with a timeout of 0, one look."""

    def offers_them(node: Node) -> bool:
        return is_as_expected(expected[node_name(node)], advertised_resources(node))

    started = time.monotonic()
    seen = follow_nodes(api, expected.keys(), timeout, lambda nodes: all(map(offers_them, nodes.values())))
    nodes = {
        name: {
            "expected": resources,
            "allocatable": advertised_resources(seen[name]) if name in seen else {},
            "ready": name in seen and offers_them(seen[name]),
        }
        for name, resources in expected.items()
    }
    return {"changed": False, "nodes": nodes, "elapsed": round(time.monotonic() - started, 1)}, seen


def failure(
    api: Api, result: t.Mapping[str, t.Any], seen: Nodes, namespace: str | None, selector: str | None
) -> KubeError:
    """What is wrong with the nodes that are not ready, each with what the cluster shows about it."""
    late = [name for name, node in result["nodes"].items() if not node["ready"]]
    looked_into = late[:DIAGNOSED_NODES]
    count = f"{len(late)} of {len(result['nodes'])} nodes"
    lines = [f"{count} do not offer the expected GPUs after {result['elapsed']:.0f} seconds."]
    plugins: dict[str, list[PluginPod]] = {}
    if namespace and selector:
        try:
            pods = api.pods(namespace, selector)
            for name in looked_into:
                # The log comes from the node's kubelet, which must be there to be asked.
                with_log = name in seen and is_ready(seen[name])
                plugins[name] = [_plugin_pod(api, namespace, pod, with_log) for pod in pods if is_on(pod, name)]
        except KubeError as error:
            lines.append(f"The pods of the device plugin could not be looked at. {error}")
    reasons = {name: explain(seen.get(name), plugins.get(name)) for name in looked_into}
    for name in late:
        node = result["nodes"][name]
        lines.append(f"{name}: wanted {describe(node['expected'])}; found {describe(node['allocatable'])}.")
        lines += [f"  {line}" for reason in reasons.get(name, ()) for line in reason.splitlines()]
    return KubeError("\n".join(lines), **result, reasons=reasons)


def _plugin_pod(api: Api, namespace: str, pod: dict[str, t.Any], with_log: bool) -> PluginPod:
    name = pod["metadata"]["name"]
    warnings = [f"{event.get('reason')}: {event.get('message')}" for event in api.warnings(namespace, name)]
    log: list[str] = []
    for container in pod["status"].get("containerStatuses") or []:
        running = "running" in (container.get("state") or {})
        if not with_log or not (running or container.get("restartCount")):
            continue  # one that never started has no log
        try:
            log += api.log(namespace, name, container["name"], lines=LOG_LINES, previous=not running)
        except KubeError as error:  # a kubelet that does not answer must not hide the rest
            log.append(str(error))
    return PluginPod(pod, warnings[-2:], log)
