# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""What is wanted of each GPU of this host, from either form of the input, and what that means on the GPU."""

from __future__ import annotations

import fnmatch
import typing as t
from dataclasses import dataclass

from .._pci import normal_address
from . import mig_parted
from .model import Instance, Profile
from .profiles import UnknownProfile, match, parse
from .wish import Target, Wish, WishedInstance, WishError, Wishes, check_name, counted, fields, number

LAYOUT = ("gpus", "models", "profiles", "instances", "mode")
INSTANCE = ("profile", "start", "compute_instances")
MODES = ("enabled", "disabled")


@dataclass(frozen=True)
class _Choice:
    """The part of the input that decides about a GPU."""

    where: str
    wish: Wish
    passes_over: bool = False  # a GPU without MIG, instead of refusing it
    guess: str = ""  # the name that may mean this GPU, which is too broken to tell


def wishes(
    layouts: t.Sequence[dict[str, t.Any]] | None,
    config: t.Any,
    selected: str | None,
    unmatched: str,
    targets: t.Sequence[Target],
) -> Wishes:
    """Raises WishError with everything that is wrong with the input.

    A broken GPU that something is wanted of is `failed`, even if that is only to have no MIG: nobody can say whether
    it has. One that is given away is `skipped` unless it is named outright, which is refused.
    """
    problems: list[str] = []
    if config is None and selected:
        raise WishError([f"{selected} is selected, and there is no configuration of mig-parted; is its file empty?"])
    if config is None:
        choices = _choices_of_layouts(layouts or (), targets, problems)
    else:
        choices = _choices_of_config(mig_parted.entries(config, selected), targets, problems)
    found = Wishes({}, {}, {})
    for target in targets:
        choice = choices.get(target.pci_address)
        if choice is None and unmatched == "disabled":
            choice = _Choice("unmatched", Wish("disabled"))
        if choice is not None:
            _settle(target, choice, found, problems)
    if problems:
        raise WishError(problems)
    return found


def _settle(target: Target, choice: _Choice, found: Wishes, problems: list[str]) -> None:
    if not target.ours:
        found.skipped[target.pci_address] = str(target.unusable)
    elif target.unusable:
        name = f"it may be the {choice.guess} of {choice.where}" if choice.guess else f"{choice.where} is about it"
        found.failed[target.pci_address] = f"{name}, but nothing can be done with it: {target.unusable}"
    elif target.mig_capable:
        found.by_address[target.pci_address] = choice.wish
    elif choice.passes_over or choice.wish.mode == "disabled":
        found.skipped[target.pci_address] = "this board has no MIG"
    else:
        problems.append(
            f"{choice.where} wants MIG on {target}, but this board has none."
            " Name only GPUs that have it; in layouts, an earlier entry with mode: disabled can take the others."
        )


def _choices_of_config(
    entries: t.Sequence[mig_parted.Entry], targets: t.Sequence[Target], problems: list[str]
) -> dict[str, _Choice]:
    """mig-parted counts the GPUs that its driver drives. A broken one keeps its place, so that no index moves."""
    ours = sorted((target for target in targets if target.ours), key=lambda target: _order(target.pci_address))
    indices = {target.pci_address: index for index, target in enumerate(ours)}
    for entry in entries:
        missing = [str(index) for index in entry.devices or () if index >= len(ours)]
        if missing:
            have = "; ".join(f"{index} is {target}" for index, target in enumerate(ours)) or "none"
            problems.append(f"{entry.where}: devices has {', '.join(missing)}, but this host's GPUs are: {have}.")
    choices = {}
    for target in targets:
        matching = [entry for entry in entries if entry.matches(target, indices.get(target.pci_address))]
        if target.ours and target.mig_capable and len({entry.wish for entry in matching}) > 1:
            problems.append(
                f"{' and '.join(entry.where for entry in matching)} give {target} different layouts; mig-parted would"
                " apply one after the other in each run. Let one of them match it."
            )
        if matching:
            # Of GPUs without MIG only those are refused that an index names.
            demanding = [entry for entry in matching if entry.devices is not None and entry.wish.mode == "enabled"]
            entry = (demanding or matching)[0]
            choices[target.pci_address] = _Choice(entry.where, entry.wish, passes_over=not demanding)
    return choices


