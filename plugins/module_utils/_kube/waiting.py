# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Follow nodes, and the DaemonSet that serves them, until nothing lacks. Private to the collection.

A look at everything takes four lists, whatever the number of nodes. Between two looks the one thing that lacks is
watched; what the watch shows is believed only after another look.
"""

from __future__ import annotations

import contextlib
import enum
import time
import typing as t
from dataclasses import dataclass

from .daemon_set import Rollout, current_revision, is_observed, selector_of
from .errors import Gone, Unreachable
from .identity import Node, node_name

if t.TYPE_CHECKING:  # pragma: no cover
    from .client import Api

WATCH_SECONDS = 60
"""A watch is renewed this often, so that a connection that died silently is noticed."""
REPORT_SECONDS = 15
"""A kubelet looks every 10 seconds whether there is news about its node."""


class Lacks(enum.Enum):
    """What is waited for first."""

    NOTHING = enum.auto()
    DAEMONSET = enum.auto()
    """There is none, and waiting will not help."""
    PODS = enum.auto()
    RESOURCES = enum.auto()
    REPORT = enum.auto()
    """All is as wanted, but perhaps because a kubelet had no time to tell otherwise."""


@dataclass
class Cluster:
    """The nodes that somebody waits for, and what serves them, as they were seen last."""

    nodes: dict[str, Node]
    version: str
    """Of the list of nodes, to watch them from."""
    rollout: Rollout | None = None
    """None: nobody said which DaemonSet it is."""


class Follower:
    def __init__(
        self,
        api: Api,
        names: t.Collection[str],
        daemonset: tuple[str, str] | None,
        *,
        clock: t.Callable[[], float] = time.monotonic,
        pause: t.Callable[[float], None] = time.sleep,
    ) -> None:
        """`names` are those of the nodes; the DaemonSet is its namespace and name."""
        self._api, self._names, self._daemonset = api, names, daemonset
        self._clock, self._pause = clock, pause

    def follow(self, timeout: float, lacks: t.Callable[[Cluster], Lacks]) -> Cluster:
        """The cluster as soon as nothing lacks, or when the time is over (with 0: at once)."""
        deadline = self._clock() + timeout
        cluster = self._look(deadline)
        reported_by = 0.0
        while (now := self._clock()) < deadline:
            lacking = lacks(cluster)
            if lacking in (Lacks.NOTHING, Lacks.DAEMONSET):
                break
            seconds = min(WATCH_SECONDS, deadline - now)
            if lacking is Lacks.REPORT:
                reported_by = reported_by or now + REPORT_SECONDS
                if now >= reported_by:
                    break
                seconds = min(seconds, reported_by - now)
            else:
                reported_by = 0.0
            changed = False
            with contextlib.suppress(Gone, Unreachable):  # the next look finds out whether the server is there
                changed = any(lacks(cluster) is not lacking for _event in self._watch(cluster, lacking, seconds))
            if not changed:
                self._pause(1)  # a proxy may end every watch at once
            cluster, was_away = self._look_again(deadline)
            if was_away:
                reported_by = 0.0  # no kubelet could report meanwhile
        return cluster

    def _look_again(self, deadline: float) -> tuple[Cluster, bool]:
        """A new look, and whether the server was away before. Without one that succeeds nothing is known any more.

        A server may restart while we wait; one that is not there has failed the first look.
        """
        was_away = False
        while True:
            try:
                return self._look(deadline), was_away
            except Unreachable:
                if self._clock() >= deadline:
                    raise
            was_away = True
            self._pause(2)

    def _look(self, deadline: float) -> Cluster:
        nodes, version = self._api.nodes()
        cluster = Cluster({node_name(node): node for node in nodes if node_name(node) in self._names}, version)
        if self._daemonset:
            cluster.rollout = self._rollout(*self._daemonset, deadline)
        return cluster

    def _rollout(self, namespace: str, name: str, deadline: float) -> Rollout:
        daemonset = self._api.daemon_set(namespace, name)
        while daemonset and not is_observed(daemonset) and self._clock() < deadline:
            self._pause(1)
            daemonset = self._api.daemon_set(namespace, name)
        if not daemonset:
            return Rollout()
        selector = selector_of(daemonset)
        revision = current_revision(daemonset, self._api.revisions(namespace, selector))
        pods, version = self._api.pods(namespace, selector)
        rollout = Rollout(daemonset, revision, version=version)
        for pod in pods:
            rollout.note(pod)
        return rollout

    def _watch(self, cluster: Cluster, lacking: Lacks, seconds: float) -> t.Iterator[None]:
        """One turn for each event that the cluster has taken in."""
        if lacking is Lacks.PODS and self._daemonset and cluster.rollout and cluster.rollout.daemonset:
            selector = selector_of(cluster.rollout.daemonset)
            for what, pod in self._api.watch_pods(*self._daemonset[:1], selector, cluster.rollout.version, seconds):
                if what == "DELETED":
                    cluster.rollout.pods.pop(pod["metadata"]["name"], None)
                else:
                    cluster.rollout.note(pod)
                yield
            return
        for what, node in self._api.watch_nodes(cluster.version, seconds):
            if node_name(node) not in self._names:
                continue
            if what == "DELETED":
                cluster.nodes.pop(node_name(node), None)
            else:
                cluster.nodes[node_name(node)] = node
            yield
