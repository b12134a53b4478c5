# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""What MIG is made of, as plain data. Sizes and places are memory slices, as NVML counts placements."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass


class Engines(t.NamedTuple):
    """Media engines: a second thing, beside slices, that instances of a GPU share out."""

    decoders: int = 0
    encoders: int = 0
    jpegs: int = 0
    ofas: int = 0


@dataclass(frozen=True)
class Profile:
    """A GPU instance profile that a GPU offers. `id` is this GPU's own number for it; other boards have others."""

    name: str
    id: int
    slices: int  # compute slices: the 3 of 3g.40gb
    memory_mb: int
    limit: int  # how many of it the GPU can have at most
    starts: tuple[int, ...]  # where it can begin
    size: int  # memory slices that it takes
    engines: Engines = Engines()


@dataclass(frozen=True)
class ComputeInstance:
    """One that exists in a GPU instance."""

    id: int
    slices: int
    uuid: str | None = None
    in_use: bool = False


@dataclass(frozen=True)
class GpuInstance:
    """One that exists. Its id says nothing about its place."""

    id: int
    profile: str
    start: int
    compute: tuple[ComputeInstance, ...] = ()

    @property
    def in_use(self) -> bool:
        return any(instance.in_use for instance in self.compute)


@dataclass(frozen=True)
class Instance:
    """A GPU instance as somebody wants it: anywhere if `start` is None, and with compute instances of these slices."""

    profile: str
    start: int | None
    compute: tuple[int, ...]  # descending


Layout = tuple[Instance, ...]
"""Of one GPU. Where every start is known it is in the order of the starts, and says all that boot needs."""


def layout_of(instances: t.Iterable[GpuInstance]) -> Layout:
    """What exists, as a wish to have exactly that."""
    return tuple(
        Instance(each.profile, each.start, tuple(sorted((part.slices for part in each.compute), reverse=True)))
        for each in sorted(instances, key=lambda each: each.start)
    )


def slices_of(profile: str) -> int:
    """The compute slices that a profile's name starts with: 3 of 3g.40gb."""
    return int(profile.split("g.", 1)[0])


def compute_name(profile: str, slices: int) -> str:
    """As NVML prints a compute instance: 1c.3g.40gb, or 3g.40gb when it is all of its GPU instance."""
    return profile if slices == slices_of(profile) else f"{slices}c.{profile}"


def describe(instance: Instance) -> str:
    """For a message: 3g.40gb@4, 3g.40gb@4 (2c.3g.40gb, 1c.3g.40gb), 3g.40gb@4 (no compute instance)."""
    place = instance.profile if instance.start is None else f"{instance.profile}@{instance.start}"
    if instance.compute == (slices_of(instance.profile),):
        return place
    names = ", ".join(compute_name(instance.profile, slices) for slices in instance.compute)
    return f"{place} ({names or 'no compute instance'})"


def as_data(instance: Instance) -> dict[str, t.Any]:
    """As options, results and the boot file have it."""
    return {
        "profile": instance.profile,
        "start": instance.start,
        "compute_instances": [compute_name(instance.profile, slices) for slices in instance.compute],
    }
