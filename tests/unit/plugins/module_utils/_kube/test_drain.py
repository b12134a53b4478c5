# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.drain import Drain
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.errors import Unreachable
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._kube.fake_cluster import (
    FakeCluster,
    over_budget,
    pod,
    refusal,
)


def drain(cluster, *nodes, everything=False):
    return Drain(cluster, nodes or ("n1",), everything=everything, clock=cluster.clock, pause=cluster.pause)


def bring_about(cluster, *nodes, timeout=20, grace_period=None, everything=False):
    return drain(cluster, *nodes, everything=everything).bring_about(timeout, grace_period)


def failure(cluster, *nodes, **options):
    with pytest.raises(KubegpuError) as raised:
        bring_about(cluster, *nodes, **options)
    return raised.value


@pytest.mark.parametrize("names", [[], ["a"], ["a", "b"]], ids=["no pod", "one pod", "two pods"])
def test_pods_are_evicted_and_waited_for(names):
    cluster = FakeCluster(*(pod(name) for name in names), ends_after=5)
    result = bring_about(cluster)
    assert not cluster.pods
    assert result["changed"] is bool(names)
    assert result["evicted"] == {"n1": [f"ns/{name}" for name in names]}
    assert result["remaining"] == {"n1": []}
    assert result["diff"] == {"before": {"n1": [f"ns/{name}" for name in names]}, "after": {"n1": []}}
    # Once each, and no longer than it takes.
    assert [name for _now, name, _grace in cluster.evictions] == names
    assert cluster.now == (6 if names else 0)


def test_a_budget_that_never_gives_a_pod_free_holds_up_no_other():
    cluster = FakeCluster(*(pod(name) for name in "abcd"))
    cluster.refuses = {
        "a": lambda: over_budget("of-a") if "b" in cluster.names() else None,
        "d": lambda: over_budget("of-d"),
    }
    error = failure(cluster)
    assert cluster.names() == ["d"]
    assert {(now, name) for now, name, _grace in cluster.evictions if name in "bc"} == {(0, "b"), (0, "c")}
    assert {now for now, name, _grace in cluster.evictions if name == "a"} == {0, 2}
    assert [now for now, name, _grace in cluster.evictions if name == "d"] == list(range(0, 20, 2))
    assert cluster.now == 20
    assert error.details["changed"] is True
    assert error.details["evicted"] == {"n1": ["ns/a", "ns/b", "ns/c"]}
    reason = "The disruption budget of-d needs 1 healthy pods and has 1 currently."
    assert error.details["remaining"] == {
        "n1": [{"pod": "ns/d", "owner": "ReplicaSet d-owner", "budget": "of-d", "reason": reason}]
    }
    assert "1 of 4 pods are still on their nodes after 20 seconds" in str(error)
    assert f"n1: ns/d of ReplicaSet d-owner: {reason}" in str(error)


def test_which_pods():
    cluster = FakeCluster(
        pod("of-a-daemon-set", owner="DaemonSet"),
        pod("of-the-kubelet", annotations={"kubernetes.io/config.mirror": "x"}),
        pod("ended", phase="Succeeded"),
        pod("failed", phase="Failed"),
        pod("without-gpu", gpus=0),
        pod("elsewhere", "n2"),
        pod("pending", phase="Pending"),
        pod("a"),
    )
    assert bring_about(cluster)["evicted"] == {"n1": ["ns/pending", "ns/a"]}
    assert bring_about(cluster, everything=True)["evicted"] == {"n1": ["ns/without-gpu"]}


def test_many_nodes():
    cluster = FakeCluster(pod("a"), pod("b", "n2"))
    result = bring_about(cluster, "n1", "n2", "n1")
    assert result["evicted"] == {"n1": ["ns/a"], "n2": ["ns/b"]}


def test_a_node_that_is_done_is_not_looked_at_again():
    cluster = FakeCluster(pod("a", "n2"))
    bring_about(cluster, "n1", "n2")
    assert cluster.looks == ["n1", "n2", "n2"]


def test_a_node_that_the_cluster_does_not_have():
    cluster = FakeCluster(pod("a"))
    with pytest.raises(KubegpuError, match="The cluster has no node n3; it has n1, n2"):
        drain(cluster, "n1", "n3")
    assert not cluster.evictions


