# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.model import Profile
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.profiles import (
    UnknownProfile,
    known_offer,
    match,
    named,
    parse,
    split,
)
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._mig import boards

# A board whose driver calls the same slices 39 and 79 GB.
A100_79 = boards.seven_slices((10, 20, 20, 39, 39, 79), (9856, 19968, 19968, 40192, 40192, 80384), boards.AMPERE)


def offer(*names):
    return [Profile(name, 19, parse(name).slices, 9856, 7, (0,), 1) for name in names]


@pytest.mark.parametrize(
    "name, parsed, parts",
    [
        ("3g.40gb", (None, 3, 40, ""), (None, "3g.40gb")),
        ("1g.10gb+me", (None, 1, 10, "+me"), (None, "1g.10gb+me")),
        ("1g.24gb+me.all", (None, 1, 24, "+me.all"), (None, "1g.24gb+me.all")),
        ("1g.24gb-me", (None, 1, 24, "-me"), (None, "1g.24gb-me")),
        ("2g.48gb+gfx", (None, 2, 48, "+gfx"), (None, "2g.48gb+gfx")),
        ("1c.3g.40gb", (1, 3, 40, ""), (1, "3g.40gb")),
        ("3c.3g.40gb", (3, 3, 40, ""), (3, "3g.40gb")),
        ("1c.2g.12gb+me", (1, 2, 12, "+me"), (1, "2g.12gb+me")),
        ("4c.7g.141gb", (4, 7, 141, ""), (4, "7g.141gb")),
    ],
)
def test_names(name, parsed, parts):
    assert parse(name) == parsed
    assert split(name) == parts


@pytest.mark.parametrize(
    "name",
    ["", "3g", "3g40gb", "3g.40", "3G.40GB", "0g.10gb", "g.10gb", " 3g.40gb", "3g.40gb ", "MIG 3g.40gb", "1c.40gb"]
    + ["3g.40gb+", "3g.40gb/me", "1c.1c.3g.40gb", "all"],
)
def test_what_is_no_name_is_refused_with_examples(name):
    with pytest.raises(UnknownProfile, match=r"is not the name of a MIG profile; .* 3g\.40gb, .* 1c\.3g\.40gb"):
        parse(name)


@pytest.mark.parametrize(
    "name, possible",
    [
        ("4c.3g.40gb", "1c, 2c, 3c"),
        ("2c.1g.10gb", "1c"),
        # Not every number of slices is a profile of the driver's.
        ("3c.4g.40gb", "1c, 2c, 4c"),
        ("5c.7g.80gb", "1c, 2c, 3c, 4c, 7c"),
    ],
)
def test_compute_instances_have_certain_sizes(name, possible):
    with pytest.raises(UnknownProfile, match=f"^{name}: .* are {possible}[.]$"):
        parse(name)


@pytest.mark.parametrize(
    "board", [boards.A100_40, boards.A100_80, boards.A30, boards.H100_80, boards.H200, boards.B200, boards.RTX_PRO_6000]
)
def test_every_profile_of_a_board_is_matched_by_its_own_name(board):
    assert [match(profile.name, board) for profile in board] == list(board)


@pytest.mark.parametrize(
    "name, board, meant",
    [
        # M9: one layout for nodes whose drivers round differently.
        ("3g.40gb", A100_79, "3g.39gb"),
        ("7g.80gb", A100_79, "7g.79gb"),
        ("1g.10gb", A100_79, "1g.10gb"),
        ("3g.39gb", boards.A100_80, "3g.40gb"),
        ("7g.79gb", boards.A100_80, "7g.80gb"),
        ("1c.3g.40gb", A100_79, "3g.39gb"),
        # GB200 was named 1g.24gb in early samples, and 23 later.
        ("1g.24gb", boards.B200, "1g.23gb"),
        ("7g.183gb", boards.B200, "7g.180gb"),  # 2 % of 183 GB are 3.66 GB
        ("1g.11gb+me", boards.A100_80, "1g.10gb+me"),
        # An exact name wins over its neighbour.
        ("1g.11gb", offer("1g.10gb", "1g.11gb", "1g.12gb"), "1g.11gb"),
    ],
)
def test_memory_may_be_off_a_little(name, board, meant):
    assert match(name, board).name == meant


@pytest.mark.parametrize(
    "name, board",
    [
        ("1g.14gb", boards.A100_80),  # M9: between 1g.10gb and 1g.20gb nothing is guessed
        ("3g.38gb", boards.A100_80),
        ("7g.184gb", boards.B200),
        ("5g.40gb", boards.A100_80),
        ("2g.20gb+me", boards.A100_80),
        ("1g.24gb+gfx", boards.B200),
        ("3g.40gb", ()),
    ],
)
def test_another_profile_is_refused_with_those_that_the_board_offers(name, board):
    offers = ", ".join(profile.name for profile in board) or "no profile"
    with pytest.raises(UnknownProfile) as caught:
        match(name, board)
    assert str(caught.value) == f"{name} is not offered by this GPU; it offers {offers}."


def test_two_candidates_are_named():
    with pytest.raises(UnknownProfile, match=r"^1g\.11gb may mean 1g\.10gb or 1g\.12gb on this GPU"):
        match("1g.11gb", offer("1g.10gb", "1g.12gb"))


@pytest.mark.parametrize(
    "profiles, total_mib",
    [
        (boards.A100_40, 40536),
        (boards.A100_80, 81920),
        (boards.H100_80, 81559),
        (boards.H200, 143771),  # half of 141 is 70.5, which NVIDIA rounds up to 71, and Python would round to 70
        (boards.B200, 183359),
        (boards.A30, 24258),
        (boards.RTX_PRO_6000, 97887),
    ],
)
def test_a_name_is_computed_as_nvidias_tools_do(profiles, total_mib):
    for profile in profiles:
        assert named(profile.slices, profile.memory_mb, total_mib, parse(profile.name).suffix) == profile.name


@pytest.mark.parametrize(
    "device_id, board",
    [
        (0x20B0, boards.A100_40),
        (0x20F1, boards.A100_40),
        (0x20B2, boards.A100_80),
        (0x20B5, boards.A100_80),
        (0x20B7, boards.A30),
        (0x2330, boards.H100_80),
        (0x2322, boards.H100_80),
    ],
)
def test_known_boards_offer_what_their_drivers_list_but_ids(device_id, board):
    assert known_offer(device_id) == tuple(dataclasses.replace(profile, id=-1) for profile in board)


@pytest.mark.parametrize(
    "device_id, names",
    [
        (0x2321, "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb"),  # H100 NVL
        (0x2342, "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb"),  # GH200
        (0x2329, "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb"),  # H20
    ],
)
def test_names_of_other_known_boards(device_id, names):
    assert [profile.name for profile in known_offer(device_id)] == names.split()


# H200, B200 and RTX PRO 6000 need later drivers, which can list profiles; T4 has no MIG.
@pytest.mark.parametrize("device_id", [0x2335, 0x2901, 0x2BB5, 0x1EB8, 0])
def test_nothing_is_made_up_about_other_boards(device_id):
    assert known_offer(device_id) is None
