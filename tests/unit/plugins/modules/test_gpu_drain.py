# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube import drain
from ansible_collections.kubegpu.nvidia.plugins.modules import gpu_drain
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._kube.fake_cluster import (
    FakeCluster,
    over_budget,
    pod,
)


def run(monkeypatch, capfd, cluster, *, check=False, diff=True, **options):
    def api(_options, *, dry_run):
        cluster.dry_run = dry_run
        return cluster

    def on_its_clock(*arguments, **keywords):
        return drain.Drain(*arguments, **keywords, clock=cluster.clock, pause=cluster.pause)

    monkeypatch.setattr(gpu_drain, "Api", api)
    monkeypatch.setattr(gpu_drain, "Drain", on_its_clock)
    arguments = {"nodes": ["n1"], **options, "_ansible_check_mode": check, "_ansible_diff": diff}
    with patch_module_args(arguments), pytest.raises(SystemExit):
        gpu_drain.main()
    return json.loads(capfd.readouterr().out)


def warnings(result):
    return str(result.get("warnings", ""))


def test_pods_that_use_gpus(monkeypatch, capfd):
    cluster = FakeCluster(pod("a"), pod("b", gpus=0))
    result = run(monkeypatch, capfd, cluster)
    assert (result["changed"], result["evicted"]) == (True, {"n1": ["ns/a"]})
    assert result["diff"] == {"before": {"n1": ["ns/a"]}, "after": {"n1": []}}
    assert cluster.names() == ["b"]
    assert not warnings(result)


def test_all_pods(monkeypatch, capfd):
    cluster = FakeCluster(pod("a"), pod("b", gpus=0))
    assert run(monkeypatch, capfd, cluster, pods="all", diff=False).keys() >= {"evicted", "remaining"}
    assert not cluster.pods


def test_a_diff_only_when_asked(monkeypatch, capfd):
    assert "diff" not in run(monkeypatch, capfd, FakeCluster(pod("a")), diff=False)


def test_time_and_grace_period(monkeypatch, capfd):
    cluster = FakeCluster(pod("a"))
    cluster.refuses["a"] = lambda: over_budget("of-a")
    result = run(monkeypatch, capfd, cluster, timeout=7, grace_period=3)
    assert (result["failed"], cluster.now, cluster.evictions[0]) == (True, 7, (0, "a", 3))
    assert result["remaining"]["n1"][0]["budget"] == "of-a"


@pytest.mark.parametrize("check", [False, True])
def test_a_pod_without_a_controller(monkeypatch, capfd, check):
    cluster = FakeCluster(pod("a"), pod("b", owner=None))
    result = run(monkeypatch, capfd, cluster, check=check)
    assert "ns/b" in result["msg"]
    assert (result["failed"], cluster.evictions) == (True, [])
    result = run(monkeypatch, capfd, cluster, check=check, force=True)
    assert result["evicted"] == {"n1": ["ns/a", "ns/b"]}


def test_check_mode(monkeypatch, capfd):
    cluster = FakeCluster(pod("a"), pod("b"), cordoned=())
    cluster.refuses["b"] = lambda: over_budget("of-b")
    result = run(monkeypatch, capfd, cluster, check=True)
    assert cluster.dry_run is True
    assert (result["changed"], result["evicted"]) == (True, {"n1": ["ns/a"]})
    assert [each["pod"] for each in result["remaining"]["n1"]] == ["ns/b"]
    assert cluster.names() == ["a", "b"]
    # That the node is not cordoned yet is no news in a plan.
    assert not warnings(result)


def test_a_node_that_is_not_cordoned(monkeypatch, capfd):
    assert "n1 is not cordoned" in warnings(run(monkeypatch, capfd, FakeCluster(cordoned=["n2"])))


@pytest.mark.parametrize("option", ["timeout", "grace_period"])
def test_a_time_that_cannot_be(monkeypatch, capfd, option):
    cluster = FakeCluster(pod("a"))
    assert option in run(monkeypatch, capfd, cluster, **{option: -1})["msg"]
    assert not cluster.evictions
