# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Programs that are asked for something, where no answer is an answer as well."""

from __future__ import annotations

import typing as t

# AnsibleModule.run_command
RunCommand = t.Callable[..., "tuple[int, str, str]"]


def run(run_command: RunCommand, command: list[str]) -> tuple[int, str, str]:
    """Status, output and errors; status 127 of a program that is not there or cannot be started."""
    try:
        # Without this argument, run_command ends the whole module when the program cannot be started.
        return run_command(command, environ_update={"LC_ALL": "C"}, handle_exceptions=False)
    except OSError as exc:
        return 127, "", str(exc)


def output(run_command: RunCommand, command: list[str]) -> str | None:
    """What the program prints; None when it is not there, cannot be started or fails."""
    rc, out, _err = run(run_command, command)
    return out if rc == 0 else None
