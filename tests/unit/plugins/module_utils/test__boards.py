# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils import _boards


@pytest.mark.parametrize(
    ("device_id", "generation", "needs_open", "supports_open", "mig"),
    [
        ("102d", "kepler", False, False, False),  # K80
        ("13f2", "maxwell", False, False, False),  # M60
        ("1b38", "pascal", False, False, False),  # P40
        ("15f8", "pascal", False, False, False),  # P100
        ("1db6", "volta", False, False, False),  # V100
        ("1eb8", "turing", False, True, False),  # T4
        ("2182", "turing", False, True, False),  # between blocks of Ampere
        ("20b0", "ampere", False, True, True),  # A100 40GB
        ("20B7", "ampere", False, True, True),  # A30; either case
        ("20c2", "ampere", False, True, False),  # CMP 170HX, the same chip without MIG
        ("2236", "ampere", False, True, False),  # A10
        ("26b9", "ada", False, True, False),  # L40S
        ("27b8", "ada", False, True, False),  # L4
        ("2330", "hopper", False, True, True),  # H100
        ("2335", "hopper", False, True, True),  # H200
        ("2342", "hopper", True, True, True),  # GH200 is Hopper, but not for the proprietary modules
        ("2901", "blackwell", True, True, True),  # B200
        ("3182", "blackwell", True, True, True),  # B300
        ("2bb5", "blackwell", True, True, True),  # RTX PRO 6000
        ("2b85", "blackwell", True, True, False),  # RTX 5090, the same chip without MIG
        ("2bb9", "blackwell", True, True, None),  # RTX 6000D: nobody says
        ("2e12", "blackwell", True, True, False),  # GB10
    ],
)
def test_known_boards(device_id, generation, needs_open, supports_open, mig):
    found = _boards.board(device_id)
    assert found[1:] == (generation, needs_open, supports_open, mig)


@pytest.mark.parametrize("device_id", ["ffff", "0020", "", "h100"])
def test_an_unknown_board_has_no_answers(device_id):
    assert _boards.board(device_id) == _boards.Board()


def test_names():
    assert _boards.board("2330").name == "GH100 [H100 SXM5 80GB]"
    assert _boards.board("2302").name == "GH100"


def test_blocks_of_ids_do_not_overlap():
    blocks = [(chip.first, chip.last) for chip in _boards.CHIPS]
    assert blocks == sorted(blocks)
    assert all(before[1] < after[0] for before, after in zip(blocks, blocks[1:]))


def test_every_named_board_has_a_chip():
    for number in [*_boards.NAMES, *_boards.MIG_CAPABLE, *_boards.GRACE_HOPPER]:
        assert _boards.board(f"{number:04x}").generation, f"{number:04x}"
