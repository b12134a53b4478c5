# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Brings the MIG layouts of a host to what is declared: decide for all GPUs, refuse or change, note for boot."""

from __future__ import annotations

import time
import typing as t
from dataclasses import dataclass

from .. import _nvml
from .._commands import RunCommand
from .._errors import KubegpuError
from .._files import content
from .._nvml_mig import MigGpu
from .._services import left_stopped, start_again, stopped
from . import apply, boot
from .holders import Holder, holders_of
from .intent import Intent, identity, intents, name_of, state
from .lock import exclusive
from .mode import RebootRequired, reset_with_nvidia_smi, switch
from .model import Layout, describe, layout_of
from .plan import place
from .strategy import contradiction
from .survey import Survey, survey
from .wanted import instances_of, wishes
from .wish import Wishes

Result = dict[str, t.Any]


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


@dataclass(frozen=True)
class Decision:
    """What was found and what shall become of it."""

    survey: Survey
    wishes: Wishes
    intents: list[Intent]

    def disruption(self) -> list[str]:
        return [sentence for intent in self.intents for sentence in intent.disruption()]


def planned(options: Options, binding: _nvml.Binding) -> Result:
    """What bring_about() would do. Raises what it would raise before it changes anything."""
    decision = _decide(options, binding)
    _refuse_resets(decision, options)
    busy = _busy(decision, options, before_change=False)
    if busy and not options.busy_timeout:
        raise _busy_error(busy)
    result = _result(decision, [intent.outcome() for intent in decision.intents], options, {})
    result["changed"] = result["changed"] or bool(left_stopped())
    result["disruption"] += [f"waits up to {options.busy_timeout:.0f} seconds: {line}" for line, _holders in busy]
    return _failed_gpus(decision, result, [])


def bring_about(options: Options, binding: _nvml.Binding, run_command: RunCommand) -> Result:
    """The module's result; raises KubegpuError with as much of it as is known."""
    with exclusive():
        started = start_again(run_command)
        decision = _decide_when_free(options, binding)
        outcomes, errors = _apply(decision, options, binding, run_command)
        result = _result(decision, outcomes, options, errors)
        if result["boot_file_changed"] and options.boot_file:
            boot.write(options.boot_file, result.pop("boot_text"))
        result["changed"] = result["changed"] or bool(started)
        return _failed_gpus(decision, result, list(errors.values()))


def _decide(options: Options, binding: _nvml.Binding) -> Decision:
    found = survey(binding)
    wanted = wishes(options.layouts, options.config, options.selected, options.unmatched, found.targets)
    decision = Decision(found, wanted, intents(wanted.by_address, found.gpus, found.offers))
    by_address = {intent.gpu.pci_address: intent for intent in decision.intents}
    layouts: dict[str, Layout | None] = {}
    for gpu in found.gpus:
        intent = by_address.get(gpu.pci_address)
        if intent:
            layouts[name_of(gpu)] = intent.layout if intent.wish.mode == "enabled" else None
        elif not gpu.error:
            layouts[name_of(gpu)] = layout_of(gpu.mig_instances or ()) if gpu.mig_current == "enabled" else None
    if options.strategy and wanted.by_address:
        reason = contradiction(options.strategy, options.plugin_mps, layouts)
        if reason:
            raise KubegpuError(f"{reason} Nothing was changed.")
    return decision


def _decide_when_free(options: Options, binding: _nvml.Binding) -> Decision:
    deadline = time.monotonic() + options.busy_timeout
    while True:
        decision = _decide(options, binding)
        _refuse_resets(decision, options)
        busy = _busy(decision, options, before_change=True)
        if not busy:
            return decision
        if time.monotonic() >= deadline:
            raise _busy_error(busy)
        time.sleep(min(1, max(0, deadline - time.monotonic())))


def _refuse_resets(decision: Decision, options: Options) -> None:
    resets = [intent.name for intent in decision.intents if intent.resets]
    if resets and not options.allow_reset:
        raise KubegpuError(
            f"Switching the MIG mode of {', '.join(resets)} resets the GPU, and allow_reset is false."
            " Nothing was changed."
        )


