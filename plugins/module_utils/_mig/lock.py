# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""One change of a host's MIG layout at a time. The kernel frees the lock with the process that held it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import typing as t

from .._errors import KubegpuError
from .._files import first_line

# Not in /run/lock, where everybody may make files and hold locks.
PATH = "/run/kubegpu/mig.lock"


@contextlib.contextmanager
def exclusive(path: str = PATH, patience: float = 0) -> t.Iterator[None]:
    """Raises KubegpuError when somebody else has it for longer than that many seconds."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise KubegpuError(f"{path} cannot be opened ({exc.strerror}); run the task with become.") from exc
    with os.fdopen(handle, "r+", encoding="utf-8") as file:
        deadline = time.monotonic() + patience
        while not _taken(file):
            if time.monotonic() >= deadline:
                raise KubegpuError(
                    f"Another run changes the MIG layout of this host now (pid {first_line(path) or 'unknown'}). "
                    "Nothing was changed; run again when it has ended."
                )
            time.sleep(1)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _taken(file: t.IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
