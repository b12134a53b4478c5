# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Taints of nodes: what Kubernetes accepts, what differs. Private to the collection.

The list is atomic for the server: whoever changes one writes all, and must not lose what others have set meanwhile.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .labels import check_key, value_of

Taint = t.Mapping[str, t.Any]
"""As the API has it."""


@dataclass(frozen=True)
class WantedTaint:
    key: str
    effect: str | None
    """None: of any effect, which only an absent one can be."""
    value: str
    present: bool


def wanted_taints(given: t.Iterable[t.Mapping[str, t.Any]]) -> list[WantedTaint]:
    """The taints as Kubernetes takes them, or an error that names the wrong one."""
    wanted = []
    for taint in given:
        check_key(taint["key"], "taint")
        value = value_of(taint["key"], "" if taint.get("value") is None else taint["value"], "taint")
        present = taint.get("state", "present") == "present"
        wanted.append(WantedTaint(taint["key"], taint.get("effect"), value, present))
    return wanted


def with_taints(current: t.Sequence[Taint], wanted: t.Iterable[WantedTaint]) -> list[Taint]:
    """The list of a node after the wanted changes; all others, and those that are right, stay untouched in place."""
    taints = list(current)
    for each in wanted:
        named = [taint for taint in taints if taint["key"] == each.key and each.effect in (None, taint["effect"])]
        if not each.present:
            taints = [taint for taint in taints if taint not in named]
        elif [taint.get("value") or "" for taint in named] != [each.value]:
            taint = {"key": each.key, "effect": each.effect, **({"value": each.value} if each.value else {})}
            taints = [*(taint for taint in taints if taint not in named), taint]
    return taints
