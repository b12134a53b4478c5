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
import typing as t

from .._errors import KubegpuError
from .._files import first_line

PATH = "/run/lock/kubegpu-mig.lock"


@contextlib.contextmanager
def exclusive(path: str = PATH) -> t.Iterator[None]:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise KubegpuError(
                f"Another run changes the MIG layout of this host now (pid {first_line(path) or 'unknown'}). "
                "Nothing was changed; run again when it has ended."
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
