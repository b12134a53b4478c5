# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import random
import re

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.model import (
    ComputeInstance,
    GpuInstance,
    Instance,
    describe,
    slices_of,
)
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.plan import Busy, Impossible, difference, place
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._mig import boards

BOARDS = ["A100_40", "A100_80", "H100_80", "H200", "B200", "A30", "RTX_PRO_6000"]


def existing(text, *compute, use=(), number=0):
    """3g.40gb@4 with one compute instance of full size, or of these slices; in use are those with the numbers `use`."""
    profile, start = text.split("@")
    parts = compute or (slices_of(profile),)
    return GpuInstance(
        number,
        profile,
        int(start),
        tuple(ComputeInstance(n, slices, in_use=n in use) for n, slices in enumerate(parts) if slices),
    )


def bare(text):
    """A GPU instance in which a dead run left no compute instance."""
    return existing(text, 0)


def wish(*texts):
    """3g.40gb, 3g.40gb@4, 4x1g.10gb; each with one compute instance of full size."""
    instances = []
    for text in texts:
        count, profile, start = re.fullmatch(r"(?:(\d+)x)?([^@]+)(?:@(\d))?", text).groups()
        instances += [Instance(profile, start and int(start), (slices_of(profile),))] * int(count or 1)
    return instances


def shown(layout):
    return [describe(instance) for instance in layout]


@pytest.mark.parametrize("name", BOARDS)
def test_every_profile_up_to_its_limit_and_no_further(name):
    board = getattr(boards, name)
    for profile in board:
        alone = [Instance(profile.name, None, (profile.slices,))]
        layout = place(board, (), alone * profile.limit)
        assert [instance.profile for instance in layout] == [profile.name] * profile.limit
        assert [instance.start for instance in layout] == list(profile.starts[: profile.limit])
        with pytest.raises(Impossible, match=f"Of the wish, {profile.limit} x .* would fit"):
            place(board, (), alone * (profile.limit + 1))


@pytest.mark.parametrize("name", BOARDS)
def test_every_start_of_every_profile_can_be_had_and_no_other(name):
    board = getattr(boards, name)
    for profile in board:
        for start in range(8):
            fixed = [Instance(profile.name, start, (profile.slices,))]
            if start in profile.starts:
                assert place(board, (), fixed) == tuple(fixed)
            else:
                with pytest.raises(Impossible):
                    place(board, (), fixed)


@pytest.mark.parametrize(
    ("name", "wanted", "layout"),
    [
        ("A100_40", ("2x1g.5gb", "2g.10gb", "3g.20gb"), ["1g.5gb@0", "1g.5gb@1", "2g.10gb@2", "3g.20gb@4"]),
        ("A100_80", ("2x1g.10gb", "2g.20gb", "3g.40gb"), ["1g.10gb@0", "1g.10gb@1", "2g.20gb@2", "3g.40gb@4"]),
        ("H200", ("2x1g.18gb", "2g.35gb", "3g.71gb"), ["1g.18gb@0", "1g.18gb@1", "2g.35gb@2", "3g.71gb@4"]),
        ("B200", ("2x1g.23gb", "2g.45gb", "3g.90gb"), ["1g.23gb@0", "1g.23gb@1", "2g.45gb@2", "3g.90gb@4"]),
        ("A30", ("2x1g.6gb", "2g.12gb"), ["1g.6gb@0", "1g.6gb@1", "2g.12gb@2"]),
        ("RTX_PRO_6000", ("2x1g.24gb", "2g.48gb"), ["1g.24gb@0", "1g.24gb@1", "2g.48gb@2"]),
    ],
)
def test_nvidias_balanced_layouts(name, wanted, layout):
    assert shown(place(getattr(boards, name), (), wish(*wanted))) == layout


def test_what_matches_stays_and_only_the_rest_is_remade():
    current = [existing(f"1g.10gb@{n}", number=10 + n) for n in range(4)] + [existing("3g.40gb@4", use=[0], number=2)]
    layout = place(boards.A100_80, current, wish("3g.40gb", "2x2g.20gb"))
    plan = difference(current, layout)
    assert shown(layout) == ["2g.20gb@0", "2g.20gb@2", "3g.40gb@4"]
    assert plan.kept == (current[4],)
    assert plan.destroyed == tuple(current[:4])
    assert shown(plan.created) == ["2g.20gb@0", "2g.20gb@2"]
    assert (plan.compute_destroyed, plan.compute_created) == ((), ())
    again = [existing(text) for text in shown(layout)]
    assert place(boards.A100_80, again, wish("3g.40gb", "2x2g.20gb")) == layout
    assert difference(again, layout).empty


