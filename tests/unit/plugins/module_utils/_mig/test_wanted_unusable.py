# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GPUs that something is wanted of and nothing can be done with."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.wanted import WishError, wishes
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._mig.fake_targets import (
    GIVEN_AWAY,
    LOST,
    address,
    target,
)

ONES = {"1g.10gb": 7}


def decide(layouts, targets, unmatched="keep"):
    return wishes(layouts, None, None, unmatched, targets)


def problems(layouts, targets):
    with pytest.raises(WishError) as caught:
        decide(layouts, targets)
    return caught.value.details["problems"]


# N1
@pytest.mark.parametrize("name", ["0000:1b:00.0", "0000:1B:00.0"])
def test_a_gpu_that_is_given_away_cannot_be_named(name):
    assert problems([{"gpus": [name], "profiles": ONES}], [target(0), target(1, **GIVEN_AWAY)]) == [
        "layouts[0].gpus names GPU 0000:1b:00.0 (GA100, bound to vfio-pci): this host's driver cannot drive it."
    ]


@pytest.mark.parametrize(
    "layouts, unmatched",
    [([{"gpus": ["all"], "profiles": ONES}], "keep"), ([{"gpus": ["0"], "profiles": ONES}], "disabled")],
)
def test_a_gpu_that_is_given_away_is_passed_over(layouts, unmatched):
    found = decide(layouts, [target(0), target(1, **GIVEN_AWAY)], unmatched)
    assert list(found.by_address) == [address(0)]
    assert found.skipped == {address(1): "bound to vfio-pci"}
    assert found.failed == {}


# N4 A: GPU 1 of four is lost, and its UUID may be known or not.
FOUR = [target(0), target(1, **LOST), target(2), target(3)]
OUT_OF_REACH = "but nothing can be done with it: fell off the bus"


@pytest.mark.parametrize(
    "lost, name, reason",
    [
        (LOST, "1", f"layouts[0] is about it, {OUT_OF_REACH}"),
        (LOST, "0000:1b:00.0", f"layouts[0] is about it, {OUT_OF_REACH}"),
        ({**LOST, "uuid": "GPU-1a"}, "GPU-1a", f"layouts[0] is about it, {OUT_OF_REACH}"),
        (LOST, "GPU-1a", f"it may be the GPU-1a of layouts[0], {OUT_OF_REACH}"),
        # NVML does not show it at all.
        ({**LOST, "index": None}, "1", f"it may be the 1 of layouts[0], {OUT_OF_REACH}"),
    ],
)
def test_a_lost_gpu_fails_and_the_others_go_on(lost, name, reason):
    targets = [target(0), target(1, **lost), target(2), target(3)]
    layouts = [{"gpus": [name], "profiles": ONES}, {"gpus": ["0", "2", "3"], "profiles": {"3g.40gb": 2}}]
    found = decide(layouts, targets)
    assert {address: wish.instances[0].profile for address, wish in found.by_address.items()} == {
        address(number): "3g.40gb" for number in (0, 2, 3)
    }
    assert found.failed == {address(1): reason}
    assert found.skipped == {}


@pytest.mark.parametrize(
    "layouts, unmatched, where",
    [
        ([{"gpus": ["all"], "profiles": ONES}], "keep", "layouts[0]"),
        # Nobody can say whether it has MIG on.
        ([{"gpus": ["all"], "mode": "disabled"}], "keep", "layouts[0]"),
        ([{"models": ["GA*"], "profiles": ONES}], "keep", "layouts[0]"),
        ([], "disabled", "unmatched"),
    ],
)
def test_a_lost_gpu_fails_however_it_is_meant(layouts, unmatched, where):
    assert decide(layouts, FOUR, unmatched).failed == {address(1): f"{where} is about it, {OUT_OF_REACH}"}


def test_a_lost_gpu_that_nobody_means_is_nobodys_business():
    found = decide([{"gpus": ["0"], "profiles": ONES}, {"models": ["NVIDIA A100*"], "profiles": ONES}], FOUR)
    assert (found.failed, found.skipped) == ({}, {})


@pytest.mark.parametrize(
    "name, others",
    [
        ("0000:ff:00.0", LOST),
        ("GPU-9a", {**LOST, "uuid": "GPU-1a"}),
        ("9", LOST),
        ("GPU-9a", GIVEN_AWAY),
        # It works, though NVML does not tell its UUID: the GPU with this one is another.
        ("GPU-9a", {"uuid": None}),
    ],
)
def test_only_a_lost_gpu_may_be_one_that_cannot_be_found(name, others):
    (problem,) = problems([{"gpus": [name], "profiles": ONES}], [target(0), target(1, **others)])
    assert problem.startswith(f"This host has no such GPU: {name} (layouts[0].gpus).")
