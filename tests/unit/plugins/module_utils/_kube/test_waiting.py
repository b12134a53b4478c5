# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.errors import Gone, Unreachable
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.waiting import follow_nodes


def node(name, gpus, version="1"):
    return {
        "metadata": {"name": name, "resourceVersion": version},
        "status": {"allocatable": {"nvidia.com/gpu": str(gpus)}},
    }


def all_have_two(nodes):
    return all(item["status"]["allocatable"]["nvidia.com/gpu"] == "2" for item in nodes.values())


class ScriptedApi:
    """Answers from a script: a list of nodes for each list request, a list of events for each watch.

    An exception in a script is raised, a number is seconds that pass.
    """

    def __init__(self, lists, watches=()):
        self.now = 0.0
        self.lists, self.watches = list(lists), list(watches)
        self.requests = []

    def clock(self):
        return self.now

    def pause(self, seconds):
        self.now += seconds

    def nodes(self):
        self.requests.append("list")
        answer = self.lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer, str(100 * len(self.requests))

    def watch_nodes(self, version, seconds):
        self.requests.append(f"watch {version} for {seconds:.0f}")
        for event in self.watches.pop(0) if self.watches else [seconds]:
            if isinstance(event, Exception):
                raise event
            if isinstance(event, (int, float)):
                self.now += event
            else:
                yield event

    def follow(self, names, timeout=100):
        return follow_nodes(self, names, timeout, all_have_two, clock=self.clock, pause=self.pause)


def test_ready_at_once():
    api = ScriptedApi([[node("a", 2), node("b", 2), node("other", 0)]])
    assert set(api.follow({"a", "b"})) == {"a", "b"}
    assert api.requests == ["list"]


def test_one_look_without_a_timeout():
    api = ScriptedApi([[node("a", 0)]])
    assert api.follow({"a"}, timeout=0)["a"]["status"]["allocatable"]["nvidia.com/gpu"] == "0"
    assert api.requests == ["list"]


def test_one_watch_for_all():
    events = [
        5,
        ("MODIFIED", node("a", 2)),
        ("MODIFIED", node("other", 0)),
        ("BOOKMARK", {"metadata": {"resourceVersion": "120"}}),
        ("ADDED", node("b", 2)),
        RuntimeError("nobody reads on"),
    ]
    api = ScriptedApi([[node("a", 0), node("b", 0)]], [events])
    assert all_have_two(api.follow({"a", "b"}))
    assert api.requests == ["list", "watch 100 for 60"]


def test_a_watch_that_ends_is_resumed_where_it_was():
    api = ScriptedApi([[node("a", 0)]], [[("MODIFIED", node("a", 1, "117"))], [("MODIFIED", node("a", 2, "118"))]])
    assert all_have_two(api.follow({"a"}))
    assert api.requests == ["list", "watch 100 for 60", "watch 117 for 60"]


def test_a_version_that_is_too_old_is_listed_again():
    api = ScriptedApi([[node("a", 0)], [node("a", 0)]], [[Gone("too old")], [("MODIFIED", node("a", 2))]])
    assert all_have_two(api.follow({"a"}))
    assert api.requests == ["list", "watch 100 for 60", "list", "watch 300 for 60"]


def test_a_server_that_restarts():
    api = ScriptedApi([[node("a", 0)]], [[Unreachable("refused")], [("MODIFIED", node("a", 2))]])
    assert all_have_two(api.follow({"a"}))


def test_a_server_that_restarts_and_has_forgotten_the_version():
    lists = [[node("a", 0)], Unreachable("refused"), [node("a", 2)]]
    api = ScriptedApi(lists, [[Gone("too old")]])
    assert all_have_two(api.follow({"a"}))


def test_a_server_that_is_not_there():
    with pytest.raises(Unreachable):
        ScriptedApi([Unreachable("refused")]).follow({"a"})


def test_a_server_that_stays_away():
    api = ScriptedApi([[node("a", 0)]], [[Unreachable("refused")]] * 99)
    api.follow({"a"}, timeout=10)
    assert 10 <= api.now < 15


def test_the_time_is_over():
    api = ScriptedApi([[node("a", 2), node("b", 0)]])
    assert not all_have_two(api.follow({"a", "b"}))
    assert api.requests == ["list", "watch 100 for 60", "watch 100 for 39"]
    assert 100 <= api.now < 105


def test_nobody_waits_for_a_node_that_is_gone():
    api = ScriptedApi([[node("a", 2), node("b", 0)]], [[("DELETED", node("b", 0))]])
    assert set(api.follow({"a", "b"})) == {"a"}
    assert api.now < 100