def test_small_instances_leave_the_only_place_of_the_big_one():
    # The lowest places would be 0 and 1, but 4g can start at 0 only.
    assert shown(place(boards.A100_80, (), wish("2x1g.10gb", "4g.40gb"))) == ["4g.40gb@0", "1g.10gb@4", "1g.10gb@5"]


def test_to_keep_goes_before_a_lower_place():
    current = [existing("2g.20gb@4")]
    assert shown(place(boards.A100_80, current, wish("2x2g.20gb"))) == ["2g.20gb@0", "2g.20gb@4"]


def test_the_order_of_the_wish_and_of_what_exists_does_not_matter():
    current = [existing("1g.10gb@1"), existing("1g.10gb+me@3"), existing("2g.20gb@4"), existing("1g.10gb@6")]
    wanted = wish("2x1g.10gb", "1g.10gb@2", "1g.10gb+me", "1g.20gb")
    expected = place(boards.A100_80, current, wanted)
    for seed in range(20):
        shuffle = random.Random(seed).shuffle
        shuffle(current)
        shuffle(wanted)
        assert place(boards.A100_80, current, wanted) == expected
    assert shown(expected) == ["1g.10gb@1", "1g.10gb@2", "1g.10gb+me@3", "1g.20gb@4", "1g.10gb@6"]


def test_nothing_wanted_destroys_everything():
    current = [existing("3g.40gb@4"), bare("1g.10gb@0")]
    assert place(boards.A100_80, current, ()) == ()
    assert difference(current, ()).destroyed == (current[1], current[0])
    assert place((), (), ()) == ()


def test_fixed_starts():
    wanted = wish("3g.40gb@0", "1g.10gb", "1g.10gb@6")
    assert shown(place(boards.A100_80, [existing("3g.40gb@4")], wanted)) == ["3g.40gb@0", "1g.10gb@4", "1g.10gb@6"]
    # One that exists is taken by the instance that must be there, although the other is named first.
    current = [existing("1g.10gb@6")]
    assert shown(place(boards.A100_80, current, wish("1g.10gb", "1g.10gb@6"))) == ["1g.10gb@0", "1g.10gb@6"]


def test_an_instance_without_compute_instance_gets_one_if_it_is_wanted_and_goes_if_not():
    current = [bare("2g.20gb@0"), existing("3g.40gb@4")]
    plan = difference(current, place(boards.A100_80, current, wish("3g.40gb", "2g.20gb")))
    assert (plan.kept, plan.destroyed, plan.created) == (tuple(current), (), ())
    assert (plan.compute_destroyed, plan.compute_created) == ((), ((current[0], 2),))
    plan = difference(current, place(boards.A100_80, current, wish("3g.40gb")))
    assert (plan.kept, plan.destroyed) == ((current[1],), (current[0],))
    assert (plan.created, plan.compute_destroyed, plan.compute_created) == ((), (), ())


def test_of_equal_instances_the_one_with_the_right_compute_instances_stays():
    current = [bare("2g.20gb@0"), existing("2g.20gb@2", 1, 1), existing("2g.20gb@4")]
    assert shown(place(boards.A100_80, current, wish("2g.20gb"))) == ["2g.20gb@4"]
    halves = [Instance("2g.20gb", None, (1, 1))]
    assert shown(place(boards.A100_80, current, halves)) == ["2g.20gb@2 (1c.2g.20gb, 1c.2g.20gb)"]
    both = place(boards.A100_80, current, [*halves, *wish("2g.20gb")])
    assert difference(current, both).destroyed == (current[0],)
    assert difference(current, both).compute_destroyed == ()
    # To create one in the first is better than to destroy two in the second.
    assert shown(place(boards.A100_80, current[:2], wish("2g.20gb"))) == ["2g.20gb@0"]
    # To create two in the first is better than to destroy one in the second.
    current = [bare("3g.40gb@0"), existing("3g.40gb@4", 1, 1, 1)]
    assert place(boards.A100_80, current, [Instance("3g.40gb", None, (1, 1))])[0].start == 0


def test_difference_keeps_compute_instances_in_use_first():
    current = [existing("4g.40gb@0", 1, 1, 2, use=[1])]
    (gpu_instance,) = current
    plan = difference(current, (Instance("4g.40gb", 0, (1,)),))
    assert plan.kept == tuple(current)
    assert [(each.id, compute.id) for each, compute in plan.compute_destroyed] == [(0, 0), (0, 2)]
    assert plan.compute_created == ()
    assert plan.disturbed == ()
    plan = difference(current, (Instance("4g.40gb", 0, (2, 1, 1)),))
    assert plan.empty
    plan = difference(current, (Instance("4g.40gb", 0, (3, 2)),))
    assert [compute.id for _each, compute in plan.compute_destroyed] == [1, 0]
    assert plan.compute_created == ((gpu_instance, 3),)
    assert plan.disturbed == (gpu_instance,)


