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

from ._commands import RunCommand
from ._errors import KubegpuError
from ._files import content

# Lost with a reboot, which starts the services itself.
RECORD = "/run/kubegpu/stopped-services.json"


@contextlib.contextmanager
def stopped(run_command: RunCommand, units: t.Sequence[str], record: str = RECORD) -> t.Iterator[None]:
    """Stops those of the units that run; names are recorded first, so that the next run can start them."""
    running = _running(run_command, units)
    if not running:
        yield
        return
    os.makedirs(os.path.dirname(record), exist_ok=True)
    with open(record, "w", encoding="utf-8") as file:
        json.dump(running, file)
    try:
        _systemctl(run_command, "stop", running)
        yield
    finally:
        start_again(run_command, record)


def left_stopped(record: str = RECORD) -> list[str]:
    """The units that a run had stopped which was killed."""
    try:
        return [str(unit) for unit in json.loads(content(record) or "[]")]
    except (ValueError, TypeError):
        return []  # it was killed while it wrote, so it had stopped nothing yet


def start_again(run_command: RunCommand, record: str = RECORD) -> list[str]:
    """Starts them; returns which these were."""
    units = left_stopped(record)
    if units:
        _systemctl(run_command, "start", units)
    if os.path.exists(record):
        os.unlink(record)
    return units


def _running(run_command: RunCommand, units: t.Sequence[str]) -> list[str]:
    if not units:
        return []
    # It fails when one of them does not run, and prints a line for each all the same.
    _rc, out, _err = run_command(["systemctl", "is-active", *units], handle_exceptions=False)
    return [unit for unit, state in zip(units, out.splitlines()) if state in ("active", "activating", "reloading")]


def _systemctl(run_command: RunCommand, verb: str, units: t.Sequence[str]) -> None:
    rc, out, err = run_command(["systemctl", verb, *units], handle_exceptions=False)
    if rc:
        raise KubegpuError(f"systemctl {verb} {' '.join(units)} failed: {(err or out).strip()}")
