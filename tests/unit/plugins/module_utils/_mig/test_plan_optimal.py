# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No plan is cheaper than the planner's: it is held against searches that know nothing of how it works.

First all pairs of a state of the GPU and a wish: a plan must cost what a search over single steps finds, each of which
creates or destroys one GPU instance. It goes backwards from all states that satisfy a wish, and so has the costs of all
others at once. Then a sample of whatever a wish can say, against every way to place it.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import random
from collections import Counter

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.model import ComputeInstance, GpuInstance, Instance
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.placing import Board, largest
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.plan import Busy, Impossible, difference, place
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._mig import boards

DESTROY, CREATE = 100, 1  # fewest destructions first, whatever it takes to create


def valid(board, state):
    """Of a set of (start, profile): no slice is taken twice, no profile too often, no engine that is not there."""
    profiles = {profile.name: profile for profile in board}
    slices = [start + n for start, name in state for n in range(profiles[name].size)]
    return (
        len(slices) == len(set(slices))
        and all(sum(name == profile.name for _start, name in state) <= profile.limit for profile in board)
        and all(
            sum(profiles[name].engines[kind] for _start, name in state) <= max(each.engines[kind] for each in board)
            for kind in range(4)
        )
    )


class Graph:
    """All valid states of a board, lowest first, and how one becomes another by one step."""

    def __init__(self, board):
        self.board = board
        self.slices = {profile.name: profile.slices for profile in board}
        places = [(start, profile.name) for profile in board for start in profile.starts]
        reached = {frozenset()}
        pending = [frozenset()]
        while pending:
            state = pending.pop()
            more = {state | {new} for new in places if valid(board, state | {new})} - reached
            reached |= more
            pending += more
        self.states = sorted(reached, key=sorted)
        self.before = {state: [] for state in self.states}  # (cost of the step, state before it, what it destroys)
        for state in self.states:
            for each in state:
                self.before[state].append((CREATE, state - {each}, None))
                self.before[state - {each}].append((DESTROY, state, each))
        self.satisfying = {}
        for state in self.states:
            self.satisfying.setdefault(tuple(sorted(name for _start, name in state)), []).append(state)

    def costs(self, wanted, in_use=frozenset()):
        """From each state to the nearest that satisfies the wish, if nothing of `in_use` may be destroyed."""
        queue = [(0, number, goal) for number, goal in enumerate(self.satisfying[wanted]) if in_use <= goal]
        number = itertools.count(len(queue))
        costs = {}
        while queue:
            cost, _number, state = heapq.heappop(queue)
            if state not in costs:
                costs[state] = cost
                for step, before, destroyed in self.before[state]:
                    if before not in costs and in_use <= before and destroyed not in in_use:
                        heapq.heappush(queue, (cost + step, next(number), before))
        return costs

    def existing(self, state, in_use=frozenset()):
        """Neither the ids nor the order say anything about the places."""
        return [
            GpuInstance(9 - start, name, start, (ComputeInstance(0, self.slices[name], None, (start, name) in in_use),))
            for start, name in sorted(state, reverse=True)
        ]

    def wish(self, wanted):
        return [Instance(name, None, (self.slices[name],)) for name in wanted]


@functools.cache
def graph(name):
    return Graph(getattr(boards, name))


def check(found, state, current, wanted, costs, in_use=frozenset()):
    """The layout is the lowest of the cheapest, and the plan leads there, over valid states only."""
    if not costs:
        check_busy(found, current, state, wanted, in_use)
        return
    layout = place(found.board, current, found.wish(wanted))
    plan = difference(current, layout)
    assert DESTROY * len(plan.destroyed) + CREATE * len(plan.created) == costs[state]
    lowest = next(
        goal
        for goal in found.satisfying[wanted]
        if in_use <= goal and DESTROY * len(state - goal) + CREATE * len(goal - state) == costs[state]
    )
    assert [(each.start, each.profile) for each in layout] == sorted(lowest)
    for each in plan.destroyed:
        assert (each.start, each.profile) in state - in_use
        state -= {(each.start, each.profile)}
    for each in plan.created:
        state |= {(each.start, each.profile)}
        assert state in found.before
    assert state == lowest
    assert not plan.compute_destroyed and not plan.compute_created


def check_busy(found, current, state, wanted, in_use):
    """To blame are those in use that would go if nothing were in use."""
    with pytest.raises(Busy) as busy:
        place(found.board, current, found.wish(wanted))
    assert busy.value.layout == place(found.board, found.existing(state), found.wish(wanted))
    goal = {(each.start, each.profile) for each in busy.value.layout}
    assert [(each.start, each.profile) for each in busy.value.instances] == sorted(in_use - goal)


def test_the_graphs_are_as_large_as_the_boards_allow():
    sizes = {name: (len(graph(name).states), len(graph(name).satisfying)) for name in ("A100_80", "A30")}
    assert sizes == {"A100_80": (2319, 128), "A30": (76, 20)}


@pytest.mark.parametrize("share", range(16))
def test_all_pairs_of_seven_slices(share):
    found = graph("A100_80")
    states = [(state, found.existing(state)) for state in found.states]
    for wanted in list(found.satisfying)[share::16]:
        costs = found.costs(wanted)
        for state, current in states:
            check(found, state, current, wanted, costs)


def test_all_pairs_of_four_slices_with_all_that_may_be_in_use():
    found = graph("A30")
    for wanted in found.satisfying:
        for in_use in found.states:
            costs = found.costs(wanted, in_use)
            for state in found.states:
                if in_use <= state:
                    check(found, state, found.existing(state, in_use), wanted, costs, in_use)


