# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.modules import node_resources
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._kube.fake_objects import (
    daemonset,
    node,
    pod,
    revision,
)

BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff"}}
PLUGIN = {"namespace": "nvidia", "daemonset": "plugin"}


class FakeApi:
    """n1 offers two GPUs, n2 none, for ever."""

    def __init__(self, *pods, refuse=None, deployed=True, logs=None):
        self.listed_pods, self.deployed, self.refuse = pods, deployed, refuse
        self.logs = logs or {False: ["starting"], True: ["No devices found. Waiting indefinitely."]}
        self.read_logs = []

    def __call__(self, options):
        return self

    def nodes(self):
        return [node("n1", 2), node("n2", 0)], "1"

    def daemon_set(self, namespace, name):
        return daemonset() if self.deployed else None

    def revisions(self, namespace, selector):
        return [revision(2, "new"), revision(1, "old")]

    def pods(self, namespace, selector):
        return list(self.listed_pods), "1"

    def watch_nodes(self, version, seconds):
        return iter(())

    def watch_pods(self, namespace, selector, version, seconds):
        return iter(())

    def warnings(self, namespace, pod):
        if self.refuse:
            raise KubegpuError(self.refuse)
        return [{"reason": "BackOff", "message": "Back-off restarting failed container"}]

    def log(self, namespace, pod, container, *, lines, previous=False):
        if self.refuse:
            raise KubegpuError(self.refuse)
        self.read_logs.append((namespace, pod, container, previous))
        return self.logs[previous]


def gpus(count, **more):
    return [{"uuid": f"GPU-{index}", "pci_address": "0000:1a:00.0", **more} for index in range(count)]


def run(monkeypatch, capfd, api, nodes, *, check=False, **options):
    monkeypatch.setattr(node_resources, "Api", api)
    given = {"nodes": [{"name": name, "gpus": found} for name, found in nodes.items()], "timeout": 1, **options}
    with patch_module_args({**given, "_ansible_check_mode": check}), pytest.raises(SystemExit):
        node_resources.main()
    return json.loads(capfd.readouterr().out)


@pytest.mark.parametrize("plugin", [{}, PLUGIN])
def test_ready(monkeypatch, capfd, plugin):
    result = run(monkeypatch, capfd, FakeApi(pod("n1")), {"n1": gpus(2), "n2": []}, **plugin)
    assert result["changed"] is False
    assert result["nodes"] == {
        "n1": {"expected": {"nvidia.com/gpu": 2}, "allocatable": {"nvidia.com/gpu": 2}, "ready": True},
        "n2": {"expected": {}, "allocatable": {}, "ready": True},
    }


def test_check_mode_looks_once(monkeypatch, capfd):
    result = run(monkeypatch, capfd, FakeApi(), {"n1": gpus(1), "n2": []}, check=True, timeout=300)
    assert "failed" not in result
    assert result["elapsed"] < 1
    assert {name: node["ready"] for name, node in result["nodes"].items()} == {"n1": False, "n2": True}


@pytest.mark.parametrize("names", [{"namespace": "nvidia"}, {"daemonset": "plugin"}])
def test_a_daemonset_has_a_namespace(monkeypatch, capfd, names):
    assert "required together" in run(monkeypatch, capfd, FakeApi(), {"n1": gpus(2)}, **names)["msg"]


def test_no_daemonset(monkeypatch, capfd):
    api = FakeApi(deployed=False)
    result = run(monkeypatch, capfd, api, {"n1": gpus(2)}, timeout=300, **PLUGIN)
    assert "There is no DaemonSet nvidia/plugin" in result["msg"]
    assert result["elapsed"] < 1
    result = run(monkeypatch, capfd, api, {"n1": gpus(2)}, check=True, **PLUGIN)
    assert "failed" not in result
    assert result["nodes"]["n1"]["ready"] is False


def test_the_new_pod_cannot_start(monkeypatch, capfd):
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    api = FakeApi(pod("n1", ready=False, state=waiting))
    result = run(monkeypatch, capfd, api, {"n1": gpus(2)}, **PLUGIN)
    assert result["failed"] is True
    assert result["nodes"]["n1"]["ready"] is False
    assert "ImagePullBackOff: no such image" in result["msg"]
    assert api.read_logs == []


def test_the_old_pod_is_still_there(monkeypatch, capfd):
    api = FakeApi(pod("n1", of="old"))
    result = run(monkeypatch, capfd, api, {"n1": gpus(2)}, **PLUGIN)
    assert result["failed"] is True
    assert "runs an old revision" in result["msg"]
    assert api.read_logs == []


def test_the_reasons(monkeypatch, capfd):
    api = FakeApi(pod("n1"), pod("n2", ready=False, restartCount=2, state=BACK_OFF))
    wanted = {"n1": gpus(2), "n2": gpus(1), "n3": gpus(1)}
    result = run(monkeypatch, capfd, api, wanted, **PLUGIN)
    assert result["failed"] is True
    assert "2 of 3 nodes do not offer the expected GPUs" in result["msg"]
    assert "n2: wanted nvidia.com/gpu: 1; found no nvidia.com/gpu or nvidia.com/mig-*." in result["msg"]
    assert "runtimeClassName nvidia" in result["msg"]
    assert result["reasons"]["n3"] == ["The cluster has no such node (any more)."]
    assert result["nodes"]["n1"]["ready"] is True


