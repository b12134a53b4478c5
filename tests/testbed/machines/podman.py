# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Podman with the testbed's own settings; everything made by it carries one label, so that `down` finds it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from ..command import Command
from ..config import SOURCE

LABEL = "kubegpu-testbed"
SETTINGS = SOURCE / "machines" / "containers.conf"


def podman_command(*arguments: str | Path) -> Command:
    environment = {**os.environ, "CONTAINERS_CONF": str(SETTINGS)}
    return Command(["podman", *(str(argument) for argument in arguments)], environment)


def podman(*arguments: str | Path, stdin: IO[bytes] | None = None) -> str:
    return podman_command(*arguments).output(stdin)


def exists(kind: str, name: str) -> bool:
    return podman_command(kind, "exists", name).call().returncode == 0
