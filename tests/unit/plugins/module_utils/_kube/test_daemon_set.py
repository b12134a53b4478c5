# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.daemon_set import (
    Rollout,
    current_revision,
    node_of,
    selector_of,
)
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._kube.fake_objects import (
    daemonset,
    pod,
    revision,
)

OTHERS = [{"kind": "DaemonSet", "uid": "uid-2"}]
HISTORY = [revision(9, "old"), revision(10, "new"), revision(11, "of another", OTHERS)]


@pytest.mark.parametrize(
    "which, history, expected",
    [
        (daemonset(), HISTORY, "new"),
        (daemonset(), [revision(3, "old"), revision(2, "new")], "old"),
        (daemonset(generation=2, observed=1), HISTORY, None),
        (daemonset(), [], None),
    ],
    ids=["newest of its own", "rolled back", "not yet seen by the controller", "no history"],
)
def test_revision(which, history, expected):
    assert current_revision(which, history) == expected


@pytest.mark.parametrize(
    "which, serves",
    [
        (pod("n1"), True),
        (pod("n1", ready=False), False),
        (pod("n1", of="old"), False),
        (pod("n1", owners=OTHERS), False),
        (pod("n1", owners=None), False),
        (pod("n1", metadata={"deletionTimestamp": "2026-01-01T10:00:00Z"}), False),
    ],
    ids=["ready and current", "not ready", "old revision", "of another DaemonSet", "of nobody", "ends"],
)
def test_a_pod_that_serves_its_node(which, serves):
    rollout = Rollout(daemonset(), "new")
    rollout.note(which)
    assert ("n1" in rollout.serving()) is serves


def test_without_a_revision_nothing_serves():
    rollout = Rollout(daemonset())
    rollout.note(pod("n1"))
    assert not rollout.serving()


def test_selector():
    selector = {
        "matchLabels": {"app": "plugin", "x/y": "z"},
        "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["1", "2"]},
            {"key": "b", "operator": "NotIn", "values": ["3"]},
            {"key": "c", "operator": "Exists"},
            {"key": "d", "operator": "DoesNotExist"},
        ],
    }
    assert selector_of({"spec": {"selector": selector}}) == "app=plugin,x/y=z,a in (1,2),b notin (3),c,!d"


def test_a_pod_that_waits_for_its_node():
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    waiting = {"spec": {"affinity": {"nodeAffinity": required}}}
    assert node_of(waiting) == "n1"
    assert node_of({"spec": {}}) is None
    assert node_of({"spec": {"nodeName": "n2", **waiting["spec"]}}) == "n2"