def _order(pci_address: str) -> int:
    return int(pci_address.replace(":", "").replace(".", ""), 16)


def _choices_of_layouts(
    layouts: t.Sequence[t.Any], targets: t.Sequence[Target], problems: list[str]
) -> dict[str, _Choice]:
    choices: dict[str, _Choice] = {}
    unknown: list[str] = []
    for position, given in enumerate(layouts):
        where = f"layouts[{position}]"
        values = fields(given, LAYOUT, where, problems)
        if values is None:
            continue
        wish = _wish(values, where, problems)
        if ("gpus" in values) == ("models" in values):
            problems.append(f"{where} must say which GPUs it is about: with either gpus or models.")
        for name in _texts(values, "gpus", where, problems):
            for target in _named(name, f"{where}.gpus", targets, problems, unknown):
                guess = "" if name == "all" or _is(target, name) else name
                choices.setdefault(target.pci_address, _Choice(where, wish, guess=guess))
        for glob in _texts(values, "models", where, problems):
            for target in targets:
                if fnmatch.fnmatchcase(target.name, glob):
                    choices.setdefault(target.pci_address, _Choice(where, wish))
    if unknown:
        have = "; ".join(map(str, targets)) or "none"
        problems.append(f"This host has no such GPU: {', '.join(unknown)}. Its GPUs are: {have}.")
    return choices


def _texts(values: dict[str, t.Any], key: str, where: str, problems: list[str]) -> list[str]:
    given = values.get(key, ())
    if not isinstance(given, (list, tuple)) or (key in values and not given):
        problems.append(f"{where}: {key} is {given!r}; it must be a list with at least one item.")
        return []
    problems += [
        f"{where}: {key} has {item!r}; put it in quotes, because YAML takes an unquoted PCI address for a number."
        for item in given
        if not isinstance(item, str)
    ]
    return [item for item in given if isinstance(item, str)]


def _named(
    name: str, where: str, targets: t.Sequence[Target], problems: list[str], unknown: list[str]
) -> t.Sequence[Target]:
    if name == "all":
        return targets
    by_address, by_index = normal_address(name) is not None, name.isdecimal()
    if not (by_address or by_index or name.lower().startswith("gpu-")):
        problems.append(
            f'{where} has {name!r}, which is no UUID (GPU-...), PCI address ("0000:1a:00.0"), index ("0") or all.'
            " An address needs quotes, because YAML may take it for a number."
        )
        return []
    found = [target for target in targets if _is(target, name)]
    problems += [f"{where} names {target}: this host's driver cannot drive it." for target in found if not target.ours]
    if not found and not by_address:
        # A GPU that fell off the bus may not be able to say that it is the one.
        found = [
            target
            for target in targets
            if target.ours and target.unusable and (target.index if by_index else target.uuid) is None
        ]
    if not found:
        unknown.append(f"{name} ({where})")
    return found


def _is(target: Target, name: str) -> bool:
    if name.isdecimal():
        return target.index == int(name)
    return target.pci_address == normal_address(name) or (target.uuid or "").lower() == name.lower()