def test_nodes_that_are_not_cordoned():
    assert drain(FakeCluster(cordoned=["n2"]), "n1", "n2").open_nodes == ["n1"]


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_one_of_the_same_name_is_another_pod(node):
    """A StatefulSet gives the name to the next pod as soon as it is free."""
    cluster = FakeCluster(pod("a", uid="old"), ends_after=1)
    successor = pod("a", node, uid="new")
    cluster.happens[2] = lambda: cluster.pods.update(new=successor)
    assert bring_about(cluster)["evicted"] == {"n1": ["ns/a"]}
    assert cluster.now == 2
    assert len(cluster.evictions) == 1
    assert cluster.pods == {"new": successor}


def test_a_pod_that_is_ending_already_is_waited_for():
    ending = pod("a", deletionTimestamp="2026-01-01T10:00:30Z", ends=7)
    cluster = FakeCluster(ending)
    result = bring_about(cluster)
    assert (result["changed"], result["evicted"], cluster.evictions) == (False, {"n1": []}, [])
    assert cluster.now == 8


def test_a_pod_that_a_finalizer_keeps_is_waited_for_even_if_it_has_ended():
    cluster = FakeCluster(pod("a", finalizers=["example.com/x", "example.com/y"]))
    cluster.happens[2] = lambda: cluster.pods["uid-a-n1"]["status"].update(phase="Succeeded")
    error = failure(cluster)
    assert "its grace period is over at 2026-01-01T10:00:30Z" in str(error)
    assert "finalizers example.com/x, example.com/y" in str(error)
    assert len(cluster.evictions) == 1
    assert error.details["changed"] is True
    assert error.details["evicted"] == {"n1": []}


def test_a_pod_that_ends_by_itself_is_not_waited_for():
    cluster = FakeCluster(pod("a"))
    cluster.refuses["a"] = lambda: over_budget("b")
    cluster.happens[4] = lambda: cluster.pods["uid-a-n1"]["status"].update(phase="Succeeded")
    result = bring_about(cluster)
    assert cluster.now == 4
    assert (result["changed"], result["evicted"], result["remaining"]) == (False, {"n1": []}, {"n1": []})


def test_a_pod_that_vanished_before_it_was_evicted():
    cluster = FakeCluster(pod("a"))
    cluster.refuses["a"] = lambda: refusal(404)
    result = bring_about(cluster)
    assert (result["changed"], result["evicted"], len(cluster.evictions)) == (False, {"n1": []}, 1)


@pytest.mark.parametrize(
    "error",
    [
        refusal(409, "the UID in the precondition"),
        refusal(429, "too many requests"),
        refusal(500, "This pod has more than one PodDisruptionBudget"),
        refusal(403, "forbidden", ("NamespaceTerminating", "namespace ns is being terminated")),
        Unreachable("no answer"),
    ],
    ids=str,
)
def test_what_is_tried_again(error):
    cluster = FakeCluster(pod("a"), pod("b"))
    cluster.refuses["a"] = lambda: error if cluster.now < 4 else None
    assert bring_about(cluster)["evicted"] == {"n1": ["ns/a", "ns/b"]}
    cluster = FakeCluster(pod("a"), pod("b"))
    cluster.refuses["a"] = lambda: error
    final = failure(cluster)
    assert cluster.names() == ["a"]
    assert final.details["remaining"]["n1"][0]["budget"] is None
    assert final.details["remaining"]["n1"][0]["reason"] == str(error)
    assert "budget gives" not in str(final)


@pytest.mark.parametrize("status", [401, 403])
def test_what_is_not_allowed_is_not_tried_again(status):
    cluster = FakeCluster(pod("a"), pod("b"))
    cluster.refuses["b"] = lambda: refusal(status, "forbidden")
    error = failure(cluster)
    assert cluster.now == 0
    assert f"{status}, forbidden" in str(error)
    assert error.details["changed"] is True
    assert [each["pod"] for each in error.details["remaining"]["n1"]] == ["ns/a", "ns/b"]


@pytest.mark.parametrize("away", [Unreachable("restarting"), refusal(410, "that page is too old")], ids=str)
def test_a_server_that_gives_no_answer_for_a_while(away):
    cluster = FakeCluster(pod("a"))
    cluster.no_answers = {2: away, 3: away}
    cluster.refuses["a"] = lambda: away if cluster.now else None
    assert bring_about(cluster)["evicted"] == {"n1": ["ns/a"]}
    assert cluster.now == 6


