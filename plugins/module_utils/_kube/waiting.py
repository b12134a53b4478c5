# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Watch nodes until they are as wanted: one list, then one watch for all of them. Private to the collection."""

from __future__ import annotations

import time
import typing as t

from .errors import Gone, Unreachable
from .identity import Node, node_name

if t.TYPE_CHECKING:  # pragma: no cover
    from .client import Api

WATCH_SECONDS = 60
"""A watch is renewed this often, so that a connection that died silently is noticed."""

Nodes = dict[str, Node]


def follow_nodes(
    api: Api,
    names: t.Collection[str],
    timeout: float,
    done: t.Callable[[Nodes], bool],
    *,
    clock: t.Callable[[], float] = time.monotonic,
    pause: t.Callable[[float], None] = time.sleep,
) -> Nodes:
    """The named nodes as they were seen last: as soon as they are done, or when the time is over (with 0: at once)."""
    deadline = clock() + timeout
    nodes, version = _listed(api, names)
    while not done(nodes) and clock() < deadline:
        try:
            if not version:
                nodes, version = _listed(api, names)
                continue
            for what, node in api.watch_nodes(version, min(WATCH_SECONDS, deadline - clock())):
                version = node["metadata"]["resourceVersion"]
                if what == "BOOKMARK" or node_name(node) not in names:
                    continue
                if what == "DELETED":
                    nodes.pop(node_name(node), None)
                else:
                    nodes[node_name(node)] = node
                if done(nodes):
                    return nodes
            pause(1)  # a proxy may end every watch at once
        except Gone:
            version = ""
        except Unreachable:
            # A server that restarts while we wait is no reason to give up: one that is not there failed the first list.
            if clock() >= deadline:
                raise
            pause(2)
    return nodes


def _listed(api: Api, names: t.Collection[str]) -> tuple[Nodes, str]:
    nodes, version = api.nodes()
    return {node_name(node): node for node in nodes if node_name(node) in names}, version