def _wish(values: dict[str, t.Any], where: str, problems: list[str]) -> Wish:
    mode = values.get("mode")
    if mode not in (None, *MODES):
        problems.append(f"{where}: mode is {mode!r}; it must be enabled or disabled.")
    given = [key for key in ("profiles", "instances") if key in values]
    if len(given) == 2:
        problems.append(f"{where} has profiles and instances; give one of them.")
    if mode == "disabled" and given:
        problems.append(f"{where} has {' and '.join(given)}, although its mode is disabled.")
    if mode is None and not given:
        problems.append(f"{where} does not say what is wanted: give profiles, instances or mode.")
    problems += [
        f"{where}: {key} is empty; for MIG mode without instances give only mode: enabled."
        for key in given
        if values[key] in ({}, [])
    ]
    instances = counted(values.get("profiles", {}), f"{where}.profiles", problems)
    return Wish(mode or "enabled", instances + _instances(values.get("instances", []), f"{where}.instances", problems))


def _instances(given: t.Any, where: str, problems: list[str]) -> tuple[WishedInstance, ...]:
    if not isinstance(given, list):
        problems.append(f"{where} is {given!r}; it must be a list of mappings with {', '.join(INSTANCE)}.")
        return ()
    found = []
    for position, item in enumerate(given):
        here = f"{where}[{position}]"
        values = fields(item, INSTANCE, here, problems)
        if values is None:
            continue
        name, start, parts = (values.get(key) for key in INSTANCE)
        parsed = check_name(name, here, problems)
        if parsed and parsed.compute is not None:
            problems.append(f"{here}: {name} is a compute instance; profile must be that of a GPU instance.")
        if start is not None and number(start) is None:
            problems.append(f"{here}: start is {start!r}; it must be a memory slice, a number from 0.")
        if parts is not None and not isinstance(parts, list):
            problems.append(f"{here}: compute_instances is {parts!r}; it must be a list such as [1c.3g.40gb].")
            parts = None
        for part in parts or ():
            check_name(part, f"{here}.compute_instances", problems)
        found.append(WishedInstance(str(name), number(start), None if parts is None else tuple(map(str, parts))))
    return tuple(found)


def instances_of(wish: Wish, offered: t.Sequence[Profile]) -> tuple[Instance, ...]:
    """The wish in the GPU's own profiles; raises WishError with all that the GPU does not have."""
    problems: list[str] = []
    found: list[Instance] = []
    shared: dict[str, list[int]] = {}
    room: dict[str, int] = {}
    for wished in wish.instances:
        try:
            profile = match(wished.profile, offered)
            compute = _compute(wished, profile, offered)
        except UnknownProfile as exc:
            problems.append(str(exc))
            continue
        part = parse(wished.profile).compute
        if part is None:
            found += [Instance(profile.name, wished.start, compute)] * wished.count
        else:
            room[profile.name] = profile.slices
            shared.setdefault(profile.name, []).extend([part] * wished.count)
    if problems:
        raise WishError(list(dict.fromkeys(problems)))
    for name, parts in shared.items():
        found += [Instance(name, None, compute) for compute in _packed(parts, room[name])]
    return tuple(found)


def _compute(wished: WishedInstance, profile: Profile, offered: t.Sequence[Profile]) -> tuple[int, ...]:
    if wished.compute_instances is None:
        return (profile.slices,)
    for name in wished.compute_instances:
        if match(name, offered) != profile:
            raise UnknownProfile(f"{name} cannot be a compute instance of {profile.name}.")
    compute = tuple(sorted((parse(name).compute or profile.slices for name in wished.compute_instances), reverse=True))
    if sum(compute) > profile.slices:
        names = ", ".join(wished.compute_instances)
        raise UnknownProfile(f"{profile.name} has {profile.slices} compute slices, too few for {names}.")
    return compute


def _packed(parts: t.Sequence[int], room: int) -> list[tuple[int, ...]]:
    """Compute instances for GPU instances of so many slices: the largest first, each to the first that has room.

    For the sizes that there are, that needs the fewest; mig-parted's search for an order that fits ends with the same.
    """
    packed: list[list[int]] = []
    for part in sorted(parts, reverse=True):
        for group in packed:
            if sum(group) + part <= room:
                group.append(part)
                break
        else:
            packed.append([part])
    return [tuple(group) for group in packed]
