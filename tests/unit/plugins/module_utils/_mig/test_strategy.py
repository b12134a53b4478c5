# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.model import Instance
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.strategy import contradiction

ONE_G = Instance("1g.10gb", 0, (1,))
SEVEN = tuple(Instance("1g.10gb", start, (1,)) for start in range(7))
TWO = (Instance("3g.40gb", 0, (3,)), Instance("3g.40gb", 4, (3,)))
CUT = (Instance("3g.40gb", 0, (2, 1)),)
UNUSED = (Instance("3g.40gb", 4, ()),)
WHOLE = None


@pytest.mark.parametrize(
    "strategy, mps, layouts",
    [
        ("mixed", False, {}),
        ("mixed", False, {"A": WHOLE, "B": SEVEN, "C": TWO, "D": (), "E": UNUSED}),
        ("none", False, {"A": WHOLE, "B": WHOLE}),
        ("none", True, {"A": WHOLE}),
        ("single", True, {"A": WHOLE}),
        ("single", False, {}),
        ("single", False, {"A": WHOLE, "B": WHOLE}),
        ("single", False, {"A": SEVEN}),
        ("single", False, {"A": TWO, "B": TWO[:1]}),
        # The plugin looks at usable instances only.
        ("single", False, {"A": (*SEVEN[:3], *UNUSED)}),
    ],
)
def test_what_the_plugin_serves(strategy, mps, layouts):
    assert contradiction(strategy, mps, layouts) is None


@pytest.mark.parametrize(
    "strategy, mps, layouts, words",
    [
        ("mixed", True, {"A": WHOLE}, ["MPS", "mixed"]),
        # k8s-device-plugin v0.20.0: "MIG profile '1c.3g.40gb' does not match any resource patterns", and it ends.
        ("mixed", False, {"A": SEVEN, "B": CUT}, ["does not start", "parts of 3g.40gb on B"]),
        ("single", True, {"A": WHOLE, "B": SEVEN}, ["MPS", "wanted on B."]),
        ("none", True, {"A": SEVEN}, ["MPS", "wanted on A."]),
        ("none", False, {"A": WHOLE, "B": SEVEN, "C": ()}, ["would offer B, C as whole GPUs"]),
        ("single", False, {"A": WHOLE, "B": SEVEN}, ["but A would be without MIG"]),
        ("single", False, {"A": SEVEN, "B": ()}, ["but B would have none that can be used"]),
        ("single", False, {"A": SEVEN, "B": UNUSED}, ["but B would have none that can be used"]),
        ("single", False, {"A": SEVEN, "B": TWO}, ["1g.10gb on A", "3g.40gb on B"]),
        ("single", False, {"A": (ONE_G, Instance("1g.10gb+me", 1, (1,)))}, ["1g.10gb on A", "1g.10gb+me on A"]),
        ("single", False, {"A": CUT}, ["parts of 3g.40gb on A"]),
    ],
)
def test_what_the_plugin_cannot_serve(strategy, mps, layouts, words):
    reason = contradiction(strategy, mps, layouts)
    assert reason is not None
    assert [word for word in words if word not in reason] == []
