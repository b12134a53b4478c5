# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key with which the testbed's user reaches the nodes."""

from __future__ import annotations

from ..command import run
from ..config import STATE

KEY = STATE / "ssh" / "id_ed25519"
USER = "admin"


def public_key() -> str:
    if not KEY.exists():
        KEY.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "kubegpu-testbed", "-f", KEY)
    return KEY.with_suffix(".pub").read_text()
