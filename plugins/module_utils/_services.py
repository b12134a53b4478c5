# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Services that are out of the way for a while, and come back whatever happens between - also to this process."""

from __future__ import annotations

import contextlib
import json
import os
import typing as t

from ._commands import RunCommand, run
from ._errors import KubegpuError
from ._files import content

# Lost with a reboot, which starts the services itself.
RECORD = "/run/kubegpu/stopped-services.json"


@contextlib.contextmanager
def stopped(
    run_command: RunCommand, units: t.Sequence[str], problems: list[str], record: str = RECORD
) -> t.Iterator[None]:
    """Stops those of the units that run. What does not start again afterwards is a problem, and no exception.

    Their names are recorded first, so that the next run can start them if this one does not get to it.
    """
    running = [unit for unit in units if _runs(run_command, unit)]
    if not running:
        yield
        return
    _note(record, [*left_stopped(record), *running])
    try:
        for unit in running:
            rc, out, err = run(run_command, ["systemctl", "stop", unit])
            if rc:
                raise KubegpuError(
                    f"{unit} has to be out of the way of a change of the MIG mode and cannot be stopped:"
                    f" {(err or out).strip()} Nothing was changed. Take it out of stop_services if it may stay."
                )
        yield
    finally:
        problems += start_again(run_command, record)[1]


def left_stopped(record: str = RECORD) -> list[str]:
    """The units that a run had stopped which was killed, or that did not start again."""
    try:
        return [str(unit) for unit in json.loads(content(record) or "[]")]
    except (ValueError, TypeError):
        return []  # it was killed while it wrote, so it had stopped nothing yet


def start_again(run_command: RunCommand, record: str = RECORD) -> tuple[list[str], list[str]]:
    """Starts them; returns which these were, and what is wrong with those that do not start and stay recorded."""
    started, failed, problems = [], [], []
    for unit in left_stopped(record):
        rc, out, err = run(run_command, ["systemctl", "start", unit])
        if rc:
            failed.append(unit)
            problems.append(
                f"{unit} was stopped for a change of the MIG mode and does not start: {(err or out).strip()}"
            )
        else:
            started.append(unit)
    if failed:
        _note(record, failed)
    elif os.path.exists(record):
        os.unlink(record)
    return started, problems


def _note(record: str, units: list[str]) -> None:
    os.makedirs(os.path.dirname(record), exist_ok=True)
    with open(record, "w", encoding="utf-8") as file:
        json.dump(units, file)


def _runs(run_command: RunCommand, unit: str) -> bool:
    _rc, out, _err = run(run_command, ["systemctl", "is-active", unit])
    return out.strip() in ("active", "activating", "reloading")
