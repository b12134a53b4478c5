# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Names of MIG profiles, which of a GPU's own profiles a name means, and what boards offer that cannot be asked."""

from __future__ import annotations

import math
import re
import typing as t

from .._errors import KubegpuError
from .model import Engines, Profile

NAME = re.compile(r"(?:([1-9]\d*)c\.)?([1-9]\d*)g\.([1-9]\d*)gb([+-][a-z][a-z0-9.,+-]*)?")
EXAMPLES = "3g.40gb, 1g.10gb+me, 1g.24gb-me; 1c.3g.40gb for a compute instance"

# Sizes of compute instances in a GPU instance of so many slices (`nvidia-smi mig -lcip`); in smaller ones every size.
COMPUTE_SIZES = {4: (1, 2, 4), 7: (1, 2, 3, 4, 7)}


class UnknownProfile(KubegpuError):
    """A name that is no profile's, or not of one that the GPU offers."""


class ParsedName(t.NamedTuple):
    compute: int | None
    slices: int
    memory_gb: int
    suffix: str


def parse(name: str) -> ParsedName:
    found = NAME.fullmatch(name)
    if found is None:
        raise UnknownProfile(f"{name!r} is not the name of a MIG profile; write it as NVML prints it: {EXAMPLES}.")
    compute = int(found[1]) if found[1] else None
    parsed = ParsedName(compute, int(found[2]), int(found[3]), found[4] or "")
    sizes = COMPUTE_SIZES.get(parsed.slices, range(1, parsed.slices + 1))
    if compute is not None and compute not in sizes:
        possible = ", ".join(f"{size}c" for size in sizes)
        raise UnknownProfile(f"{name}: the compute instances of a {parsed.slices}g GPU instance are {possible}.")
    return parsed


def split(name: str) -> tuple[int | None, str]:
    """The compute slices, if it is the name of a compute instance, and the GPU instance's profile."""
    compute = parse(name).compute
    return compute, name if compute is None else name.partition(".")[2]


def match(name: str, offered: t.Sequence[Profile]) -> Profile:
    """The profile of a GPU instance that a name means on this GPU; a compute instance's name means its parent.

    Boards and drivers round memory differently, so the number may be off a little if that leaves one candidate.
    """
    wanted, gpu_instance = parse(name), split(name)[1]
    for profile in offered:
        if profile.name == gpu_instance:
            return profile
    near = [profile for profile in offered if _near(wanted, parse(profile.name))]
    if len(near) == 1:
        return near[0]
    if near:
        candidates = " or ".join(profile.name for profile in near)
        raise UnknownProfile(f"{gpu_instance} may mean {candidates} on this GPU; write the one that you mean.")
    offers = ", ".join(profile.name for profile in offered) or "no profile"
    raise UnknownProfile(f"{gpu_instance} is not offered by this GPU; it offers {offers}.")


def _near(wanted: ParsedName, offered: ParsedName) -> bool:
    tolerance = max(1.0, 0.02 * wanted.memory_gb)
    same_kind = (wanted.slices, wanted.suffix) == (offered.slices, offered.suffix)
    return same_kind and abs(wanted.memory_gb - offered.memory_gb) <= tolerance


def named(slices: int, memory_mb: int, total_memory_mib: int, suffix: str) -> str:
    """The name as NVIDIA's tools compute it, for drivers that do not tell it: memory in eighths of the board's."""
    eighths = math.ceil(memory_mb / total_memory_mib * 8)
    gigabytes = math.floor(eighths / 8 * math.ceil(total_memory_mib / 1024) + 0.5)
    return f"{slices}g.{gigabytes}gb{suffix}"


class _Kind(t.NamedTuple):
    """What boards of one chip have in common. Memory is what differs, and follows from the size."""

    slices: int
    suffix: str
    limit: int
    starts: t.Sequence[int]
    size: int
    engines: Engines


