# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.diagnosis import PluginPod, explain, is_on

LABELS = {"nvidia.com/gpu.present": "true", "kubegpu.io/gpu-clients": "run"}


def node(ready="True", labels=None, taints=(), **condition):
    return {
        "metadata": {"name": "n1", "labels": LABELS if labels is None else labels},
        "spec": {"taints": list(taints)},
        "status": {"conditions": [{"type": "Ready", "status": ready, **condition}]},
    }


def pod(phase="Running", conditions=(), **container):
    status = {"phase": phase, "conditions": list(conditions)}
    if container:
        status["containerStatuses"] = [{"name": "ctr", **container}]
    return {"metadata": {"name": "plugin-x"}, "spec": {"nodeName": "n1"}, "status": status}


def test_no_node():
    assert explain(None, []) == ["The cluster has no such node (any more)."]


def test_nobody_said_which_pods():
    assert explain(node(), None) == []


@pytest.mark.parametrize(
    "which, texts",
    [
        (
            node("Unknown", reason="NodeStatusUnknown", message="Kubelet stopped."),
            ["NodeStatusUnknown: Kubelet stopped."],
        ),
        (node(labels={}), ["gpu.present=true (the node has no such label)", "gpu-clients=run"]),
        (node(labels={**LABELS, "kubegpu.io/gpu-clients": "paused"}), ["run (the node has paused)"]),
        (node(taints=[{"key": "sku", "value": "gpu", "effect": "NoSchedule"}]), ["sku=gpu:NoSchedule"]),
        (node(taints=[{"key": "sku", "effect": "NoExecute"}]), ["sku:NoExecute"]),
    ],
)
def test_no_pod(which, texts):
    found = "\n".join(explain(which, []))
    assert "No pod of the device plugin" in found
    for text in texts:
        assert text in found


@pytest.mark.parametrize(
    "plugin, texts",
    [
        (
            PluginPod(
                pod(
                    "Pending", [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "x."}]
                )
            ),
            ["Pending: Unschedulable: x."],
        ),
        (
            PluginPod(
                pod("Pending", ready=False, restartCount=0, state={"waiting": {"reason": "ContainerCreating"}}),
                warnings=['FailedCreatePodSandBox: no runtime for "nvidia" is configured'],
            ),
            ["ContainerCreating", "FailedCreatePodSandBox", "role container_toolkit"],
        ),
        (
            PluginPod(
                pod(
                    ready=False,
                    restartCount=0,
                    state={"waiting": {"reason": "ImagePullBackOff", "message": "no such host"}},
                )
            ),
            ["ImagePullBackOff: no such host", "kubegpu_registry"],
        ),
        (
            PluginPod(pod(ready=False, restartCount=7, state={}, lastState={"terminated": {"reason": "OOMKilled"}})),
            ["OOMKilled; 7 restarts"],
        ),
        (
            PluginPod(
                pod(ready=True, restartCount=0, state={"running": {}}),
                log=["first", "No devices found. Waiting indefinitely."],
            ),
            ["The pod plugin-x is Running.", "  first\n  No devices found", "runtimeClassName nvidia"],
        ),
    ],
)
def test_pod(plugin, texts):
    found = "\n".join(explain(node(), [plugin]))
    for text in texts:
        assert text in found


def test_a_healthy_container_is_no_trouble():
    assert explain(node(), [PluginPod(pod(ready=True, restartCount=3, state={"running": {}}))]) == [
        "The pod plugin-x is Running."
    ]


def test_a_pod_that_waits_for_its_node():
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    waiting = {"spec": {"affinity": {"nodeAffinity": required}}}
    assert is_on(waiting, "n1")
    assert not is_on(waiting, "n2")
    assert not is_on({"spec": {}}, "n1")
    assert not is_on({"spec": {"nodeName": "n2", **waiting["spec"]}}, "n1")
