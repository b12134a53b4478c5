# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.taints import wanted_taints, with_taints


def taint(key, effect="NoSchedule", **further):
    return {"key": key, "effect": effect, **further}


def absent(key, effect=None, **further):
    return {"key": key, "effect": effect, "state": "absent", **further}


FOREIGN = taint("other", "NoExecute", value="x", timeAdded="2026-01-01T10:00:00Z")
OURS = taint("a", value="1", timeAdded="2026-01-01T10:00:00Z")


@pytest.mark.parametrize(
    "current, given, expected",
    [
        ([], [taint("a")], [taint("a")]),
        ([], [taint("a", value="1")], [taint("a", value="1")]),
        ([FOREIGN], [taint("a")], [FOREIGN, taint("a")]),
        ([OURS, FOREIGN], [taint("a", value="1")], [OURS, FOREIGN]),
        ([OURS, FOREIGN], [taint("a", value="2")], [FOREIGN, taint("a", value="2")]),
        ([OURS], [taint("a")], [taint("a")]),
        ([taint("a")], [taint("a", value=None)], [taint("a")]),
        ([OURS], [taint("a", "NoExecute", value="1")], [OURS, taint("a", "NoExecute", value="1")]),
        ([FOREIGN, OURS], [absent("a")], [FOREIGN]),
        ([OURS, taint("a", "NoExecute")], [absent("a")], []),
        ([OURS, taint("a", "NoExecute")], [absent("a", "NoExecute")], [OURS]),
        ([OURS], [absent("a", value="another")], []),
        ([FOREIGN], [absent("a")], [FOREIGN]),
        ([OURS, FOREIGN], [absent("a"), taint("a", "NoExecute")], [FOREIGN, taint("a", "NoExecute")]),
        ([OURS], [], [OURS]),
    ],
)
def test_only_what_is_named_changes(current, given, expected):
    assert with_taints(current, wanted_taints(given)) == expected


@pytest.mark.parametrize(
    "given, text", [(taint("two words"), "no taint key"), (taint("a", value="two words"), "no value for the taint a")]
)
def test_refused(given, text):
    with pytest.raises(KubegpuError, match=text):
        wanted_taints([given])