def test_a_server_that_gives_no_answer_any_more():
    cluster = FakeCluster(pod("a"))
    away = Unreachable("the server is away")
    cluster.no_answers = dict.fromkeys(range(2, 20), away)
    cluster.refuses["a"] = lambda: away if cluster.now else None
    error = failure(cluster)
    assert "the server is away" in str(error)
    assert [each["pod"] for each in error.details["remaining"]["n1"]] == ["ns/a"]


def test_when_the_time_is_over_no_other_pod_is_asked_for():
    cluster = FakeCluster(pod("a"), pod("b"))

    def slow():
        cluster.now += 10
        return refusal(500, "the webhook gave no answer")

    cluster.refuses["a"] = slow
    error = failure(cluster, timeout=10)
    assert [name for _now, name, _grace in cluster.evictions] == ["a"]
    assert error.details["remaining"]["n1"][1]["reason"] == ""
    assert "ns/b of ReplicaSet b-owner: There was no time" in str(error)


def test_the_last_look_counts():
    cluster = FakeCluster(pod("a"), ends_after=3)
    assert bring_about(cluster, timeout=3)["evicted"] == {"n1": ["ns/a"]}
    assert cluster.now == 3


@pytest.mark.parametrize("grace_period", [None, 0, 30])
def test_the_grace_period(grace_period):
    cluster = FakeCluster(pod("a"))
    bring_about(cluster, grace_period=grace_period)
    assert cluster.evictions == [(0, "a", grace_period)]


def test_a_pod_that_nobody_would_make_anew():
    cluster = FakeCluster(pod("a"), pod("b", owner=None), pod("c", "n2", owner=None))
    with pytest.raises(KubegpuError) as raised:
        drain(cluster, "n1", "n2").refuse_unmanaged()
    for text in ("n1: ns/b\n", "n2: ns/c\n", "nothing was evicted", "force"):
        assert text in str(raised.value)
    assert "ns/a" not in str(raised.value)
    assert not cluster.evictions
    details = raised.value.details
    assert (details["changed"], details["evicted"]) == (False, {"n1": [], "n2": []})
    assert [each["pod"] for each in details["remaining"]["n1"]] == ["ns/a", "ns/b"]
    assert bring_about(cluster, "n1", "n2")["evicted"] == {"n1": ["ns/a", "ns/b"], "n2": ["ns/c"]}


@pytest.mark.parametrize(
    "found",
    [
        pod("a", owner=None, deletionTimestamp="2026-01-01T10:00:30Z"),
        pod("a", owner=None, gpus=0),
        pod("a", owner=None, phase="Succeeded"),
        pod("a", owner=None, annotations={"kubernetes.io/config.mirror": "x"}),
    ],
    ids=["ending", "no GPU", "ended", "static"],
)
def test_nobody_is_refused_for_a_pod_that_is_not_to_be_evicted(found):
    drain(FakeCluster(found)).refuse_unmanaged()


def test_trying_out():
    cluster = FakeCluster(
        pod("a"), pod("b"), pod("c", deletionTimestamp="2026-01-01T10:00:30Z"), pod("d"), dry_run=True
    )
    cluster.refuses = {"b": lambda: over_budget("of-b"), "d": lambda: refusal(404)}
    result = drain(cluster).try_out(7)
    assert result["changed"] is True
    assert result["evicted"] == {"n1": ["ns/a"]}
    assert [(each["pod"], each["budget"]) for each in result["remaining"]["n1"]] == [("ns/b", "of-b")]
    assert result["diff"]["after"] == {"n1": ["ns/b"]}
    assert cluster.evictions == [(0, "a", 7), (0, "b", 7), (0, "d", 7)]
    assert (cluster.now, len(cluster.looks)) == (0, 1)


def test_trying_out_what_is_not_allowed():
    cluster = FakeCluster(pod("a"), dry_run=True)
    cluster.refuses["a"] = lambda: refusal(403, "forbidden")
    with pytest.raises(KubegpuError, match="403, forbidden") as raised:
        drain(cluster).try_out(None)
    assert [each["pod"] for each in raised.value.details["remaining"]["n1"]] == ["ns/a"]


def test_trying_out_when_nothing_is_to_be_evicted():
    cluster = FakeCluster(pod("c", deletionTimestamp="2026-01-01T10:00:30Z"), dry_run=True)
    assert drain(cluster).try_out(None)["changed"] is False
