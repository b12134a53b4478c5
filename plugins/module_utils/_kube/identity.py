# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which node of the cluster is which host of the inventory. Private to the collection.

A node with another machine id or another system UUID than the host is another machine, whatever else agrees: clusters
that reuse node names and private addresses are common, and so is a kubeconfig that points to the wrong one. Among the
nodes that are left, the first criterion that leaves exactly one decides; one that leaves several (cloned disks share a
machine id, some firmware gives every board the same UUID) narrows the choice for the next. Nothing is guessed.
"""

from __future__ import annotations

import ipaddress
import typing as t
from dataclasses import dataclass, field

Node = t.Mapping[str, t.Any]


@dataclass(frozen=True)
class Host:
    """What is known of a host of the inventory."""

    name: str
    node_name: str | None = None
    machine_id: str | None = None
    system_uuid: str | None = None
    addresses: t.Sequence[str] = ()


@dataclass
class Matching:
    nodes: dict[str, Node] = field(default_factory=dict)
    """The node of each host that has one."""
    missing: dict[str, str] = field(default_factory=dict)
    """Hosts that are no node of the cluster, and how that was found."""
    errors: dict[str, str] = field(default_factory=dict)
    """Hosts that could be several nodes, or share one."""


def node_name(node: Node) -> str:
    return str(node["metadata"]["name"])


def match_hosts(hosts: t.Iterable[Host], nodes: t.Sequence[Node]) -> Matching:
    matching = Matching()
    hosts_of: dict[str, list[str]] = {}
    for host in hosts:
        found = _candidates(host, nodes)
        if len(found) == 1:
            matching.nodes[host.name] = found[0]
            hosts_of.setdefault(node_name(found[0]), []).append(host.name)
        elif found:
            matching.errors[host.name] = (
                f"it could be any of the nodes {_names(found)}, which share its {_shared(host, found)}."
                " Set kubegpu_node_name for this host."
            )
        else:
            matching.missing[host.name] = _not_found(host, nodes)
    for name, sharers in hosts_of.items():
        if len(sharers) > 1:
            for sharer in sharers:
                del matching.nodes[sharer]
                matching.errors[sharer] = (
                    f"the hosts {' and '.join(sharers)} match the same node {name}."
                    " Set kubegpu_node_name for each, or take one out of the inventory."
                )
    return matching


def _candidates(host: Host, nodes: t.Sequence[Node]) -> t.Sequence[Node]:
    """One node, several that cannot be told apart, or none."""
    if host.node_name:
        return [node for node in nodes if node_name(node) == host.node_name]
    left = [node for node in nodes if not _is_other_machine(host, node)]
    narrowed = False
    for _what, agrees in _CRITERIA:
        agreeing = [node for node in left if agrees(host, node)]
        if len(agreeing) == 1:
            return agreeing
        if agreeing:
            left, narrowed = agreeing, True
    return left if narrowed else []


def _same_machine_id(host: Host, node: Node) -> bool:
    return bool(host.machine_id) and _plain(host.machine_id) == _plain(_info(node, "machineID"))


def _same_system_uuid(host: Host, node: Node) -> bool:
    return bool(host.system_uuid) and _plain(host.system_uuid) == _plain(_system_uuid(node))


def _shares_address(host: Host, node: Node) -> bool:
    addresses = node.get("status", {}).get("addresses") or []
    internal = {_address(item["address"]) for item in addresses if item["type"] == "InternalIP"}
    return not internal.isdisjoint(_address(address) for address in host.addresses)


def _same_name(host: Host, node: Node) -> bool:
    return host.name == node_name(node)


_CRITERIA: t.Sequence[tuple[str, t.Callable[[Host, Node], bool]]] = (
    ("machine id", _same_machine_id),
    ("system UUID", _same_system_uuid),
    ("internal address", _shares_address),
    ("name", _same_name),
)


def _is_other_machine(host: Host, node: Node) -> bool:
    """Both sides know the same thing of themselves, and it differs."""
    other_machine_id = host.machine_id and _info(node, "machineID") and not _same_machine_id(host, node)
    other_system_uuid = host.system_uuid and _system_uuid(node) and not _same_system_uuid(host, node)
    return bool(other_machine_id or other_system_uuid)


def _not_found(host: Host, nodes: t.Sequence[Node]) -> str:
    there_are = f"the cluster has {_names(nodes) or 'no nodes'}."
    if host.node_name:
        return f"there is no node {host.node_name}, which kubegpu_node_name names; {there_are}"
    for node in nodes:  # what looks most like it: a name or an address is rarely shared by chance
        if _same_name(host, node) or _shares_address(host, node):
            machine_id, system_uuid = _info(node, "machineID") or "unknown", _system_uuid(node) or "unknown"
            return (
                f"the node {node_name(node)} has the same {_shared(host, [node])}, but is another machine:"
                f" its machine id is {machine_id} and the host's {host.machine_id or 'unknown'},"
                f" its system UUID {system_uuid} and the host's {host.system_uuid or 'unknown'}."
                " Is this the right cluster? If they are one machine all the same, set kubegpu_node_name for the host."
            )
    return f"no node has its machine id, one of its addresses or its name; {there_are} Has it joined the cluster?"


def _shared(host: Host, nodes: t.Sequence[Node]) -> str:
    return ", ".join(what for what, agrees in _CRITERIA if all(agrees(host, node) for node in nodes))


def _names(nodes: t.Sequence[Node], most: int = 10) -> str:
    names = sorted(node_name(node) for node in nodes)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _info(node: Node, key: str) -> str:
    return node.get("status", {}).get("nodeInfo", {}).get(key) or ""


def _system_uuid(node: Node) -> str:
    """A kubelet that cannot read the firmware's UUID repeats the machine id in its place."""
    reported = _info(node, "systemUUID")
    return "" if _plain(reported) == _plain(_info(node, "machineID")) else reported


def _plain(identifier: str | None) -> str:
    return (identifier or "").replace("-", "").lower()


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))  # one spelling for an IPv6 address
    except ValueError:
        return text
