# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.model import Instance
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.wanted import (
    Wish,
    WishedInstance,
    WishError,
    instances_of,
)
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._mig import boards

A100_79 = boards.seven_slices((10, 20, 20, 39, 39, 79), (9856, 19968, 19968, 40192, 40192, 80384), boards.AMPERE)


def wish(*instances, **profiles):
    return Wish("enabled", instances or tuple(WishedInstance(name, count=count) for name, count in profiles.items()))


@pytest.mark.parametrize(
    "profiles, board, instances",
    [
        ({}, boards.A100_80, []),
        (
            {"3g.40gb": 1, "1g.10gb": 2},
            boards.A100_80,
            [("3g.40gb", (3,)), ("1g.10gb", (1,)), ("1g.10gb", (1,))],
        ),
        # M9: the driver's own names come back.
        (
            {"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2},
            A100_79,
            [("3g.39gb", (3,)), ("2g.20gb", (2,)), ("1g.10gb", (1,)), ("1g.10gb", (1,))],
        ),
        ({"7g.80gb": 1}, A100_79, [("7g.79gb", (7,))]),
        ({"1c.3g.40gb": 3}, A100_79, [("3g.39gb", (1, 1, 1))]),
        # Compute instances share GPU instances as with mig-parted: as many as have room.
        ({"1c.3g.40gb": 1}, boards.A100_80, [("3g.40gb", (1,))]),
        ({"1c.3g.40gb": 3}, boards.A100_80, [("3g.40gb", (1, 1, 1))]),
        ({"1c.3g.40gb": 4}, boards.A100_80, [("3g.40gb", (1, 1, 1)), ("3g.40gb", (1,))]),
        ({"1c.3g.40gb": 1, "2c.3g.40gb": 1}, boards.A100_80, [("3g.40gb", (2, 1))]),
        ({"1c.3g.40gb": 2, "2c.3g.40gb": 2}, boards.A100_80, [("3g.40gb", (2, 1)), ("3g.40gb", (2, 1))]),
        ({"3g.40gb": 1, "1c.3g.40gb": 2}, boards.A100_80, [("3g.40gb", (3,)), ("3g.40gb", (1, 1))]),
        # A whole one by its long name shares with nobody.
        ({"3c.3g.40gb": 2}, boards.A100_80, [("3g.40gb", (3,)), ("3g.40gb", (3,))]),
        ({"1c.4g.40gb": 2, "2c.4g.40gb": 1}, boards.A100_80, [("4g.40gb", (2, 1, 1))]),
        ({"1c.7g.80gb": 2, "2c.7g.80gb": 1, "3c.7g.80gb": 1}, boards.A100_80, [("7g.80gb", (3, 2, 1, 1))]),
        ({"1c.2g.12gb": 2, "1c.2g.12gb+me": 2}, boards.A30, [("2g.12gb", (1, 1)), ("2g.12gb+me", (1, 1))]),
    ],
)
def test_counts_become_instances(profiles, board, instances):
    assert instances_of(wish(**profiles), board) == tuple(
        Instance(profile, None, compute) for profile, compute in instances
    )


@pytest.mark.parametrize(
    "wished, board, instance",
    [
        (WishedInstance("3g.40gb", 4), boards.A100_80, Instance("3g.40gb", 4, (3,))),
        (
            WishedInstance("3g.40gb", 0, ("1c.3g.40gb", "2c.3g.40gb")),
            boards.A100_80,
            Instance("3g.40gb", 0, (2, 1)),
        ),
        (WishedInstance("3g.40gb", None, ("1c.3g.40gb",)), boards.A100_80, Instance("3g.40gb", None, (1,))),
        (WishedInstance("3g.40gb", None, ("3g.40gb",)), boards.A100_80, Instance("3g.40gb", None, (3,))),
        (WishedInstance("3g.40gb", None, ("3c.3g.40gb",)), boards.A100_80, Instance("3g.40gb", None, (3,))),
        (WishedInstance("3g.40gb", 4, ("1c.3g.39gb",)), A100_79, Instance("3g.39gb", 4, (1,))),
        # A GPU instance without any may be wanted, too.
        (WishedInstance("3g.40gb", 4, ()), boards.A100_80, Instance("3g.40gb", 4, ())),
        (WishedInstance("1g.24gb-me", 3), boards.RTX_PRO_6000, Instance("1g.24gb-me", 3, (1,))),
    ],
)
def test_explicit_instances(wished, board, instance):
    assert instances_of(wish(wished), board) == (instance,)


def test_a_gpu_without_mig_has_no_instances():
    assert instances_of(Wish("disabled"), boards.A100_80) == ()


@pytest.mark.parametrize(
    "wished, told",
    [
        (
            WishedInstance("3g.40gb", 0, ("1c.2g.20gb",)),
            ["1c.2g.20gb cannot be a compute instance of 3g.40gb."],
        ),
        (WishedInstance("1g.10gb", 0, ("1g.10gb+me",)), ["1g.10gb+me cannot be a compute instance of 1g.10gb."]),
        (
            WishedInstance("3g.40gb", 0, ("2c.3g.40gb", "2c.3g.40gb")),
            ["3g.40gb has 3 compute slices, too few for 2c.3g.40gb, 2c.3g.40gb."],
        ),
        (
            WishedInstance("3g.40gb", 0, ("3g.40gb", "1c.3g.40gb")),
            ["3g.40gb has 3 compute slices, too few for 3g.40gb, 1c.3g.40gb."],
        ),
    ],
)
def test_compute_instances_that_do_not_fit(wished, told):
    with pytest.raises(WishError) as caught:
        instances_of(wish(wished), boards.A100_80)
    assert caught.value.details["problems"] == told


def test_all_profiles_that_the_gpu_does_not_have_are_told_once():
    offers = ", ".join(profile.name for profile in boards.A100_80)
    with pytest.raises(WishError) as caught:
        instances_of(wish(**{"1g.14gb": 1, "3g.40gb": 1, "2g.48gb": 2, "1c.2g.48gb": 1}), boards.A100_80)
    assert str(caught.value).splitlines() == [
        f"1g.14gb is not offered by this GPU; it offers {offers}.",
        f"2g.48gb is not offered by this GPU; it offers {offers}.",
    ]
