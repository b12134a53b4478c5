# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the MIG planner saves against "clear all and recreate", and what it takes to plan a node of 8 GPUs.

For each board a seeded sample of what exists and what is wanted, and the refusal of a wish for all that is offered.
Run it as
tests/in_collections.sh sh -c 'PYTHONPATH=$ANSIBLE_COLLECTIONS_PATH python tests/bench/mig/plan.py'
"""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter

from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.model import (
    ComputeInstance,
    GpuInstance,
    Instance,
    describe,
)
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.placing import Board
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.plan import Impossible, difference, place
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._mig import boards

BOARDS = ("A100_40", "A100_80", "H100_80", "H200", "B200", "A30", "RTX_PRO_6000")
GPUS = 8
AIM_MS = 50
SAMPLE = 2000


def some_layout(choose, board):
    """Instances at random, until most slices are taken."""
    layout, taken = [], set()
    places = [(profile, start) for profile in board for start in profile.starts]
    choose.shuffle(places)
    for profile, start in places:
        slices = set(range(start, start + profile.size))
        compute = choose.choice([(profile.slices,)] * 3 + [(1,) * profile.slices])
        more = [*layout, Instance(profile.name, start, compute)]
        if not taken & slices and Board(board).allows(more) and choose.random() < 0.7:
            layout, taken = more, taken | slices
    return layout


def existing(layout):
    return [
        GpuInstance(
            number, each.profile, each.start, tuple(ComputeInstance(n, part) for n, part in enumerate(each.compute))
        )
        for number, each in enumerate(layout)
    ]


def milliseconds(times, work, *arguments):
    """The best of so many times, because the machine has other things to do."""
    found = []
    for _time in range(times):
        start = time.perf_counter()
        work(*arguments)
        found.append(time.perf_counter() - start)
    return 1000 * min(found)


def plan(board, current, wanted):
    return difference(current, place(board, current, wanted))


def refuse(board, wanted):
    with contextlib.suppress(Impossible):
        place(board, (), wanted)


def measure(name):
    board = getattr(boards, name)
    choose = random.Random(name)
    counts, cases = Counter(), []
    for number in range(SAMPLE):
        current = existing(some_layout(choose, board))
        wanted = [Instance(each.profile, None, each.compute) for each in some_layout(choose, board)]
        found = plan(board, current, wanted)
        counts["existing"] += len(current)
        counts["wanted"] += len(wanted)
        counts["destroyed"] += len(found.destroyed)
        counts["created"] += len(found.created)
        cases.append((milliseconds(1, plan, board, current, wanted), number, current, wanted))
    slowest = sorted(cases, reverse=True)[: SAMPLE // 100]
    worst, _number, wish = max(
        (milliseconds(20, plan, board, *case), number, case[1]) for _ms, number, *case in slowest
    )
    everything = [Instance(each.name, None, (each.slices,)) for each in board for _number in range(each.limit)]
    return [
        name,
        f"{counts['destroyed'] / SAMPLE:.2f} of {counts['existing'] / SAMPLE:.2f}",
        f"{counts['created'] / SAMPLE:.2f} of {counts['wanted'] / SAMPLE:.2f}",
        f"{1 - counts['destroyed'] / counts['existing']:.0%}",
        f"{GPUS * sum(case[0] for case in cases) / SAMPLE:.1f}",
        f"{GPUS * worst:.1f}",
        f"{GPUS * milliseconds(20, refuse, board, everything):.1f}",
        f"{AIM_MS / (GPUS * worst):.0f}x",
        ", ".join(f"{count} x {text}" for text, count in Counter(map(describe, wish)).items()),
    ]


def main():
    header = ["board", "destroyed", "created", "kept", "mean ms", "worst ms", "refusal ms", "below aim", "worst wish"]
    print(f"{SAMPLE} plans a board; milliseconds for {GPUS} GPUs, aim {AIM_MS}")
    rows = [header, *map(measure, BOARDS)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())


if __name__ == "__main__":
    main()
