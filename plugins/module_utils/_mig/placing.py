# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Where wanted GPU instances fit on a GPU, and where they fit best."""

from __future__ import annotations

import typing as t
from collections import Counter
from operator import add

from .model import ComputeInstance, GpuInstance, Instance, Layout, Profile

SHARES = ("memory slices", "video decoders", "video encoders", "JPEG engines", "optical flow engines")
"""What a GPU shares out. Compute slices need no count: where the memory slices suffice, they do."""

Part = tuple[int, ...]
"""Of a wish: how many of each kind of instance."""

Way = tuple[t.Any, ...]
"""Of placing a part; the lowest is the best, and one behind another is their sum, term by term. The terms:
minus the GPU instances kept with all that is in use in them,
minus the GPU instances kept, because those are neither destroyed nor created,
the compute instances destroyed in those, and created in those,
(start, profile) of each GPU instance, and the compute instances of each."""


class Step(t.NamedTuple):
    """One more instance, behind those that are placed."""

    kind: int
    wanted: int  # of this kind
    size: int
    way: Way


class Board:
    """What a GPU offers, and what it has to share out."""

    def __init__(self, offered: t.Iterable[Profile]) -> None:
        self.profiles = {profile.name: profile for profile in offered}
        self._takes = {name: (profile.size, *profile.engines) for name, profile in self.profiles.items()}
        # No driver says how many engines there are, but every GPU offers a profile that takes them all.
        has = [(max(each.starts, default=0) + each.size, *each.engines) for each in self.profiles.values()]
        self.shares = [max(share) for share in zip([0] * len(SHARES), *has)]

    def taken(self, instances: t.Iterable[Instance]) -> list[int]:
        """Of each share."""
        return [sum(share) for share in zip([0] * len(SHARES), *(self._takes[each.profile] for each in instances))]

    def allows(self, instances: t.Sequence[Instance]) -> bool:
        """Whether it can have them together, if their places are left aside."""
        counts = Counter(each.profile for each in instances)
        return all(
            name in self.profiles and count <= self.profiles[name].limit for name, count in counts.items()
        ) and all(taken <= there for taken, there in zip(self.taken(instances), self.shares))


def compute_changes(existing: GpuInstance, wanted: t.Iterable[int]) -> tuple[list[ComputeInstance], list[int]]:
    """The compute instances to destroy, and the slices of those to create, in a GPU instance that is kept."""
    missing = Counter(wanted)
    destroyed = []
    for instance in sorted(existing.compute, key=lambda instance: (not instance.in_use, instance.id)):
        if missing[instance.slices]:
            missing[instance.slices] -= 1
        else:
            destroyed.append(instance)
    return destroyed, sorted(missing.elements(), reverse=True)


def cheapest(board: Board, current: t.Iterable[GpuInstance], wanted: t.Sequence[Instance]) -> Layout | None:
    """The best of all layouts with the wanted instances; None if the GPU cannot have them."""
    if not board.allows(wanted):
        return None
    kinds = Counter(wanted)
    way = _search(board, current, kinds).get(tuple(kinds.values()))
    if way is None:
        return None
    return tuple(Instance(profile, start, compute) for (start, profile), compute in zip(*way[-2:]))


def largest(board: Board, wanted: t.Sequence[Instance]) -> tuple[Instance, ...]:
    """The most of the wanted instances that the GPU can have; of equally many those that take most memory slices, then
    those named first."""
    kinds = Counter(wanted)
    parts = sorted(_search(board, (), kinds), reverse=True)
    choices = (tuple(Counter(dict(zip(kinds, part))).elements()) for part in parts)
    return max(filter(board.allows, choices), key=lambda choice: (len(choice), board.taken(choice)[0]))


def _search(board: Board, current: t.Iterable[GpuInstance], kinds: Counter[Instance]) -> dict[Part, Way]:
    """The best way to place each part of a wish that there is room for; the whole wish is one of them.

    The memory slices are decided on from the first to the last. What the rest can take, and at what cost, depends on
    where it begins and on what is placed before it, not on how: of all ways to place a part only the best counts.
    """
    steps = _steps(board, current, kinds)
    nothing: dict[Part, Way] = {(0,) * len(kinds): (0, 0, 0, 0, (), ())}
    ways = [nothing, *({} for _step in steps)]
    for position, here in enumerate(steps):
        for part, way in ways[position].items():
            further = [(position + 1, part, way)]
            for kind, wanted, size, more in here:
                if part[kind] < wanted:
                    longer = (*part[:kind], part[kind] + 1, *part[kind + 1 :])
                    further.append((position + size, longer, tuple(map(add, way, more))))
            for end, longer, found in further:
                ways[end][longer] = min(found, ways[end].get(longer, found))
    return ways[-1]


def _steps(board: Board, current: t.Iterable[GpuInstance], kinds: Counter[Instance]) -> list[list[Step]]:
    """For each memory slice, the instances that can start there."""
    existing = {(each.profile, each.start): each for each in current}
    steps: list[list[Step]] = [[] for _slice in range(board.shares[0])]
    for number, (kind, wanted) in enumerate(kinds.items()):
        profile = board.profiles[kind.profile]
        for start in profile.starts:
            if kind.start in (None, start):
                cost = _cost(existing.get((kind.profile, start)), kind.compute)
                way = (*cost, ((start, kind.profile),), (kind.compute,))
                steps[start].append(Step(number, wanted, profile.size, way))
    return steps


def _cost(existing: GpuInstance | None, compute: tuple[int, ...]) -> tuple[int, int, int, int]:
    """The first terms of a way."""
    if existing is None:
        return 0, 0, 0, 0
    destroyed, created = compute_changes(existing, compute)
    undisturbed = existing.in_use and not any(each.in_use for each in destroyed)
    return -undisturbed, -1, len(destroyed), len(created)
