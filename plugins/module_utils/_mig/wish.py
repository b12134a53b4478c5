# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""What is wanted of GPUs, as users write it: data, and how values of their input are read."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._errors import KubegpuError
from .profiles import ParsedName, UnknownProfile, parse

# No board comes near: a larger count is a slip, and nothing should try to lay out a million instances.
MOST_INSTANCES = 64


class WishError(KubegpuError):
    """All that is wrong with what was asked for, a line each."""

    def __init__(self, problems: t.Sequence[str]) -> None:
        super().__init__("\n".join(problems), problems=list(problems))


@dataclass(frozen=True)
class Target:
    """A GPU of this host, however little is known about it; addresses are as `normal_address` writes them."""

    index: int | None
    uuid: str | None
    pci_address: str
    name: str
    device: int  # 0x20B2
    subsystem: int  # 0xSSSSVVVV, as NVML has it in pciSubSystemId
    mig_capable: bool
    unusable: str | None = None  # why nothing can be done with it: "bound to vfio-pci", "fell off the bus: ..."
    ours: bool = True  # False: unusable because it is given away, as to a virtual machine, and not because it broke

    def __str__(self) -> str:
        index = None if self.index is None else f"index {self.index}"
        return f"GPU {self.pci_address} ({', '.join(filter(None, (index, self.uuid, self.name, self.unusable)))})"


@dataclass(frozen=True)
class WishedInstance:
    """In the user's words, which a GPU's own profiles have yet to give a meaning."""

    profile: str
    start: int | None = None
    compute_instances: tuple[str, ...] | None = None
    count: int = 1


@dataclass(frozen=True)
class Wish:
    mode: str  # enabled or disabled
    instances: tuple[WishedInstance, ...] = ()


@dataclass(frozen=True)
class Wishes:
    """By PCI address. A GPU in none of them is kept as it is."""

    by_address: dict[str, Wish]
    skipped: dict[str, str]  # passed over, which is no error, and why
    failed: dict[str, str]  # something is wanted of it, but it is broken


def fields(given: t.Any, known: t.Collection[str], where: str, problems: list[str]) -> dict[str, t.Any] | None:
    """The known keys that have a value. A key that is only misspelt is read, too, so that no other problem hides."""
    if not isinstance(given, dict):
        problems.append(f"{where} is {given!r}; it must be a mapping with {', '.join(known)}.")
        return None
    spellings = {_plain(name): name for name in known}
    found = {}
    for key, value in given.items():
        name = spellings.get(_plain(str(key)))
        if key not in known:
            advice = f"it is spelled {name}" if name else f"the keys are {', '.join(known)}"
            problems.append(f"{where} has the unknown key {key}; {advice}.")
        if name and value is not None:
            found[name] = value
    return found


def _plain(key: str) -> str:
    return key.replace("-", "").replace("_", "").lower()


def number(value: t.Any) -> int | None:
    """A whole number from 0, also as text, because argument specs convert nothing below the first level."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def counted(profiles: t.Any, where: str, problems: list[str]) -> tuple[WishedInstance, ...]:
    """What `{3g.40gb: 1, 1g.10gb: 4}` wants, largest first."""
    if not isinstance(profiles, dict):
        problems.append(f"{where} is {profiles!r}; it must be a mapping such as {{3g.40gb: 1, 1g.10gb: 4}}.")
        return ()
    counts = {}
    for name, value in profiles.items():
        check_name(name, where, problems)
        count = number(value)
        if count is None or count > MOST_INSTANCES:
            problems.append(f"{where}: the count of {name} is {value!r}; it must be from 0 to {MOST_INSTANCES}.")
        counts[str(name)] = count
    if counts and all(count == 0 for count in counts.values()):
        problems.append(f"{where} asks for no instance at all: every count is 0.")
    return tuple(WishedInstance(name, count=counts[name] or 0) for name in sorted(counts, reverse=True) if counts[name])


def check_name(name: t.Any, where: str, problems: list[str]) -> ParsedName | None:
    try:
        return parse(str(name))
    except UnknownProfile as exc:
        problems.append(f"{where}: {exc}")
        return None