# MIG User Guide, "Supported MIG Profiles". Engines: decoders, encoders, JPEG, optical flow.
_GA100 = (
    _Kind(1, "", 7, range(7), 1, Engines(0, 0, 0, 0)),
    _Kind(1, "+me", 1, range(7), 1, Engines(1, 0, 1, 1)),
    _Kind(1, "", 4, (0, 2, 4, 6), 2, Engines(1, 0, 0, 0)),
    _Kind(2, "", 3, (0, 2, 4), 2, Engines(1, 0, 0, 0)),
    _Kind(3, "", 2, (0, 4), 4, Engines(2, 0, 0, 0)),
    _Kind(4, "", 1, (0,), 4, Engines(2, 0, 0, 0)),
    _Kind(7, "", 1, (0,), 8, Engines(5, 0, 1, 1)),
)
_GH100 = (
    _Kind(1, "", 7, range(7), 1, Engines(1, 0, 1, 0)),
    _Kind(1, "+me", 1, range(7), 1, Engines(1, 0, 1, 1)),
    _Kind(1, "", 4, (0, 2, 4, 6), 2, Engines(1, 0, 1, 0)),
    _Kind(2, "", 3, (0, 2, 4), 2, Engines(2, 0, 2, 0)),
    _Kind(3, "", 2, (0, 4), 4, Engines(3, 0, 3, 0)),
    _Kind(4, "", 1, (0,), 4, Engines(4, 0, 4, 0)),
    _Kind(7, "", 1, (0,), 8, Engines(7, 0, 7, 1)),
)
_GA100_OF_A30 = (
    _Kind(1, "", 4, range(4), 1, Engines(0, 0, 0, 0)),
    _Kind(1, "+me", 1, range(4), 1, Engines(1, 0, 1, 1)),
    _Kind(2, "", 2, (0, 2), 2, Engines(2, 0, 0, 0)),
    _Kind(2, "+me", 1, (0, 2), 2, Engines(2, 0, 1, 1)),
    _Kind(4, "", 1, (0,), 4, Engines(4, 0, 1, 1)),
)

# By size in memory slices: the GB of the name, and the MiB that `nvidia-smi mig -lgip` shows (drivers differ a little).
_Memory = dict[int, tuple[int, int]]
_40GB: _Memory = {1: (5, 4864), 2: (10, 9856), 4: (20, 19968), 8: (40, 40192)}
_80GB_GA100: _Memory = {1: (10, 9856), 2: (20, 19968), 4: (40, 40192), 8: (80, 80384)}
_80GB_GH100: _Memory = {1: (10, 9984), 2: (20, 20096), 4: (40, 40448), 8: (80, 81152)}
_94GB: _Memory = {1: (12, 11008), 2: (24, 22144), 4: (47, 47488), 8: (94, 95360)}
_96GB: _Memory = {1: (12, 11264), 2: (24, 23552), 4: (48, 47616), 8: (96, 95232)}
_24GB: _Memory = {1: (6, 5952), 2: (12, 11968), 4: (24, 24000)}

# Device ids: NVIDIA/gpu-operator v26.7.0, the filters of default-mig-parted-config.
_BOARDS: tuple[tuple[tuple[int, ...], tuple[_Kind, ...], _Memory], ...] = (
    ((0x20B0, 0x20B1, 0x20F1, 0x20F6), _GA100, _40GB),  # A100, A800
    ((0x20B2, 0x20B5, 0x20F3, 0x20F5), _GA100, _80GB_GA100),
    ((0x20B6,), _GA100, _96GB),  # PG506-96
    ((0x20B7,), _GA100_OF_A30, _24GB),
    ((0x2330, 0x2331, 0x2322, 0x2324), _GH100, _80GB_GH100),  # H100, H800
    ((0x2321, 0x233A), _GH100, _94GB),  # H100 NVL, H800 NVL
    ((0x2342, 0x233D, 0x2329), _GH100, _96GB),  # GH200 96 GB, H100 96 GB, H20
)


def known_offer(device_id: int) -> tuple[Profile, ...] | None:
    """What a board offers, by its PCI device id, for driver 535, which cannot tell while MIG is off; None if unknown.

    Only boards that this driver drives. Ids are -1: they must come from the GPU itself once MIG is on.
    """
    for device_ids, kinds, memory in _BOARDS:
        if device_id in device_ids:
            return tuple(
                Profile(
                    name=f"{kind.slices}g.{memory[kind.size][0]}gb{kind.suffix}",
                    id=-1,
                    slices=kind.slices,
                    memory_mb=memory[kind.size][1],
                    limit=kind.limit,
                    starts=tuple(kind.starts),
                    size=kind.size,
                    engines=kind.engines,
                )
                for kind in kinds
            )
    return None
