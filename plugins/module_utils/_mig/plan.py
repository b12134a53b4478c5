# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Which instances of one GPU stay, go and come so that it gets a wished layout, at the least disturbance."""

from __future__ import annotations

import typing as t
from collections import Counter
from dataclasses import dataclass, replace

from .._errors import KubegpuError
from .model import ComputeInstance, GpuInstance, Instance, Layout, Profile, describe, layout_of
from .placing import SHARES, Board, cheapest, compute_changes, largest


class Impossible(KubegpuError):
    """The GPU could not have the wanted instances even if it were empty."""


class Busy(KubegpuError):
    """The GPU could have the wanted instances, but not without destroying some that are in use."""

    def __init__(self, message: str, instances: tuple[GpuInstance, ...], layout: Layout) -> None:
        super().__init__(message)
        self.instances = instances
        self.layout = layout  # the one that disturbs them, the cheapest if they were idle


@dataclass(frozen=True)
class Plan:
    """Possible at each moment if all that is destroyed is destroyed before anything is created."""

    kept: tuple[GpuInstance, ...]
    destroyed: tuple[GpuInstance, ...]
    created: Layout
    compute_destroyed: tuple[tuple[GpuInstance, ComputeInstance], ...]  # in those kept
    compute_created: tuple[tuple[GpuInstance, int], ...]  # in those kept; slices, descending

    @property
    def empty(self) -> bool:
        return not (self.destroyed or self.created or self.compute_destroyed or self.compute_created)

    @property
    def disturbed(self) -> tuple[GpuInstance, ...]:
        """Those that lose what is in use of them."""
        losing = {each for each, compute in self.compute_destroyed if compute.in_use}
        losing.update(each for each in self.destroyed if each.in_use)
        return tuple(sorted(losing, key=lambda each: each.start))


def difference(current: t.Sequence[GpuInstance], layout: Layout) -> Plan:
    """What leads to a layout whose starts are all set. Of equal compute instances those in use are kept first."""
    wanted = {(each.profile, each.start): each for each in layout}
    existing = {(each.profile, each.start): each for each in sorted(current, key=lambda each: each.start)}
    kept = tuple(each for at, each in existing.items() if at in wanted)
    changes = [(each, *compute_changes(each, wanted[each.profile, each.start].compute)) for each in kept]
    return Plan(
        kept=kept,
        destroyed=tuple(each for at, each in existing.items() if at not in wanted),
        created=tuple(each for at, each in wanted.items() if at not in existing),
        compute_destroyed=tuple((each, compute) for each, destroyed, _created in changes for compute in destroyed),
        compute_created=tuple((each, slices) for each, _destroyed, created in changes for slices in created),
    )


def place(offered: t.Sequence[Profile], current: t.Sequence[GpuInstance], wanted: t.Sequence[Instance]) -> Layout:
    """The layout with the wanted instances that disturbs least, every start set, in the order of the starts.

    In this order: nothing in use is destroyed (else `Busy`), fewest GPU instances are destroyed, fewest are created,
    fewest compute instances are destroyed and then created in those that stay, and the starts are the lowest.
    """
    board = Board(offered)
    layout = cheapest(board, current, wanted)
    if layout is None:
        raise Impossible(_why_impossible(board, wanted))
    if difference(current, layout).disturbed:
        idle = [replace(each, compute=tuple(replace(part, in_use=False) for part in each.compute)) for each in current]
        layout = place(offered, idle, wanted)
        disturbed = difference(current, layout).disturbed
        found = ", ".join(map(describe, layout_of(disturbed)))
        raise Busy(f"In use, and in the way of {_listed(wanted)}: {found}.", disturbed, layout)
    return layout


def _why_impossible(board: Board, wanted: t.Sequence[Instance]) -> str:
    known = [each for each in wanted if each.profile in board.profiles]
    shares = zip(board.taken(known), SHARES, board.shares)
    lines = [f"This GPU cannot have {_listed(wanted)}."]
    scarce = [f"{taken} {share} of {there}" for taken, share, there in shares if taken > there]
    if scarce:
        lines.append(f"Together they take {', '.join(scarce)}.")
    if not scarce or any(each.start is not None for each in known):
        starts = {each.profile: ", ".join(map(str, board.profiles[each.profile].starts)) for each in known}
        lines += [f"{name} can start at {places}." for name, places in starts.items()]
    lines.append(f"It offers at most {', '.join(f'{each.limit} x {each.name}' for each in board.profiles.values())}.")
    lines.append(f"Of the wish, {_listed(largest(board, known)) or 'nothing'} would fit.")
    return " ".join(lines)


def _listed(instances: t.Iterable[Instance]) -> str:
    return ", ".join(f"{count} x {text}" for text, count in Counter(map(describe, instances)).items())