def test_difference_creates_the_big_compute_instances_first():
    current = [bare("3g.40gb@4"), existing("4g.40gb@0", 4)]
    plan = difference(current, (Instance("4g.40gb", 0, (1, 2, 1)), Instance("3g.40gb", 4, (2, 1))))
    assert plan.kept == (current[1], current[0])
    assert plan.compute_created == ((current[1], 2), (current[1], 1), (current[1], 1), (current[0], 2), (current[0], 1))
    assert [(each.start, compute.slices) for each, compute in plan.compute_destroyed] == [(0, 4)]


@pytest.mark.parametrize(
    ("current", "layout"),
    [
        ([existing("2g.20gb@0")], ()),
        ([], wish("2g.20gb@0")),
        ([existing("2g.20gb@0", 1)], [Instance("2g.20gb", 0, ())]),
        ([bare("2g.20gb@0")], wish("2g.20gb@0")),
    ],
)
def test_a_plan_with_anything_to_do_is_not_empty(current, layout):
    assert not difference(current, tuple(layout)).empty


def test_difference_does_not_take_another_profile_or_another_start_for_the_same():
    current = [existing("3g.40gb@0"), existing("1g.10gb@4")]
    plan = difference(current, tuple(wish("4g.40gb@0", "1g.10gb@5")))
    assert (plan.kept, plan.destroyed) == ((), tuple(current))
    assert shown(plan.created) == ["4g.40gb@0", "1g.10gb@5"]
    assert not plan.empty


def test_what_is_in_use_stays_at_any_price():
    # Cheapest would be 3g@4, which keeps the three at 0, 1 and 2.
    current = [existing(f"1g.10gb@{n}") for n in range(3)] + [existing("1g.10gb@5", use=[0])]
    layout = place(boards.A100_80, current, wish("3g.40gb", "3x1g.10gb"))
    assert shown(layout) == ["3g.40gb@0", "1g.10gb@4", "1g.10gb@5", "1g.10gb@6"]
    assert difference(current, layout).disturbed == ()


def test_in_use_and_not_wanted_or_in_the_way():
    current = [existing("1g.10gb@0", use=[0]), existing("2g.20gb@2"), existing("3g.40gb@4", use=[0])]
    with pytest.raises(Busy) as busy:
        place(boards.A100_80, current, wish("7g.80gb"))
    assert busy.value.instances == (current[0], current[2])
    assert shown(busy.value.layout) == ["7g.80gb@0"]
    assert str(busy.value) == "In use, and in the way of 1 x 7g.80gb: 1g.10gb@0, 3g.40gb@4."
    with pytest.raises(Busy) as busy:
        place(boards.A100_80, current, wish("4g.40gb", "3g.40gb"))
    assert busy.value.instances == (current[0],)
    with pytest.raises(Busy) as busy:
        place(boards.A100_80, current, wish("1g.10gb@1", "3g.40gb"))
    assert busy.value.instances == (current[0],)


def test_busy_names_what_the_cheapest_layout_would_disturb():
    # 3g@4 keeps three and destroys the two at 4 and 5; 3g@0 would destroy one in use, but also two others.
    current = [existing("1g.10gb@0", use=[0]), *map(existing, ("1g.10gb@1", "1g.10gb@2"))]
    current += [existing("1g.10gb@4", use=[0]), existing("1g.10gb@5", use=[0])]
    with pytest.raises(Busy) as busy:
        place(boards.A100_80, current, wish("3g.40gb", "3x1g.10gb"))
    assert busy.value.instances == tuple(current[3:])
    assert shown(busy.value.layout) == ["1g.10gb@0", "1g.10gb@1", "1g.10gb@2", "3g.40gb@4"]


def test_a_compute_instance_in_use_binds_its_gpu_instance_to_what_has_it():
    current = [existing("2g.20gb@0", 1, 1, use=[1]), existing("2g.20gb@2")]
    wanted = [*wish("2g.20gb"), Instance("2g.20gb", None, (1,))]
    layout = place(boards.A100_80, current, wanted)
    assert shown(layout) == ["2g.20gb@0 (1c.2g.20gb)", "2g.20gb@2"]
    assert [compute.id for _each, compute in difference(current, layout).compute_destroyed] == [0]
    with pytest.raises(Busy) as busy:
        place(boards.A100_80, current, wish("2x2g.20gb"))
    assert busy.value.instances == (current[0],)
    assert str(busy.value).endswith(": 2g.20gb@0 (1c.2g.20gb, 1c.2g.20gb).")