ENDED = {"terminated": {"reason": "Error", "exitCode": 1}}
LINE = "No devices found"


@pytest.mark.parametrize(
    "container, logs, read",
    [
        ({"state": BACK_OFF, "restartCount": 2}, {True: [LINE]}, [True]),
        ({"state": BACK_OFF, "lastState": ENDED, "restartCount": 0}, {True: [LINE]}, [True]),
        ({"state": ENDED, "restartCount": 0}, {False: [LINE]}, [False]),
        ({"state": ENDED, "restartCount": 3}, {False: [LINE]}, [False]),
        ({"state": {"running": {}}, "restartCount": 3}, {False: [], True: [LINE]}, [False, True]),
        ({"state": {"running": {}}, "restartCount": 3}, {False: [LINE]}, [False]),
    ],
    ids=["waits", "waits for its first restart", "ended first", "ended again", "has just started", "runs"],
)
def test_the_log_is_that_of_the_run_that_says_something(monkeypatch, capfd, container, logs, read):
    api = FakeApi(pod("n2", ready=False, **container), logs=logs)
    result = run(monkeypatch, capfd, api, {"n2": gpus(1)}, **PLUGIN)
    assert [previous for *_pod, previous in api.read_logs] == read
    assert LINE in result["msg"]
    assert "runtimeClassName nvidia" in result["msg"]


def test_what_may_not_be_read_hides_nothing_else(monkeypatch, capfd):
    api = FakeApi(pod("n2", ready=False, restartCount=2, state=BACK_OFF), refuse="events are forbidden.")
    result = run(monkeypatch, capfd, api, {"n2": gpus(1)}, **PLUGIN)
    for text in ("n2: wanted", "CrashLoopBackOff", "events are forbidden"):
        assert text in result["msg"]


def test_a_broken_gpu_is_named_and_not_counted(monkeypatch, capfd):
    broken = {"error": {"error": "GPU_IS_LOST", "code": 15, "message": "it has fallen off the bus"}}
    result = run(monkeypatch, capfd, FakeApi(), {"n1": gpus(2) + gpus(1, **broken)})
    assert result["nodes"]["n1"]["ready"] is True
    assert "n1: not counted is GPU GPU-0 (0000:1a:00.0): it has fallen off the bus" in json.dumps(result["warnings"])


def sliced(*profiles):
    instances = [{"profile": profile, "compute_instances": [{"profile": profile}]} for profile in profiles]
    return gpus(1, mig={"current": "enabled", "pending": "enabled", "instances": instances})


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, {"nvidia.com/mig-1g.10gb": 2}),
        ({"strategy": "mixed"}, {"nvidia.com/mig-1g.10gb": 2}),
        ({"strategy": "single"}, {"nvidia.com/gpu": 2}),
        ({"strategy": "none"}, {"nvidia.com/gpu": 1}),
    ],
)
def test_the_strategy(monkeypatch, capfd, options, expected):
    result = run(monkeypatch, capfd, FakeApi(), {"n1": sliced("1g.10gb", "1g.10gb")}, check=True, **options)
    assert result["nodes"]["n1"]["expected"] == expected


def test_a_node_that_the_plugin_could_not_serve_keeps_nobody_from_the_others(monkeypatch, capfd):
    api = FakeApi(pod("n1"), pod("n2"))
    nodes = {"n2": sliced("1g.10gb", "3g.40gb"), "n1": gpus(2)}
    result = run(monkeypatch, capfd, api, nodes, strategy="single", **PLUGIN)
    assert result["failed"] is True
    assert result["msg"].startswith("n2: this node has MIG devices of different profiles: 1g.10gb, 3g.40gb.")
    assert "\n" not in result["msg"]
    assert result["nodes"]["n1"]["ready"] is True


def test_in_check_mode_what_is_wrong_with_the_instances_may_be_what_would_be_mended(monkeypatch, capfd):
    nodes = {"n1": sliced("1g.10gb", "3g.40gb")}
    result = run(monkeypatch, capfd, FakeApi(), nodes, check=True, strategy="single", timeout=300)
    assert not result.get("failed")
    assert "n1: this node has MIG devices of different profiles" in str(result["warnings"])


def test_mig_instances_that_nobody_knows(monkeypatch, capfd):
    result = run(monkeypatch, capfd, FakeApi(), {"n1": gpus(1, mig={"current": "enabled", "instances": None})})
    assert result["msg"].startswith("n1: GPU GPU-0")


def test_a_pod_that_does_not_leave(monkeypatch, capfd):
    api = FakeApi(pod("n2"))
    result = run(monkeypatch, capfd, api, {"n2": []}, **PLUGIN)
    assert result["failed"] is True
    assert api.read_logs == []
    assert result["nodes"]["n2"] == {"expected": {}, "allocatable": {}, "ready": False}
    assert "has to leave the node" in result["msg"]
    assert "The pod plugin-n2 is Running." in result["msg"]


def test_another_plugin_serves_a_node_that_ours_has_left(monkeypatch, capfd):
    result = run(monkeypatch, capfd, FakeApi(), {"n1": []}, **PLUGIN)
    assert result["failed"] is True
    assert "n1: wanted no nvidia.com/gpu or nvidia.com/mig-*; found nvidia.com/gpu: 2." in result["msg"]
    assert "another one offers these resources" in result["msg"]
