# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines of the running testbed by name: fresh ones, other boards, power cycles."""

from __future__ import annotations

import subprocess
import sys

from testbed import nodes
from testbed.config import SOURCE, running_node


def recreate(name: str) -> None:
    """A freshly installed machine with the boards of the node file."""
    nodes.recreate(running_node(name))


def restart_with(name: str, boards: tuple[str, ...]) -> None:
    """A power cycle with these boards in the slots."""
    node = running_node(name)
    subprocess.run(
        [sys.executable, str(SOURCE / "simgpu" / "hardware.py"), str(node.hardware), "--node", name, *boards],
        check=True,
    )
    nodes.restart(node)
