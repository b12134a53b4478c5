# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Brings the MIG layouts of a host to what is declared: GPU by GPU, read back, and noted for the next boot."""

from __future__ import annotations

import time
import typing as t

from .. import _nvml
from .._commands import RunCommand
from .._errors import KubegpuError
from .._files import content
from .._nvml_mig import MigGpu
from .._services import left_stopped, start_again, stopped
from . import apply, boot
from .decide import Decision, Options, busy_error, decide, in_the_way, names
from .holders import holders_of
from .intent import Intent, name_of, state
from .lock import exclusive
from .mode import RebootRequired, reset_with_nvidia_smi, switch, taken_back
from .model import Layout, describe, layout_of
from .plan import place
from .survey import Survey
from .wanted import instances_of

Outcome = dict[str, t.Any]


def planned(options: Options, binding: _nvml.Binding) -> dict[str, t.Any]:
    """What bring_about() would do. Raises what it would raise before it changes anything."""
    decision = decide(options, binding)
    busy = in_the_way(decision, options, before_change=False)
    if busy and not options.busy_timeout:
        raise busy_error(busy)
    result = _result(decision, [intent.outcome() for intent in decision.intents])
    result["disruption"] += [f"waits up to {options.busy_timeout:.0f} seconds: {line}" for line, _holders in busy]
    if options.boot_file:
        text = _boot_text(decision, result["gpus"], {}, options.boot_file)
        result["boot_file_changed"] = _differs(text, options.boot_file)
    result["changed"] = result["layout_changed"] or result["boot_file_changed"] or bool(left_stopped())
    return _ended(decision, result, [])


def bring_about(options: Options, binding: _nvml.Binding, run_command: RunCommand) -> dict[str, t.Any]:
    """The module's result; raises KubegpuError with as much of it as is known."""
    with exclusive():
        started, problems = start_again(run_command)
        decision = _when_nobody_is_in_the_way(options, binding)
        with stopped(run_command, options.stop_services if decision.changes_mode else (), problems):
            outcomes, errors = _apply(decision, options, binding, run_command)
        result = _result(decision, outcomes)
        if options.boot_file:
            text = _boot_text(decision, outcomes, errors, options.boot_file)
            result["boot_file_changed"] = _differs(text, options.boot_file)
            try:
                if result["boot_file_changed"]:
                    boot.write(options.boot_file, text)
            except KubegpuError as exc:
                problems.append(str(exc))
        result["changed"] = result["layout_changed"] or result["boot_file_changed"] or bool(started)
        # Where anything else is wrong, too, a reboot is not what the host needs.
        waiting = [outcome["uuid"] for outcome in outcomes if outcome["reboot_required"]]
        result["reboot_required"] = bool(waiting) and waiting == list(errors) and not problems
        return _ended(decision, result, [*errors.values(), *problems])


def _when_nobody_is_in_the_way(options: Options, binding: _nvml.Binding) -> Decision:
    deadline = time.monotonic() + options.busy_timeout
    while True:
        decision = decide(options, binding)
        busy = in_the_way(decision, options, before_change=True)
        if not busy:
            return decision
        if time.monotonic() >= deadline:
            raise busy_error(busy)
        time.sleep(min(1, max(0, deadline - time.monotonic())))


def _apply(
    decision: Decision, options: Options, binding: _nvml.Binding, run_command: RunCommand
) -> tuple[list[Outcome], dict[str, str]]:
    """GPU by GPU, so that one that fails leaves the others as they were or as they are wanted. Errors by UUID."""
    outcomes: list[Outcome] = []
    errors: dict[str, str] = {}
    for intent in decision.intents:
        outcome = intent.outcome()
        outcomes.append(outcome)
        if not intent.changed:
            continue
        outcome["reset"] = False
        try:
            if intent.sets_mode:

                def reset(intent: Intent = intent, outcome: Outcome = outcome) -> None:
                    outcome["reset"] = True
                    outcome["reset_with"] = _reset(intent, decision.survey, binding, run_command, errors)

                switch(binding, intent, options.allow_reset, reset)
                outcome["reset"] = outcome["reset"] or intent.resets
            if intent.wish.mode == "enabled":
                outcome["after"] = state("enabled", _lay_out(intent, binding))
        except KubegpuError as exc:
            errors[intent.uuid] = f"{intent.name}: {exc}"
            outcome["reboot_required"] = isinstance(exc, RebootRequired)
            _read_what_is_there(outcome, intent, binding)
    return outcomes, errors


def _lay_out(intent: Intent, binding: _nvml.Binding) -> Layout:
    """The layout that the GPU has now. With a mode that was switched on for it, MIG is off again when that fails."""
    layout = intent.layout
    try:
        with _nvml.session(binding) as session:
            device = MigGpu(session, intent.uuid)
            if intent.changes_mode:
                # Now that MIG is on the driver may list profiles that it could not list before.
                offered = device.offered()
                layout = place(offered, (), instances_of(intent.wish, offered))
            apply.bring_about(device, layout)
    except KubegpuError as exc:
        if not intent.changes_mode:
            raise
        raise taken_back(binding, intent, (), str(exc)) from exc
    return layout


