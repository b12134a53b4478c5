# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.daemon_set import Rollout
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.diagnosis import PluginPod, explain
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._kube import fake_objects

LABELS = {"example.com/gpu": "true", "example.com/clients": "run"}
PLUGIN = Rollout(fake_objects.daemonset(**LABELS), "new")


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
    metadata = {"name": "plugin-x", "labels": {"controller-revision-hash": "new"}}
    return {"metadata": metadata, "spec": {"nodeName": "n1"}, "status": status}


def test_no_node():
    assert explain(None, [], PLUGIN) == ["The cluster has no such node (any more)."]


def test_nobody_said_which_daemonset():
    assert explain(node(), [], None) == []


@pytest.mark.parametrize(
    "which, texts",
    [
        (
            node("Unknown", reason="NodeStatusUnknown", message="Kubelet stopped."),
            ["NodeStatusUnknown: Kubelet stopped."],
        ),
        (node(labels={}), ["gpu=true (the node has no such label)", "clients=run"]),
        (node(labels={**LABELS, "example.com/clients": "paused"}), ["run (the node has paused)"]),
        (node(taints=[{"key": "sku", "value": "gpu", "effect": "NoSchedule"}]), ["sku=gpu:NoSchedule"]),
        (node(taints=[{"key": "sku", "effect": "NoExecute"}]), ["sku:NoExecute"]),
    ],
)
def test_no_pod(which, texts):
    found = "\n".join(explain(which, [], PLUGIN))
    assert "No pod of the device plugin" in found
    for text in texts:
        assert text in found


@pytest.mark.parametrize(
    "labels, plugins, text",
    [
        (LABELS, [PluginPod(pod())], "still selects it by example.com/gpu=true, example.com/clients=run."),
        ({**LABELS, "example.com/clients": "paused"}, [PluginPod(pod())], "its pod has not ended yet."),
        ({**LABELS, "example.com/clients": "paused"}, [], "another one offers these resources"),
    ],
    ids=["selected", "ending", "gone"],
)
def test_a_plugin_that_has_to_be_away(labels, plugins, text):
    found = explain(node(labels=labels), plugins, PLUGIN, must_be_away=True)
    assert text in found[0]
    assert not any("wants the label" in sentence for sentence in found)
    assert any("The pod plugin-x is Running." in sentence for sentence in found) is bool(plugins)


@pytest.mark.parametrize(
    "taint, toleration, tolerated",
    [
        ({"key": "sku", "value": "gpu", "effect": "NoSchedule"}, {"operator": "Exists"}, True),
        ({"key": "sku", "value": "gpu", "effect": "NoSchedule"}, {"key": "sku", "operator": "Exists"}, True),
        ({"key": "sku", "value": "gpu", "effect": "NoSchedule"}, {"key": "sku", "value": "gpu"}, True),
        ({"key": "sku", "effect": "NoSchedule"}, {"key": "sku", "operator": "Equal", "value": ""}, True),
        ({"key": "sku", "effect": "NoExecute"}, {"key": "sku", "effect": "NoExecute"}, True),
        ({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, {"key": "other"}, True),
        ({"key": "sku", "effect": "PreferNoSchedule"}, {"key": "other"}, True),
        ({"key": "sku", "value": "gpu", "effect": "NoSchedule"}, {"key": "other", "operator": "Exists"}, False),
        ({"key": "sku", "value": "gpu", "effect": "NoSchedule"}, {"key": "sku", "value": "cpu"}, False),
        ({"key": "sku", "value": "gpu", "effect": "NoSchedule"}, {"key": "sku"}, False),
        ({"key": "sku", "effect": "NoExecute"}, {"operator": "Exists", "effect": "NoSchedule"}, False),
    ],
)
def test_only_taints_that_are_not_tolerated_are_blamed(taint, toleration, tolerated):
    daemonset = fake_objects.daemonset(**LABELS)
    daemonset["spec"]["template"]["spec"]["tolerations"] = [toleration]
    found = "\n".join(explain(node(taints=[taint]), [], Rollout(daemonset, "new")))
    assert ("taint" not in found) is tolerated


def test_a_cordoned_node_without_the_label_is_explained_by_the_label():
    cordoned = node(labels={}, taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}])
    found = "\n".join(explain(cordoned, [], PLUGIN))
    assert "wants the label" in found
    assert "taint" not in found


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
    found = "\n".join(explain(node(), [plugin], PLUGIN))
    for text in texts:
        assert text in found


def test_a_healthy_container_is_no_trouble():
    assert explain(node(), [PluginPod(pod(ready=True, restartCount=3, state={"running": {}}))], PLUGIN) == [
        "The pod plugin-x is Running."
    ]


def test_an_old_revision_says_what_it_waits_for():
    old, new = fake_objects.pod("n1", of="old"), fake_objects.pod("n9", ready=False)
    new["status"]["containerStatuses"][0].update(state={"waiting": {"reason": "ImagePullBackOff"}})
    rollout = Rollout(fake_objects.daemonset(), "new")
    rollout.note(old)
    assert "It runs an old revision of the DaemonSet." in explain(node(), [PluginPod(old)], rollout)
    rollout.note(new)
    found = explain(node(), [PluginPod(old)], rollout)
    assert (
        "It runs an old revision of the DaemonSet, which first waits for plugin-n9 on n9 (ImagePullBackOff)." in found
    )


def test_a_daemonset_that_replaces_nothing_by_itself():
    old = fake_objects.pod("n1", of="old")
    found = explain(node(), [PluginPod(old)], Rollout(fake_objects.daemonset(strategy="OnDelete"), "new"))
    assert "OnDelete: delete the pod" in "\n".join(found)


def test_a_pod_that_is_being_deleted():
    ending = fake_objects.pod("n1", metadata={"deletionTimestamp": "2026-01-01T10:00:00Z"})
    assert explain(node(), [PluginPod(ending)], PLUGIN) == ["The pod plugin-n1 is Running and is being deleted."]


def test_a_controller_that_sleeps():
    found = explain(node(), [PluginPod(pod())], Rollout(fake_objects.daemonset(2, observed=1)))
    assert "kube-controller-manager" in found[0]
    assert "old revision" not in "\n".join(found)


def test_the_cause_is_found_above_the_lines_that_are_shown():
    log = ["No devices found. Waiting indefinitely.", *(f"line {number}" for number in range(20))]
    found = explain(node(), [PluginPod(pod(ready=True), log=log)], PLUGIN)
    assert "runtimeClassName nvidia" in found[-1]
    assert "line 11" not in found[-2]
    assert "line 12" in found[-2]


@pytest.mark.parametrize(
    "line, advice",
    [
        ("No devices found. Waiting indefinitely.", "before the node's MIG instances were made"),
        ("failed to save CDI spec: invalid CDI Spec: invalid spec, no devices", "delete its pod"),
        ("MIG profile '1c.3g.40gb' does not match any resource patterns", "one compute instance of full size"),
        (
            "invalid MIG configuration: at least one device ...: device 0 has no MIG devices configured",
            "strategy single",
        ),
        ("invalid MIG configuration: more than one MIG device type present on node", "strategy single"),
        ("all devices on the node must be configured with the same migEnabled value", "strategy single"),
        ("error getting MIG device handle at index '0': Insufficient Permissions", "NVIDIA_MIG_MONITOR_DEVICES=all"),
    ],
)
def test_what_the_plugin_says_of_mig(line, advice):
    assert advice in explain(node(), [PluginPod(pod(ready=False, restartCount=3, state={}), log=[line])], PLUGIN)[-1]