def _busy(decision: Decision, options: Options, before_change: bool) -> list[tuple[str, list[Holder]]]:
    """Who is in the way of what, in sentences.

    Who has the GPU open but does not compute is in the way of a mode change only, and may be one of the services or
    pods that are stopped for it: so it counts only right before the change.
    """
    found = []
    for intent in decision.intents:
        holders = holders_of(intent.gpu)
        for instance in intent.busy:
            there = [holder for holder in holders if holder.gpu_instance == instance.id]
            place_ = f"{instance.profile}@{instance.start}"
            found.append((f"{intent.name}: {place_} has to go and is used by {_names(there)}", there))
        if intent.sets_mode and not intent.busy:
            there = [
                holder
                for holder in holders
                if holder.computes or (before_change and holder.unit not in options.stop_services)
            ]
            if there:
                found.append((f"{intent.name}: its MIG mode has to change and it is used by {_names(there)}", there))
    return found


def _names(holders: list[Holder]) -> str:
    return ", ".join(str(holder) for holder in holders) or "a process that NVML does not name"


def _busy_error(busy: list[tuple[str, list[Holder]]]) -> KubegpuError:
    lines = [line for line, _holders in busy]
    advice = (
        "Nothing was changed. Let this work end (drain the node, stop the service), or set busy_timeout to wait for it."
    )
    return KubegpuError("\n".join([*lines, advice]), holders=[each.as_data() for _line, held in busy for each in held])


def _apply(
    decision: Decision, options: Options, binding: _nvml.Binding, run_command: RunCommand
) -> tuple[list[Result], dict[str, str]]:
    """GPU by GPU, so that one that fails leaves the others as they were or as they are wanted. Errors by UUID."""
    outcomes, errors = [], {}
    sets_mode = any(intent.sets_mode for intent in decision.intents)
    with stopped(run_command, options.stop_services if sets_mode else ()):
        for intent in decision.intents:
            outcome = intent.outcome()
            try:
                if intent.changed:
                    outcome = _apply_one(intent, decision.survey, options, binding, run_command)
            except KubegpuError as exc:
                errors[intent.gpu.uuid or ""] = f"{intent.name}: {exc}"
                outcome = _outcome_of_failure(intent, binding, isinstance(exc, RebootRequired))
            outcomes.append(outcome)
    return outcomes, errors


def _apply_one(
    intent: Intent, found: Survey, options: Options, binding: _nvml.Binding, run_command: RunCommand
) -> Result:
    outcome = intent.outcome()
    uuid = intent.gpu.uuid or ""
    if intent.sets_mode:

        def reset() -> None:
            outcome.update(reset=True, reset_with=_reset(intent, found, binding, run_command))

        switch(binding, intent, options.allow_reset, reset)
    if intent.wish.mode == "disabled":
        return outcome
    with _nvml.session(binding) as session:
        device = MigGpu(session, uuid)
        layout = intent.layout
        if intent.changes_mode:
            # Now that MIG is on the driver may list profiles that it could not list before.
            offered = device.offered()
            layout = place(offered, (), instances_of(intent.wish, offered))
        try:
            apply.bring_about(device, layout)
        except apply.NotApplied:
            if intent.changes_mode:
                device.set_mode("disabled")
            raise
    outcome["after"] = state("enabled", layout)
    return outcome


def _reset(intent: Intent, found: Survey, binding: _nvml.Binding, run_command: RunCommand) -> list[str]:
    """This GPU only, or all that are behind the same NVSwitches; returns the others, which get their instances back."""
    group = [gpu for gpu in found.gpus if not gpu.error] if found.nvswitch else [intent.gpu]
    others = [gpu for gpu in group if gpu.pci_address != intent.gpu.pci_address]
    busy = [f"{name_of(gpu)} by {_names(holders_of(gpu))}" for gpu in others if gpu.processes]
    if busy:
        raise KubegpuError(f"GPUs behind NVSwitches are reset together, and others are in use: {'; '.join(busy)}.")
    with _nvml.session(binding) as session:
        former = {
            gpu.uuid: layout_of(MigGpu(session, gpu.uuid).instances())
            for gpu in others
            if gpu.uuid and gpu.mig_current == "enabled"
        }
    reset_with_nvidia_smi(run_command, [gpu.pci_address or "" for gpu in group])
    with _nvml.session(binding) as session:
        for uuid, layout in former.items():
            apply.bring_about(MigGpu(session, uuid), layout)
    return [gpu.pci_address or "" for gpu in others]