@pytest.mark.parametrize("share", range(4))
def test_a_sample_of_seven_slices_with_some_in_use(share):
    found = graph("A100_80")
    choose = random.Random(share)
    for wanted in list(found.satisfying)[share::4]:
        # Mostly what is in use is wanted; where it is not, all that can be said is who is to blame.
        for origins in (found.satisfying[wanted], found.satisfying[wanted], found.states):
            origin = sorted(choose.choice(origins))
            in_use = frozenset(choose.sample(origin, choose.randint(min(1, len(origin)), len(origin))))
            costs = found.costs(wanted, in_use)
            states = [state for state in found.states if in_use <= state]
            for state in choose.sample(states, min(len(states), 40)):
                check(found, state, found.existing(state, in_use), wanted, costs, in_use)


@pytest.mark.parametrize("name", ["A30", "A100_80", "RTX_PRO_6000"])
def test_every_wish_for_one_instance_too_many_and_what_of_it_would_fit(name):
    found = graph(name)
    beyond = {tuple(sorted((*wanted, profile.name))) for wanted in found.satisfying for profile in found.board}
    for wanted in sorted(beyond - set(found.satisfying)):
        with pytest.raises(Impossible):
            place(found.board, (), found.wish(wanted))
        part = tuple(sorted(each.profile for each in largest(Board(found.board), found.wish(wanted))))
        assert part in found.satisfying
        assert len(part) == len(wanted) - 1
        assert not Counter(part) - Counter(wanted)


def every_placement(board, wanted, taken=frozenset()):
    """All lists of starts for the wanted instances so that no slice is taken twice."""
    if not wanted:
        yield []
        return
    (profile,) = (each for each in board if each.name == wanted[0].profile)
    for start in profile.starts:
        slices = frozenset(range(start, start + profile.size))
        if wanted[0].start in (None, start) and not slices & taken:
            for rest in every_placement(board, wanted[1:], taken | slices):
                yield [start, *rest]


def price(current, placed):
    """What it costs to have the compute instances in `placed` by (start, profile), and who of those in use pays."""
    disturbed, gone, unwanted, missing = [], 0, 0, 0
    for each in current:
        have = Counter(part.slices for part in each.compute)
        want = Counter(placed.get((each.start, each.profile), ()))
        if Counter(part.slices for part in each.compute if part.in_use) - want:
            disturbed.append(each)
        if (each.start, each.profile) in placed:
            unwanted += sum((have - want).values())
            missing += sum((want - have).values())
        else:
            gone += 1
    return disturbed, (gone, unwanted, missing)


def every_way(board, current, wanted):
    """To place the wish: the lowest is the best. Who in use pays comes last."""
    for starts in every_placement(board, wanted):
        placed = {(start, each.profile): each.compute for start, each in zip(starts, wanted)}
        disturbed, costs = price(current, placed)
        if valid(board, placed):
            yield costs, sorted(placed), [compute for _place, compute in sorted(placed.items())], disturbed


def some_compute(choose, slices):
    return choose.choice([(slices,), (slices,), (1,) * slices, (1,), (), (slices - 1, 1) if slices > 1 else (1,)])


def some_existing(choose, found):
    state = sorted(choose.choice(found.states))
    for number, (start, profile) in enumerate(choose.sample(state, len(state))):
        compute = some_compute(choose, found.slices[profile])
        parts = [ComputeInstance(n, part, None, choose.random() < 0.15) for n, part in enumerate(compute)]
        yield GpuInstance(number, profile, start, tuple(parts))


def some_wish(choose, found, current):
    """Few instances, so that all ways can be tried; with some of what is in use, or most wishes would be refused."""
    state = sorted(choose.choice(found.states))
    for start, profile in choose.sample(state, min(3, len(state))):
        compute = some_compute(choose, found.slices[profile])
        yield Instance(profile, choose.choice([None, None, None, start, choose.randrange(8)]), compute)
    for each in current[: choose.randrange(3)]:
        if each.in_use:
            yield Instance(each.profile, None, tuple(sorted((part.slices for part in each.compute), reverse=True)))


@pytest.mark.parametrize("name", ["A30", "A100_80", "RTX_PRO_6000"])
def test_a_sample_of_fixed_starts_and_compute_instances(name):
    found = graph(name)
    choose = random.Random(name)
    outcomes = Counter()
    for _case in range(800):
        current = list(some_existing(choose, found))
        wanted = list(some_wish(choose, found, current))
        ways = list(every_way(found.board, current, wanted))
        sparing = [way for way in ways if not way[-1]]
        try:
            layout = place(found.board, current, wanted)
        except Impossible:
            outcomes["impossible"] += 1
            assert not ways
        except Busy as exc:
            outcomes["busy"] += 1
            assert not sparing
            assert list(exc.instances) == sorted(min(ways)[-1], key=lambda each: each.start)
        else:
            outcomes["placed"] += 1
            costs, places, compute, _disturbed = min(sparing)
            assert [(each.start, each.profile) for each in layout] == places
            assert [each.compute for each in layout] == compute
            plan = difference(current, layout)
            assert not plan.disturbed
            assert (len(plan.destroyed), len(plan.compute_destroyed), len(plan.compute_created)) == costs
    assert min(outcomes[outcome] for outcome in ("impossible", "busy", "placed")) > 50, outcomes
