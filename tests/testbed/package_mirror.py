# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mirror of the package repositories, where the nodes get what comes from NVIDIA elsewhere."""

from __future__ import annotations

import sys

from . import service
from .command import built
from .config import HOST, SOURCE

PORT = 8088
URL = f"http://{HOST}:{PORT}"


def ensure() -> None:
    directory = built(SOURCE / "packages" / "build.sh")
    service.ensure(
        "package-mirror", sys.executable, "-m", "http.server", "--bind", HOST, "--directory", directory, str(PORT)
    )
