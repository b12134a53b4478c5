# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.errors import Gone, Unreachable
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.node_resources import lacking
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.waiting import Follower
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._kube.fake_objects import (
    daemonset,
    node,
    pod,
    revision,
)

LOOK = ["nodes", "daemonset", "revisions", "pods"]
TWO = {"nvidia.com/gpu": 2}


class ScriptedApi:
    """Answers from scripts: lists of objects for lists, lists of events for watches. The last list is repeated.

    An exception in a script is raised, a number is seconds that pass, a function is called.
    """

    def __init__(self, nodes, watches=(), *, pods=(), daemonsets=(), revisions=None):
        self.now = 0.0
        self.scripts = {
            "nodes": nodes,
            "pods": list(pods) or [[pod("a"), pod("b")]],
            "daemonset": list(daemonsets) or [daemonset()],
            "revisions": revisions or [[revision(1, "old"), revision(2, "new")]],
        }
        self.watches = list(watches)
        self.requests = []

    def clock(self):
        return self.now

    def pause(self, seconds):
        self.now += seconds

    def answer(self, what):
        self.requests.append(what)
        script = self.scripts[what]
        answer = script.pop(0) if len(script) > 1 else script[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def nodes(self):
        return self.answer("nodes"), str(100 * len(self.requests))

    def daemon_set(self, namespace, name):
        assert (namespace, name) == ("nvidia", "plugin")
        return self.answer("daemonset")

    def revisions(self, namespace, selector):
        assert (namespace, selector) == ("nvidia", "app=plugin")
        return self.answer("revisions")

    def pods(self, namespace, selector):
        assert (namespace, selector) == ("nvidia", "app=plugin")
        return self.answer("pods"), str(100 * len(self.requests))

    def watch_nodes(self, version, seconds):
        return self.watch("nodes", version, seconds)

    def watch_pods(self, namespace, selector, version, seconds):
        assert (namespace, selector) == ("nvidia", "app=plugin")
        return self.watch("pods", version, seconds)

    def watch(self, what, version, seconds):
        self.requests.append(f"watch {what} {version} for {seconds:.0f}")
        for event in self.watches.pop(0) if self.watches else [seconds]:
            if isinstance(event, Exception):
                raise event
            if isinstance(event, (int, float)):
                self.now += event
            else:
                yield event

    def follow(self, expected, timeout=100, plugin=("nvidia", "plugin")):
        follower = Follower(self, expected.keys(), plugin, clock=self.clock, pause=self.pause)
        return follower.follow(timeout, lambda cluster: lacking(cluster, expected))


def gpus(cluster):
    return {name: item["status"]["allocatable"].get("nvidia.com/gpu") for name, item in cluster.nodes.items()}


@pytest.mark.parametrize("others", [0, 400])
def test_a_converged_cluster_takes_four_requests(others):
    pods = [pod(name) for name in ("a", "b", *(f"n{number}" for number in range(others)))]
    nodes = [node(item["spec"]["nodeName"], 2) for item in pods]
    api = ScriptedApi([nodes], pods=[pods])
    assert len(api.follow({item["metadata"]["name"]: TWO for item in nodes}).nodes) == 2 + others
    assert api.requests == LOOK


def test_without_a_daemonset_one():
    api = ScriptedApi([[node("a", 2), node("other", 0)]])
    assert gpus(api.follow({"a": TWO}, plugin=None)) == {"a": "2"}
    assert api.requests == ["nodes"]


def test_one_look_without_a_timeout():
    api = ScriptedApi([[node("a", 0)]], pods=[[]])
    assert gpus(api.follow({"a": TWO}, timeout=0)) == {"a": None}
    assert api.requests == LOOK


def test_what_the_old_pod_advertises_does_not_count():
    away = {"state": {"waiting": {"reason": "ImagePullBackOff"}}}
    api = ScriptedApi(
        [[node("a", 2), node("b", 2)]],
        [[5, ("DELETED", pod("a", of="old")), ("ADDED", pod("a", name="plugin-2", ready=False, **away))]],
        pods=[[pod("a", of="old"), pod("b")], [pod("a", name="plugin-2", ready=False, **away), pod("b")]],
    )
    cluster = api.follow({"a": TWO, "b": TWO}, timeout=60)
    assert set(cluster.rollout.serving()) == {"b"}
    assert api.now >= 60


def test_pods_then_nodes_are_watched_and_looked_at_again():
    became_ready = [
        5,
        ("DELETED", pod("a", of="old")),
        ("MODIFIED", pod("other", of="old")),
        ("ADDED", pod("a", name="plugin-2", ready=False)),
        ("MODIFIED", pod("a", name="plugin-2")),
        RuntimeError("nobody reads on"),
    ]
    registered = [3, ("MODIFIED", node("other", 0)), ("MODIFIED", node("a", 2)), RuntimeError("nobody reads on")]
    api = ScriptedApi(
        [[node("a", 2)], [node("a", 0)], [node("a", 2)]],
        [became_ready, registered],
        pods=[[pod("a", of="old")], [pod("a", name="plugin-2")]],
    )
    assert gpus(api.follow({"a": TWO})) == {"a": "2"}
    assert api.requests == [*LOOK, "watch pods 400 for 60", *LOOK, "watch nodes 600 for 60", *LOOK]


def test_a_pod_that_fails_while_its_node_registers_is_noticed():
    api = ScriptedApi(
        [[node("a", 0)], [node("a", 2)]],
        [[("MODIFIED", node("a", 2))]],
        pods=[[pod("a")], [pod("a", ready=False)]],
    )
    assert not api.follow({"a": TWO}, timeout=20).rollout.serving()


@pytest.mark.parametrize("pods", [[], [pod("a")], [pod("a", ready=False)]])
def test_a_node_whose_gpus_offer_nothing_may_have_a_pod_or_not(pods):
    api = ScriptedApi([[node("a", 0)]], pods=[pods])
    api.follow({"a": {}})
    assert api.requests == LOOK


class TestAway:
    """Nodes without GPUs to serve, such as those whose GPU clients are paused."""

    def test_no_pod_is_there(self):
        api = ScriptedApi([[node("a", 0), node("b", 2)]], pods=[[pod("b")]])
        api.follow({"a": None, "b": TWO})
        assert api.requests == LOOK

    def test_the_pod_ends_and_then_the_kubelet_notices(self):
        ending = pod("a", metadata={"deletionTimestamp": "2026-01-01T10:00:00Z"})
        api = ScriptedApi(
            [[node("a", 2)], [node("a", 2)], [node("a", 0)]],
            [[3, ("MODIFIED", ending), ("DELETED", ending)], [4, ("MODIFIED", node("a", 0))]],
            pods=[[pod("a")], []],
        )
        assert gpus(api.follow({"a": None})) == {"a": None}
        assert api.requests == [*LOOK, "watch pods 400 for 60", *LOOK, "watch nodes 600 for 60", *LOOK]
        assert api.now == 7

    @pytest.mark.parametrize("of", ["new", "old"])
    @pytest.mark.parametrize("ready", [True, False])
    def test_a_pod_that_stays_is_waited_for_although_nothing_is_offered(self, of, ready):
        api = ScriptedApi([[node("a", 0)]], pods=[[pod("a", of=of, ready=ready)]])
        api.follow({"a": None}, timeout=20)
        assert api.now >= 20

    def test_pods_of_others_may_stay(self):
        api = ScriptedApi([[node("a", 0)]], pods=[[pod("a", owners=())]])
        api.follow({"a": None})
        assert api.requests == LOOK

    def test_there_is_no_daemonset(self):
        api = ScriptedApi([[node("a", 0)]], daemonsets=[None])
        api.follow({"a": None})
        assert api.now == 0


def test_a_specification_that_its_controller_has_not_seen():
    new, old = pod("a", of="newer"), [pod("a")]
    api = ScriptedApi(
        [[node("a", 2)]],
        daemonsets=[daemonset(2, observed=1), daemonset(2, observed=1), daemonset(2)],
        revisions=[[revision(2, "new"), revision(3, "newer")]],
        pods=[old, [new]],
        watches=[[("MODIFIED", new)]],
    )
    assert "a" in api.follow({"a": TWO}).rollout.serving()
    assert api.requests[:6] == ["nodes", "daemonset", "daemonset", "daemonset", "revisions", "pods"]
    assert api.now < 5


def test_nobody_waits_for_a_daemonset_that_is_not_there():
    api = ScriptedApi([[node("a", 2)]], daemonsets=[None])
    assert api.follow({"a": TWO}).rollout.daemonset is None
    assert api.requests == ["nodes", "daemonset"]
    assert api.now == 0


class TestReport:
    """A plugin that was restarted between two reports of its kubelet: the node may still show what was."""

    STALE = node("a", 2, heartbeat="2026-01-01T09:59:59Z")

    def test_it_shows_that_nothing_is_there(self):
        api = ScriptedApi([[self.STALE], [node("a", 0)]], [[7, ("MODIFIED", node("a", 0))]])
        assert gpus(api.follow({"a": TWO}, timeout=60)) == {"a": None}
        assert api.now >= 60

    def test_it_shows_that_all_is_there(self):
        api = ScriptedApi([[self.STALE], [node("a", 2)]], [[7, ("MODIFIED", node("a", 2))]])
        api.follow({"a": TWO})
        assert api.now == 7

    def test_nothing_has_changed(self):
        api = ScriptedApi([[self.STALE]])
        api.follow({"a": TWO})
        assert 15 <= api.now < 20
        assert api.requests == [*LOOK, "watch nodes 100 for 15", *LOOK]

    def test_a_proxy_ends_every_watch_at_once(self):
        api = ScriptedApi([[self.STALE]], [[]] * 99)
        api.follow({"a": TWO})
        assert 15 <= api.now < 20


def test_a_version_that_is_too_old_is_listed_again():
    api = ScriptedApi([[node("a", 0)], [node("a", 2)]], [[Gone("too old")]])
    assert gpus(api.follow({"a": TWO})) == {"a": "2"}
    assert api.now < 2


def test_a_server_that_restarts():
    api = ScriptedApi([[node("a", 0)], Unreachable("refused"), [node("a", 2)]], [[Unreachable("refused")], [], []])
    assert gpus(api.follow({"a": TWO})) == {"a": "2"}


def test_a_server_that_is_not_there():
    with pytest.raises(Unreachable):
        ScriptedApi([Unreachable("refused")]).follow({"a": TWO})


def test_a_server_that_stays_away():
    api = ScriptedApi([[node("a", 0)], Unreachable("refused")], [[Unreachable("refused")]])
    with pytest.raises(Unreachable):
        api.follow({"a": TWO}, timeout=10)
    assert 10 <= api.now < 15


def test_what_was_watched_before_the_server_went_away_is_not_believed():
    api = ScriptedApi([[node("a", 0)], Unreachable("refused"), [node("a", 0)]], [[5, ("MODIFIED", node("a", 2))]])
    assert gpus(api.follow({"a": TWO}, timeout=20)) == {"a": None}
    assert api.now >= 20


def test_what_was_watched_does_not_outlive_a_server_that_stays_away():
    api = ScriptedApi([[node("a", 0)], Unreachable("refused")], [[5, ("MODIFIED", node("a", 2))]])
    with pytest.raises(Unreachable):
        api.follow({"a": TWO}, timeout=20)


def test_a_server_that_can_be_asked_but_not_be_watched():
    api = ScriptedApi([[node("a", 0)]] * 3 + [[node("a", 2)]], [[Unreachable("refused")]] * 99)
    assert gpus(api.follow({"a": TWO})) == {"a": "2"}
    assert api.now < 5


def test_a_kubelet_gets_its_time_to_report_after_the_server_was_away():
    stale = node("a", 2, heartbeat="2026-01-01T09:59:59Z")
    api = ScriptedApi([[stale], *[Unreachable("refused")] * 8, [stale], [node("a", 0)]])
    assert gpus(api.follow({"a": TWO}, timeout=60)) == {"a": None}


def test_the_time_is_over():
    api = ScriptedApi([[node("a", 2), node("b", 0)]])
    assert gpus(api.follow({"a": TWO, "b": TWO})) == {"a": "2", "b": None}
    assert api.requests == [*LOOK, "watch nodes 100 for 60", *LOOK, "watch nodes 600 for 39", *LOOK]
    assert 100 <= api.now < 105


def test_nobody_waits_for_a_node_that_is_gone():
    api = ScriptedApi([[node("a", 2), node("b", 0)], [node("a", 2)]], [[("DELETED", node("b", 0))]])
    assert set(api.follow({"a": TWO, "b": TWO}).nodes) == {"a"}
    assert api.now < 100
