# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Decides for all GPUs of a host before anything is changed, and refuses what cannot or may not be."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .. import _nvml
from .._errors import KubegpuError
from .holders import Holder, holders_of
from .intent import Intent, intents, name_of
from .model import Layout, layout_of
from .strategy import contradiction
from .survey import Survey, survey
from .wanted import wishes
from .wish import Wishes

# They have every GPU open, and no report says that they keep a MIG mode from changing: the driver's answer decides.
NOT_IN_THE_WAY = frozenset({"nvidia-fabricmanager.service", "nvidia-imex.service"})


@dataclass(frozen=True)
class Options:
    """The module's options; its documentation says what they mean."""

    layouts: list[dict[str, t.Any]] | None
    config: t.Any
    selected: str | None
    unmatched: str
    allow_reset: bool
    busy_timeout: float
    stop_services: list[str]
    strategy: str | None
    plugin_mps: bool
    boot_file: str | None
    allow_disruption: bool = True


@dataclass(frozen=True)
class Decision:
    """What was found and what shall become of it."""

    survey: Survey
    wishes: Wishes
    intents: list[Intent]

    @property
    def changes_mode(self) -> bool:
        return any(intent.changes_mode for intent in self.intents)

    def disruption(self) -> list[str]:
        return [sentence for intent in self.intents for sentence in intent.disruption()]


def decide(options: Options, binding: _nvml.Binding) -> Decision:
    """Raises KubegpuError for all that is wrong with the wish."""
    found = survey(binding)
    wanted = wishes(options.layouts, options.config, options.selected, options.unmatched, found.targets)
    decision = Decision(found, wanted, intents(wanted.by_address, found.gpus, found.offers))
    reason = None
    if options.strategy and wanted.by_address:
        reason = contradiction(options.strategy, options.plugin_mps, _layouts(decision))
    if reason:
        raise KubegpuError(f"{reason} Nothing was changed.")
    resets = [intent.name for intent in decision.intents if intent.resets]
    if resets and not options.allow_reset:
        raise KubegpuError(
            f"Switching the MIG mode of {', '.join(resets)} resets the GPU, and allow_reset is false. Nothing was"
            " changed. Set allow_reset: true when no work runs there."
        )
    if decision.disruption() and not options.allow_disruption:
        raise KubegpuError("\n".join([*decision.disruption(), "allow_disruption is false. Nothing was changed."]))
    return decision


def _layouts(decision: Decision) -> dict[str, Layout | None]:
    """Of every GPU of the host after the change; None is without MIG."""
    intended = {intent.gpu.pci_address: intent for intent in decision.intents}
    layouts: dict[str, Layout | None] = {}
    for gpu in decision.survey.gpus:
        intent = intended.get(gpu.pci_address)
        if intent:
            layouts[name_of(gpu)] = intent.layout if intent.wish.mode == "enabled" else None
        elif not gpu.error:
            layouts[name_of(gpu)] = layout_of(gpu.mig_instances or ()) if gpu.mig_current == "enabled" else None
    return layouts


def in_the_way(decision: Decision, options: Options, before_change: bool) -> list[tuple[str, list[Holder]]]:
    """Who is in the way of what, in sentences.

    Who has the GPU open but does not compute is in the way of a mode change only, and may be one of the services or
    pods that are stopped for it: so it counts only right before the change.
    """
    found = []
    for intent in decision.intents:
        holders = holders_of(intent.gpu)
        for instance in intent.busy:
            there = [holder for holder in holders if holder.gpu_instance == instance.id]
            place = f"{instance.profile}@{instance.start}"
            found.append((f"{intent.name}: {place} has to go and is used by {names(there)}", there))
        if intent.changes_mode and not intent.busy:
            ignored = {*options.stop_services, *NOT_IN_THE_WAY}
            there = [each for each in holders if each.computes or (before_change and each.unit not in ignored)]
            if there:
                found.append((f"{intent.name}: its MIG mode has to change and it is used by {names(there)}", there))
    return found


def names(holders: list[Holder]) -> str:
    return ", ".join(str(holder) for holder in holders) or "a process that NVML does not name"


def busy_error(busy: list[tuple[str, list[Holder]]]) -> KubegpuError:
    lines = [line for line, _holders in busy]
    lines.append(
        "Nothing was changed. Let this work end (drain the node, stop the service), or set busy_timeout to wait for it."
    )
    return KubegpuError("\n".join(lines), holders=[each.as_data() for _line, held in busy for each in held])