def test_a_limit_below_what_there_is_room_for():
    board = [dataclasses.replace(profile, limit=1) for profile in boards.A100_80]
    assert len(place(board, (), wish("1g.10gb", "2g.20gb", "3g.40gb"))) == 3
    with pytest.raises(Impossible, match="It offers at most 1 x 1g.10gb, .* Of the wish, 1 x 1g.10gb would fit"):
        place(board, (), wish("2x1g.10gb"))


def test_a_profile_that_has_no_place():
    board = [dataclasses.replace(boards.A30[0], starts=()), *boards.A30[1:]]
    assert shown(place(board, (), wish("2g.12gb"))) == ["2g.12gb@0"]
    with pytest.raises(Impossible):
        place(board, (), wish("1g.6gb"))


def test_media_engines_are_a_resource_beside_slices():
    board = boards.RTX_PRO_6000
    wanted = wish("1g.24gb+me.all", "3x1g.24gb-me")
    assert len(place(board, (), wanted)) == 4
    for more in ("1g.24gb", "1g.24gb+gfx", "1g.24gb+me", "2g.48gb"):
        with pytest.raises(Impossible, match="video decoders of 4"):
            place(board, (), wish("1g.24gb+me.all", more))
    assert len(place(board, (), wish("2g.48gb", "1g.24gb", "1g.24gb+me"))) == 3
    # A30: there is one optical flow engine, and both +me profiles take it.
    with pytest.raises(Impossible, match="2 optical flow engines of 1"):
        place(boards.A30, (), wish("1g.6gb+me", "2g.12gb+me"))


OFFER = (
    "It offers at most 7 x 1g.10gb, 1 x 1g.10gb+me, 4 x 1g.20gb, 3 x 2g.20gb, 2 x 3g.40gb, 1 x 4g.40gb, 1 x 7g.80gb."
)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            wish("3x3g.40gb", "1g.10gb"),
            "This GPU cannot have 3 x 3g.40gb, 1 x 1g.10gb."
            f" Together they take 13 memory slices of 8, 6 video decoders of 5. {OFFER}"
            " Of the wish, 2 x 3g.40gb would fit.",
        ),
        (
            wish("4g.40gb", "2x2g.20gb"),
            "This GPU cannot have 1 x 4g.40gb, 2 x 2g.20gb. 4g.40gb can start at 0. 2g.20gb can start at 0, 2, 4."
            f" {OFFER} Of the wish, 1 x 4g.40gb, 1 x 2g.20gb would fit.",
        ),
        (
            wish("2x4g.40gb"),
            f"This GPU cannot have 2 x 4g.40gb. 4g.40gb can start at 0. {OFFER} Of the wish, 1 x 4g.40gb would fit.",
        ),
        (
            wish("3g.40gb@2"),
            f"This GPU cannot have 1 x 3g.40gb@2. 3g.40gb can start at 0, 4. {OFFER} Of the wish, nothing would fit.",
        ),
        (
            wish("7g.80gb", "3g.40gb@0", "2g.20gb@2"),
            "This GPU cannot have 1 x 7g.80gb, 1 x 3g.40gb@0, 1 x 2g.20gb@2."
            " Together they take 14 memory slices of 8, 8 video decoders of 5."
            " 7g.80gb can start at 0. 3g.40gb can start at 0, 4. 2g.20gb can start at 0, 2, 4."
            f" {OFFER} Of the wish, 1 x 7g.80gb would fit.",
        ),
        (
            [Instance("9g.90gb", None, (9,)), *wish("2x1g.10gb+me"), Instance("2g.20gb", None, (1, 1))],
            "This GPU cannot have 1 x 9g.90gb, 2 x 1g.10gb+me, 1 x 2g.20gb (1c.2g.20gb, 1c.2g.20gb)."
            f" Together they take 2 JPEG engines of 1, 2 optical flow engines of 1. {OFFER}"
            " Of the wish, 1 x 1g.10gb+me, 1 x 2g.20gb (1c.2g.20gb, 1c.2g.20gb) would fit.",
        ),
    ],
)
def test_impossible_says_what_was_wanted_why_not_what_there_is_and_what_would_fit(wanted, message):
    with pytest.raises(Impossible) as impossible:
        place(boards.A100_80, [existing("1g.10gb@0", use=[0])], wanted)
    assert str(impossible.value) == message


def test_impossible_takes_no_longer_for_a_wish_beyond_all_measure():
    with pytest.raises(Impossible, match="Of the wish, 6 x 1g.10gb, 1 x 1g.20gb would fit"):
        place(boards.A100_80, (), wish("999x1g.10gb", *(f"999x{profile.name}" for profile in boards.A100_80[1:])))
