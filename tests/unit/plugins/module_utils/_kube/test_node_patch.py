# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.node_patch import patch_for, shown, wanted_of

TAINT = {"key": "other", "effect": "NoExecute"}
NODE = {
    "metadata": {
        "name": "n1",
        "resourceVersion": "7",
        "labels": {"a": "1", "b": "2"},
        "annotations": {"a": "1"},
    },
    "spec": {"unschedulable": True, "taints": [TAINT]},
}
BARE = {"metadata": {"name": "n2", "resourceVersion": "7"}, "spec": {}}
NEW = {"key": "new", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    "node, given, patch",
    [
        (NODE, {}, {}),
        (BARE, {}, {}),
        (NODE, {"labels": {"a": "1"}, "annotations": {"a": "1"}, "unschedulable": True, "taints": [TAINT]}, {}),
        (BARE, {"labels": {"a": None}, "annotations": {"a": None}, "unschedulable": False, "taints": []}, {}),
        (NODE, {"labels": {"a": "1", "b": None}}, {"metadata": {"labels": {"b": None}}}),
        (NODE, {"annotations": {"a": "2"}}, {"metadata": {"annotations": {"a": "2"}}}),
        (NODE, {"unschedulable": False}, {"spec": {"unschedulable": False}}),
        (BARE, {"unschedulable": True}, {"spec": {"unschedulable": True}}),
        (NODE, {"unschedulable": None}, {}),
        # Without the version of the node, a taint that somebody sets at the same time would be lost.
        (NODE, {"taints": [NEW]}, {"metadata": {"resourceVersion": "7"}, "spec": {"taints": [TAINT, NEW]}}),
        (
            BARE,
            {"labels": {"a": "1"}, "annotations": {"b": "2"}, "unschedulable": True, "taints": [NEW]},
            {
                "metadata": {"labels": {"a": "1"}, "annotations": {"b": "2"}, "resourceVersion": "7"},
                "spec": {"unschedulable": True, "taints": [NEW]},
            },
        ),
    ],
)
def test_one_patch_of_what_differs(node, given, patch):
    assert patch_for(node, wanted_of(given)) == patch


def test_what_is_shown():
    patch = {"metadata": {"labels": {"b": None}, "annotations": {"c": "3"}}, "spec": {"unschedulable": False}}
    assert shown(NODE, patch) == {"labels": {"b": "2"}, "annotations": {}, "unschedulable": True}
    assert shown(BARE, {"spec": {"taints": [NEW]}}) == {"taints": []}
    assert shown(NODE, {"spec": {"taints": []}}) == {"taints": [TAINT]}