def _outcome_of_failure(intent: Intent, binding: _nvml.Binding, reboot_required: bool) -> Result:
    """What is there now, from NVML; what was done to it the error tells."""
    before = state(intent.gpu.mig_current, layout_of(intent.gpu.mig_instances or ()))
    try:
        with _nvml.session(binding) as session:
            device = MigGpu(session, intent.gpu.uuid or "")
            mode = device.modes()[0]
            now = state(mode, layout_of(device.instances()) if mode == "enabled" else ())
    except _nvml.NvmlError:
        now = state(None, ())
    return {
        **identity(intent.gpu),
        "before": before,
        "after": now,
        "kept": [each for each in before["instances"] if each in now["instances"]],
        "destroyed": [each for each in before["instances"] if each not in now["instances"]],
        "created": [each for each in now["instances"] if each not in before["instances"]],
        "mode_changed": before["mode"] != now["mode"],
        "reset": False,
        "reset_with": [],
        "reboot_required": reboot_required,
    }


def _result(decision: Decision, outcomes: list[Result], options: Options, errors: t.Mapping[str, str]) -> Result:
    changed = [
        outcome
        for outcome, intent in zip(outcomes, decision.intents)
        if outcome["before"] != outcome["after"] or intent.changed
    ]
    disruption = decision.disruption()
    result: Result = {
        "changed": bool(changed),
        "layout_changed": bool(changed),
        "gpus": outcomes,
        "disruptive": bool(disruption),
        "disruption": disruption,
        "reboot_required": any(outcome["reboot_required"] for outcome in outcomes),
        # Not "skipped": that key would make Ansible take the task for one that did not run.
        "passed_over": dict(decision.wishes.skipped),
        "diff": {side: {_title(outcome): _brief(outcome[side]) for outcome in changed} for side in ("before", "after")},
        "boot_file_changed": False,
    }
    if options.boot_file:
        result["boot_text"] = _boot_text(outcomes, options.boot_file, errors)
        result["boot_file_changed"] = result["boot_text"] != content(options.boot_file)
        result["changed"] = result["changed"] or result["boot_file_changed"]
    return result


def _boot_text(outcomes: list[Result], boot_file: str, errors: t.Mapping[str, str]) -> str:
    """GPUs as they were read back; one that failed keeps the entry it had."""
    old = {entry.uuid: entry for entry in _old_entries(boot_file)}
    entries = [old[uuid] for uuid in errors if uuid in old]
    for outcome in outcomes:
        if outcome["uuid"] not in errors:
            after = outcome["after"]
            layout = tuple(boot.instance(each) for each in after["instances"])
            entries.append(boot.Entry(outcome["uuid"], outcome["pci_address"], after["mode"], layout))
    return boot.as_text(entries)


def _old_entries(boot_file: str) -> list[boot.Entry]:
    try:
        return boot.read(boot_file)
    except KubegpuError:
        return []  # it is replaced


def _failed_gpus(decision: Decision, result: Result, errors: list[str]) -> Result:
    """Fails in the end, when everybody else has what is wanted."""
    result.pop("boot_text", None)
    errors = [*errors, *(f"GPU at {address}: {reason}" for address, reason in sorted(decision.wishes.failed.items()))]
    if errors:
        raise KubegpuError("\n".join(errors), **result)
    return result


def _title(outcome: Result) -> str:
    return f"{outcome['name']} at {outcome['pci_address']}"


def _brief(now: Result) -> dict[str, t.Any]:
    return {"mode": now["mode"], "instances": [describe(boot.instance(each)) for each in now["instances"]]}
