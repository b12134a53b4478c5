# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.errors import KubeError
from ansible_collections.kubegpu.nvidia.plugins.modules import node_resources

POD = {
    "metadata": {"name": "plugin-x"},
    "spec": {"nodeName": "n2"},
    "status": {
        "phase": "Running",
        "containerStatuses": [
            {"name": "ctr", "ready": False, "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
        ],
    },
}


class FakeApi:
    """n1 offers two GPUs, n2 none, for ever."""

    def __init__(self, pods=(POD,)):
        self.listed_pods = pods
        self.logs = []

    def __call__(self, options):
        return self

    def nodes(self):
        ready = [{"type": "Ready", "status": "True"}]
        return [
            {
                "metadata": {"name": name, "resourceVersion": "1"},
                "spec": {},
                "status": {"allocatable": allocatable, "conditions": ready},
            }
            for name, allocatable in {"n1": {"cpu": "2", "nvidia.com/gpu": "2"}, "n2": {"cpu": "2"}}.items()
        ], "1"

    def watch_nodes(self, version, seconds):
        return iter(())

    def pods(self, namespace, selector):
        if isinstance(self.listed_pods, Exception):
            raise self.listed_pods
        return list(self.listed_pods)

    def warnings(self, namespace, pod):
        return [{"reason": "BackOff", "message": "Back-off restarting failed container"}]

    def log(self, namespace, pod, container, *, lines, previous):
        self.logs.append((pod, container, previous))
        return ["No devices found. Waiting indefinitely."]


def gpus(count, **more):
    return [{"uuid": f"GPU-{index}", "pci_address": "0000:1a:00.0", **more} for index in range(count)]


def run(monkeypatch, capfd, api, nodes, *, check=False, **options):
    monkeypatch.setattr(node_resources, "Api", api)
    given = {"nodes": [{"name": name, "gpus": found} for name, found in nodes.items()], "timeout": 1, **options}
    with patch_module_args({**given, "_ansible_check_mode": check}), pytest.raises(SystemExit):
        node_resources.main()
    return json.loads(capfd.readouterr().out)


def test_ready(monkeypatch, capfd):
    result = run(monkeypatch, capfd, FakeApi(), {"n1": gpus(2), "n2": []})
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


def test_the_reasons(monkeypatch, capfd):
    api = FakeApi()
    wanted = {"n1": gpus(2), "n2": gpus(1), "n3": gpus(1)}
    result = run(monkeypatch, capfd, api, wanted, namespace="nvidia", pod_selector="app=plugin")
    assert result["failed"] is True
    assert "2 of 3 nodes do not offer the expected GPUs" in result["msg"]
    assert "n2: wanted nvidia.com/gpu: 1; found nothing of nvidia.com/*." in result["msg"]
    assert "runtimeClassName nvidia" in result["msg"]
    assert api.logs == [("plugin-x", "ctr", True)]
    assert result["reasons"]["n3"] == ["The cluster has no such node (any more)."]
    assert result["nodes"]["n1"]["ready"] is True


def test_pods_that_may_not_be_read(monkeypatch, capfd):
    api = FakeApi(KubeError("pods is forbidden."))
    result = run(monkeypatch, capfd, api, {"n2": gpus(1)}, namespace="nvidia", pod_selector="app=plugin")
    assert "n2: wanted" in result["msg"]
    assert "pods is forbidden" in result["msg"]


def test_a_broken_gpu_is_named_and_not_counted(monkeypatch, capfd):
    broken = {"error": {"error": "GPU_IS_LOST", "code": 15, "message": "it has fallen off the bus"}}
    result = run(monkeypatch, capfd, FakeApi(), {"n1": gpus(2) + gpus(1, **broken)})
    assert result["nodes"]["n1"]["ready"] is True
    assert "n1: not counted is GPU GPU-0 (0000:1a:00.0): it has fallen off the bus" in json.dumps(result["warnings"])


def test_mig_is_refused(monkeypatch, capfd):
    result = run(monkeypatch, capfd, FakeApi(), {"n1": gpus(1, mig={"current": "enabled"})})
    assert result["msg"].startswith("n1: GPU GPU-0")
