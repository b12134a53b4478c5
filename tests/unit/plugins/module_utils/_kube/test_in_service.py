# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.in_service import state_of


def node(allocatable=None, labels=None, **spec):
    return {
        "metadata": {"name": "n1", "labels": labels},
        "spec": spec,
        "status": {"allocatable": {"cpu": "2", **(allocatable or {})}},
    }


def pod(name, limits=None, *, requests=None, init=None, phase="Running"):
    def container(amounts):
        return {"name": "ctr", "resources": {"limits": amounts} if amounts else {}}

    spec = {"nodeName": "n1", "containers": [container(limits)]}
    if requests:
        spec["containers"].append({"name": "second", "resources": {"requests": requests}})
    if init:
        spec["initContainers"] = [container(init)]
    return {"metadata": {"namespace": "default", "name": name}, "spec": spec, "status": {"phase": phase}}


GPU = {"nvidia.com/gpu": "1"}
SLICE = {"nvidia.com/mig-1g.10gb": "2"}


@pytest.mark.parametrize(
    "pods, gpu_pods",
    [
        ([pod("a", GPU)], ["default/a"]),
        ([pod("a", SLICE)], ["default/a"]),
        ([pod("a", {"nvidia.com/gpu.shared": "1"})], ["default/a"]),
        ([pod("a", init=GPU)], ["default/a"]),
        ([pod("a", requests=GPU)], ["default/a"]),
        ([pod("b", GPU), pod("a", GPU)], ["default/a", "default/b"]),
        ([pod("a", GPU, phase="Pending")], ["default/a"]),
        ([pod("a", GPU, phase="Unknown")], ["default/a"]),
        ([pod("a", GPU, phase="Succeeded")], []),
        ([pod("a", GPU, phase="Failed")], []),
        ([pod("a", {"nvidia.com/gpu": "0"})], []),
        ([pod("a", {"nvidia.com/hostdev": "1"})], []),
        ([pod("a", {"cpu": "1"}), pod("b")], []),
    ],
)
def test_gpu_pods(pods, gpu_pods):
    state = state_of(node(), pods)
    assert state["gpu_pods"] == gpu_pods
    assert state["in_service"] is bool(gpu_pods)


@pytest.mark.parametrize(
    "found, pods, reasons",
    [
        (node({"nvidia.com/gpu": "2"}), [], ["schedulable with nvidia.com/gpu: 2"]),
        (
            node({"nvidia.com/gpu": "1", "nvidia.com/mig-1g.10gb": "7", "nvidia.com/mig-3g.40gb": "0"}),
            [],
            ["schedulable with nvidia.com/gpu: 1, nvidia.com/mig-1g.10gb: 7"],
        ),
        (node({"nvidia.com/gpu": "2"}, unschedulable=True), [], []),
        (node({"nvidia.com/gpu": "2"}, unschedulable=True), [pod("a", GPU)], ["runs GPU pods default/a"]),
        (node({"nvidia.com/gpu": "0"}), [], []),
        (node(), [], []),
        (node({"nvidia.com/hostdev": "2"}), [], []),
        (node(), [pod("a", GPU)], ["runs GPU pods default/a"]),
        (
            node({"nvidia.com/gpu": "2"}),
            [pod("a", GPU)],
            ["schedulable with nvidia.com/gpu: 2", "runs GPU pods default/a"],
        ),
    ],
)
def test_reasons(found, pods, reasons):
    state = state_of(found, pods)
    assert state["reasons"] == reasons
    assert state["in_service"] is bool(reasons)


def test_a_sentence_names_some_of_many_pods():
    state = state_of(node(), [pod(f"job-{number}", GPU) for number in range(8)])
    assert state["reasons"] == [
        "runs GPU pods default/job-0, default/job-1, default/job-2, default/job-3, default/job-4 and 3 more"
    ]
    assert len(state["gpu_pods"]) == 8


def test_what_is_told_of_the_node():
    labels = {"kubegpu.io/gpu-clients": "run", "nvidia.com/gpu.present": "true", "team": "x", "nvidia.com.x/y": "z"}
    state = state_of(node({"nvidia.com/gpu": "2", "nvidia.com/mig-1g.10gb": "0"}, labels, unschedulable=True), [])
    assert state["node"] == "n1"
    assert state["schedulable"] is False
    assert state["labels"] == {"kubegpu.io/gpu-clients": "run", "nvidia.com/gpu.present": "true"}
    assert state["allocatable"] == {"nvidia.com/gpu": 2, "nvidia.com/mig-1g.10gb": 0}


def test_a_node_without_labels():
    assert state_of(node(), [])["labels"] == {}


@pytest.mark.parametrize(
    "spec, cordoned", [({}, False), ({"unschedulable": False}, False), ({"unschedulable": True}, True)]
)
def test_the_cordon(spec, cordoned):
    state = state_of(node(**spec), [])
    assert (state["cordoned"], state["schedulable"]) == (cordoned, not cordoned)


def test_our_annotations():
    found = node()
    assert state_of(found, [])["annotations"] == {}
    found["metadata"]["annotations"] = {"kubegpu.io/window": "{}", "nvidia.com/x": "y", "team": "x"}
    assert state_of(found, [])["annotations"] == {"kubegpu.io/window": "{}"}
