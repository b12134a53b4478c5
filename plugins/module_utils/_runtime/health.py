# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Whether a daemon runs with the configuration that is on disk, and whether it took it."""

from __future__ import annotations

import datetime
import json
import os
import re
import time
import typing as t

if t.TYPE_CHECKING:  # pragma: no cover
    from .._commands import RunCommand
    from .daemons import Daemon

# A daemon that was just started may need a moment until its CRI plugin answers.
SETTLE_SECONDS = 30


def restart_reason(daemon: Daemon, paths: t.Iterable[str]) -> str:
    """Why the daemon must be (re)started; "" when it is younger than the last change of these files and directories.

    Judged by ctime, since mtime can be set to anything: a file that was moved into place keeps its old one.
    """
    if not daemon.running:
        return f"{daemon.name} is not running"
    if daemon.started is None:
        return f"it cannot be told when {daemon.name} (pid {daemon.pid}) was started"
    changed = max(((os.stat(path).st_ctime, path) for path in paths if os.path.exists(path)), default=(0.0, ""))
    if changed[0] < daemon.started:
        return ""
    return (
        f"{changed[1]} changed at {_clock(changed[0])}, "
        f"{daemon.name} (pid {daemon.pid}) was started before, at {_clock(daemon.started)}"
    )


def verify(run_command: RunCommand, daemon: Daemon, handler: str) -> tuple[bool, str]:
    """Asks the daemon whether its CRI plugin runs and, where crictl is there to ask, whether it has the handler."""
    while True:
        verified, reason, final = _ask(run_command, daemon, handler)
        if verified or final or time.time() - (daemon.started or 0) > SETTLE_SECONDS:
            return verified, reason
        time.sleep(1)


def _ask(run_command: RunCommand, daemon: Daemon, handler: str) -> tuple[bool, str, bool]:
    try:
        rc, out, err = run_command(
            ["crictl", "--runtime-endpoint", f"unix://{daemon.socket}", "info"], handle_exceptions=False
        )
    except OSError:
        return _ask_ctr(run_command, daemon)
    if rc != 0:
        return False, f"crictl info: {err.strip()}", False
    runtimes = json.loads(out).get("config", {}).get("containerd", {}).get("runtimes") or {}
    if handler in runtimes:
        return True, f"crictl info: {daemon.name} has the handler '{handler}'", True
    return (
        False,
        f"crictl info: {daemon.name} has no handler '{handler}', only {', '.join(sorted(runtimes)) or 'none'}",
        True,
    )


def _ask_ctr(run_command: RunCommand, daemon: Daemon) -> tuple[bool, str, bool]:
    try:
        rc, out, err = run_command(["ctr", "--address", daemon.socket, "plugins", "ls"], handle_exceptions=False)
    except OSError:
        return (
            True,
            f"{daemon.name} was started after the last change of its files; neither crictl nor ctr is there to ask it",
            True,
        )
    if rc != 0:
        return False, f"ctr plugins ls: {err.strip()}", False
    states = re.findall(r"^io\.containerd\.grpc\.v1\s+cri\s.*?(\S+)\s*$", out, re.MULTILINE)
    if states == ["ok"]:
        return True, f"{daemon.name} loaded its CRI plugin after the last change of its files", True
    return (
        False,
        f"{daemon.name} did not load its CRI plugin (state: {', '.join(states) or 'missing'}); its journal says why",
        True,
    )


def _clock(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat(sep=" ", timespec="milliseconds")


__all__ = ("restart_reason", "verify")
