# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs in the background of this machine: a record and a log file each, by which a later run finds them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

from .command import TestbedError, say
from .config import STATE

RECORDS = STATE / "run"
LOGS = STATE / "logs"


def ensure(name: str, *argv: str | Path) -> None:
    """Starts the program unless it runs already with these arguments."""
    words = [str(word) for word in argv]
    record = _read(name)
    if record and record["argv"] == words and _is_running(record):
        return
    stop(name)
    RECORDS.mkdir(parents=True, exist_ok=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    say(f"starting {name}")
    with (LOGS / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True
        )
    record = {"argv": words, "pid": process.pid, "started": _started(process.pid)}
    (RECORDS / f"{name}.json").write_text(json.dumps(record))


def check(name: str) -> None:
    """Complains, with the end of its log, when the program has ended by itself."""
    record = _read(name)
    if not (record and _is_running(record)):
        log = LOGS / f"{name}.log"
        raise TestbedError(f"{name} has ended; the end of {log}:\n" + "\n".join(log.read_text().splitlines()[-5:]))


def stop(name: str) -> None:
    record = _read(name)
    for how, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 2)):
        if record and _is_running(record):
            with contextlib.suppress(ProcessLookupError):
                os.kill(record["pid"], how)
            _wait_for_end(record, patience)
    (RECORDS / f"{name}.json").unlink(missing_ok=True)


def names() -> list[str]:
    """What was started and not stopped, the last one first."""
    records = sorted(RECORDS.glob("*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    return [path.stem for path in records]


def _wait_for_end(record: dict, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while _is_running(record) and time.monotonic() < deadline:
        time.sleep(0.1)


def _read(name: str) -> dict | None:
    try:
        return json.loads((RECORDS / f"{name}.json").read_text())
    except (FileNotFoundError, ValueError):
        return None


def _started(pid: int) -> str | None:
    """When a process began (clock ticks since boot); with the pid it names a process for good. None: it is gone."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else fields[19]


def _is_running(record: dict) -> bool:
    return record["started"] is not None and _started(record["pid"]) == record["started"]