def _reset(
    intent: Intent, found: Survey, binding: _nvml.Binding, run_command: RunCommand, errors: dict[str, str]
) -> list[str]:
    """This GPU only, or all that are behind the same NVSwitches; returns the others, which get their instances back."""
    others = [gpu for gpu in found.gpus if gpu.uuid and not gpu.error and gpu.uuid != intent.uuid]
    others = others if found.nvswitch else []
    busy = [f"{name_of(gpu)} by {names(holders_of(gpu))}" for gpu in others if gpu.processes]
    if busy:
        raise KubegpuError(f"GPUs behind NVSwitches are reset together, and others are in use: {'; '.join(busy)}.")
    former: dict[str, Layout] = {}
    with _nvml.session(binding) as session:
        for gpu in others:
            device = MigGpu(session, gpu.uuid or "")
            # Asked now: this run may have given it its instances.
            if device.modes()[0] == "enabled":
                former[gpu.uuid or ""] = layout_of(device.instances())
    addresses = [gpu.pci_address or "" for gpu in (intent.gpu, *others)]
    try:
        reset_with_nvidia_smi(run_command, addresses)
    finally:
        # Also when it failed: it may have reset some of them.
        for uuid, layout in former.items():
            try:
                with _nvml.session(binding) as session:
                    apply.bring_about(MigGpu(session, uuid), layout)
            except KubegpuError as exc:
                errors[uuid] = f"GPU {uuid}, which was reset with {intent.name}, did not get its instances back: {exc}"
    return addresses[1:]


def _read_what_is_there(outcome: Outcome, intent: Intent, binding: _nvml.Binding) -> None:
    """After a failure; nothing is claimed of a GPU that does not answer."""
    before = outcome["before"]
    try:
        with _nvml.session(binding) as session:
            device = MigGpu(session, intent.uuid)
            mode = device.modes()[0]
            after = state(mode, layout_of(device.instances()) if mode == "enabled" else ())
    except KubegpuError:
        outcome.update(after=state(None, ()), kept=[], destroyed=[], created=[], mode_changed=False)
        return
    outcome.update(
        after=after,
        kept=[each for each in before["instances"] if each in after["instances"]],
        destroyed=[each for each in before["instances"] if each not in after["instances"]],
        created=[each for each in after["instances"] if each not in before["instances"]],
        mode_changed=before["mode"] != after["mode"],
    )


def _result(decision: Decision, outcomes: list[Outcome]) -> dict[str, t.Any]:
    changed = [
        outcome
        for outcome, intent in zip(outcomes, decision.intents)
        if intent.changed or outcome["before"] != outcome["after"]
    ]
    disruption = decision.disruption()
    return {
        "layout_changed": bool(changed),
        "gpus": outcomes,
        "disruptive": bool(disruption),
        "disruption": disruption,
        "reboot_required": False,
        # Not "skipped": that key would make Ansible take the task for one that did not run.
        "passed_over": dict(decision.wishes.skipped),
        "diff": {
            side: {f"{each['name']} at {each['pci_address']}": _brief(each[side]) for each in changed}
            for side in ("before", "after")
        },
        "boot_file_changed": False,
    }


def _brief(now: dict[str, t.Any]) -> dict[str, t.Any]:
    return {"mode": now["mode"], "instances": [describe(boot.instance(each)) for each in now["instances"]]}


def _boot_text(decision: Decision, outcomes: list[Outcome], errors: t.Mapping[str, str], boot_file: str) -> str:
    """GPUs as they were read back.

    One that failed keeps the entry it had, but not if it waits for a reboot, which would then take the new mode back.
    One that is kept as it is keeps its entry as long as that is what it is, and one that is lost until it is repaired.
    """
    done = {outcome["uuid"]: outcome for outcome in outcomes}
    live = {gpu.uuid: gpu for gpu in decision.survey.gpus if not gpu.error}
    here = {target.uuid for target in decision.survey.targets if target.ours}
    entries = []
    for entry in _old_entries(boot_file):
        outcome, gpu = done.get(entry.uuid), live.get(entry.uuid)
        if outcome is not None:
            keeps = entry.uuid in errors and not outcome["reboot_required"]
        elif gpu is not None:
            keeps = (gpu.mig_current, layout_of(gpu.mig_instances or ())) == (entry.mode, entry.layout)
        else:
            keeps = entry.uuid in here
        entries += [entry] if keeps else []
    for outcome in outcomes:
        if outcome["uuid"] not in errors:
            after = outcome["after"]
            layout = tuple(boot.instance(each) for each in after["instances"])
            entries.append(boot.Entry(outcome["uuid"], outcome["pci_address"], after["mode"], layout))
    return boot.as_text(entries)


def _differs(text: str, boot_file: str) -> bool:
    """A host for which nothing is declared needs no file."""
    found = content(boot_file)
    return text != found and (found is not None or text != boot.as_text([]))


def _old_entries(boot_file: str) -> list[boot.Entry]:
    try:
        return boot.read(boot_file)
    except KubegpuError:
        return []  # it is replaced


def _ended(decision: Decision, result: dict[str, t.Any], errors: list[str]) -> dict[str, t.Any]:
    """Fails in the end, when everybody else has what is wanted."""
    errors += [f"GPU at {address}: {reason}" for address, reason in sorted(decision.wishes.failed.items())]
    if errors:
        raise KubegpuError("\n".join(errors), **result)
    return result
