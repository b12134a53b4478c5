# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""The configuration format of NVIDIA's mig-parted, version v1, as its own parser and its `apply` understand it."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from .wish import Target, Wish, WishError, counted, fields, number

NVIDIA = 0x10DE
TOP = ("version", "mig-configs")
KEYS = ("device-filter", "devices", "mig-enabled", "mig-devices")
FILTER = re.compile(r"0x([0-9a-f]{1,8})(?::0x([0-9a-f]{1,8}))?", re.IGNORECASE)
# Also as text, because argument specs convert nothing below the first level.
BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True)
class Entry:
    where: str
    filters: tuple[tuple[int, int | None], ...]  # device and vendor, and perhaps the subsystem's; none: every GPU
    devices: tuple[int, ...] | None  # indices; None is all
    wish: Wish

    def matches(self, target: Target, index: int | None) -> bool:
        """Whether it is about this GPU, whose index in PCI order is None if mig-parted would not count it."""
        by_filter = not self.filters or any(
            device == target.device << 16 | NVIDIA and subsystem in (None, target.subsystem)
            for device, subsystem in self.filters
        )
        return by_filter and (self.devices is None or index in self.devices)


def entries(config: t.Any, selected: str | None) -> list[Entry]:
    """The entries of the selected configuration; raises WishError with all that is wrong with them."""
    problems: list[str] = []
    if isinstance(config, dict) and "data" in config:
        raise WishError(
            ["config is a Kubernetes ConfigMap; give what it has under data, in config.yaml: version, mig-configs."]
        )
    top = fields(config, TOP, "config", problems)
    if top is None:
        raise WishError(problems)
    if top.get("version") != "v1":
        problems.append(f"config: version is {top.get('version')!r}; it must be v1.")
    named = top.get("mig-configs", {})
    if not isinstance(named, dict) or not named:
        raise WishError([*problems, "config: mig-configs must be a mapping of at least one name to a list of entries."])
    configurations = {str(name): listed for name, listed in named.items()}
    name = next(iter(configurations)) if selected is None and len(configurations) == 1 else selected
    if name not in configurations:
        wanted = "selected is missing" if name is None else f"selected is {name}, which config does not have"
        raise WishError([*problems, f"{wanted}; its configurations are {', '.join(sorted(configurations))}."])
    listed = configurations[name]
    if not isinstance(listed, list) or not listed:
        raise WishError([*problems, f"config: {name} must be a list of at least one entry."])
    found = [_entry(given, f"{name}[{position}]", problems) for position, given in enumerate(listed)]
    if problems:
        raise WishError(problems)
    return found


def _entry(given: t.Any, where: str, problems: list[str]) -> Entry:
    values = fields(given, KEYS, where, problems)
    if values is None:
        return Entry(where, (), None, Wish("disabled"))
    problems += [f"{where}: {key} is missing." for key in ("devices", "mig-enabled") if key not in values]
    enabled = values.get("mig-enabled", False)
    enabled = BOOLEANS.get(enabled.lower(), enabled) if isinstance(enabled, str) else enabled
    if not isinstance(enabled, bool):
        problems.append(f"{where}: mig-enabled is {enabled!r}; it must be true or false.")
    if enabled is True and "mig-devices" not in values:
        problems.append(f"{where}: mig-devices is missing; write {{}} for MIG mode without instances.")
    if enabled is False and values.get("mig-devices"):
        problems.append(f"{where} has mig-devices, although mig-enabled is false.")
    return Entry(
        where,
        _filters(values.get("device-filter") or (), where, problems),
        _devices(values.get("devices", "all"), where, problems),
        Wish(
            "enabled" if enabled else "disabled",
            counted(values.get("mig-devices", {}), f"{where}.mig-devices", problems),
        ),
    )


def _filters(given: t.Any, where: str, problems: list[str]) -> tuple[tuple[int, int | None], ...]:
    found = []
    for text in given if isinstance(given, (list, tuple)) else [given]:
        match = FILTER.fullmatch(text) if isinstance(text, str) else None
        if match:
            found.append((int(match[1], 16), int(match[2], 16) if match[2] else None))
        else:
            problems.append(
                f'{where}: device-filter {text!r} is not "0xDDDDVVVV" or "0xDDDDVVVV:0xSSSSVVVV", with the quotes.'
            )
    return tuple(found)


def _devices(given: t.Any, where: str, problems: list[str]) -> tuple[int, ...] | None:
    if given == "all":
        return None
    indices = [number(value) for value in given] if isinstance(given, list) else [None]
    if None in indices:
        example = f"[{given}]" if number(given) is not None else "[0, 1]"
        problems.append(f"{where}: devices is {given!r}; write all, or a list such as {example}.")
    return tuple(index for index in indices if index is not None)
