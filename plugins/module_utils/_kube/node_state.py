# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Match the hosts of the inventory to their nodes and bring these into the wanted state. Private to the collection."""

from __future__ import annotations

import typing as t

from .._errors import KubegpuError
from .identity import Host, Node, match_hosts, node_name
from .in_service import state_of
from .kubelet import minimum_of, too_old
from .node_patch import Wanted, patch_for, shown, wanted_of
from .pods import Pod

if t.TYPE_CHECKING:  # pragma: no cover
    from .client import Api

ATTEMPTS = 5
"""A kubelet writes its node's status every few minutes, a controller rarely: nobody is in the way so often."""


def bring_about(
    api: Api,
    hosts: t.Sequence[t.Mapping[str, t.Any]],
    missing: str,
    minimum_kubelet: t.Any = None,
    gather_states: bool = False,
) -> dict[str, t.Any]:
    """The module's result. Nothing is written before every host has a node that fits and every wish is valid."""
    minimum = minimum_of(minimum_kubelet) if minimum_kubelet is not None else None
    required = {host["host"] for host in hosts if host.get("required", True)}
    wanted = {host["host"]: wanted_of(host) for host in hosts}
    matching = match_hosts([_host(host) for host in hosts], api.nodes()[0])
    errors = dict(matching.errors)
    if missing == "fail":
        errors.update((host, how) for host, how in matching.missing.items() if host in required)
    if minimum:
        for host in required & matching.nodes.keys():
            why = too_old(matching.nodes[host], minimum)
            if why:
                errors[host] = why
    if errors:
        raise KubegpuError(_report("These hosts have no fitting node in the cluster:", errors), errors=errors)

    # Asked before anything is written, so that a refusal costs nothing.
    pods = _pods_by_node(api, matching.nodes.values()) if gather_states else {}
    before: dict[str, t.Any] = {}
    after: dict[str, t.Any] = {}
    changed: list[str] = []
    for host, node in matching.nodes.items():
        name = node_name(node)
        try:
            change = _bring(api, node, wanted[host])
        except KubegpuError as error:  # the other hosts' nodes are no worse for it
            errors[host] = str(error)
            continue
        if change:
            changed.append(host)
            before[name], after[name], matching.nodes[host] = change
    result = {
        "changed": bool(changed),
        "nodes": {host: node_name(node) for host, node in matching.nodes.items()},
        "not_in_cluster": sorted(matching.missing),
        "changed_hosts": sorted(changed),
        "diff": {"before": before, "after": after},
    }
    if gather_states:
        result["states"] = {
            host: state_of(node, pods.get(node_name(node), ())) for host, node in matching.nodes.items()
        }
    if errors:
        raise KubegpuError(_report("The nodes of these hosts could not be changed:", errors), errors=errors, **result)
    return result


def _bring(
    api: Api, node: Node, wanted: Wanted, attempts: int = ATTEMPTS
) -> tuple[dict[str, t.Any], dict[str, t.Any], Node] | None:
    """What the node had and has of that which was changed, and the node; None: it is as it is wanted."""
    patch = patch_for(node, wanted)
    if not patch:
        return None
    try:
        changed = api.patch_node(node_name(node), patch)
    except KubegpuError as error:
        if error.details.get("status") != 409 or attempts == 1:
            raise
        # Somebody else was faster; what they wrote has to stay.
        return _bring(api, api.node(node_name(node)), wanted, attempts - 1)
    return shown(node, patch), shown(changed, patch), changed


def _host(given: t.Mapping[str, t.Any]) -> Host:
    return Host(
        name=given["host"],
        node_name=given.get("node_name"),
        machine_id=given.get("machine_id"),
        system_uuid=given.get("system_uuid"),
        addresses=given.get("addresses") or (),
    )


def _pods_by_node(api: Api, nodes: t.Iterable[Node]) -> dict[str, list[Pod]]:
    """One request: a server can select the pods of one node or of all, but not those of some."""
    names = {node_name(node) for node in nodes}
    found: dict[str, list[Pod]] = {}
    for pod in api.pods_that_run(names.pop() if len(names) == 1 else None):
        found.setdefault(pod["spec"]["nodeName"], []).append(pod)
    return found


def _report(heading: str, errors: t.Mapping[str, str]) -> str:
    return "\n".join([heading, *(f"{host}: {error}" for host, error in sorted(errors.items()))])
