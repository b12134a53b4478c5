# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes all that the testbed made on this machine, but for what is worth keeping: built things and node images."""

from __future__ import annotations

import shutil

from . import service
from .command import say
from .config import STATE
from .machines import network
from .machines.podman import LABEL, podman


def down() -> None:
    # Machines first: the API server ends at once when nobody watches it any more.
    machines = podman("ps", "--all", "--quiet", "--filter", f"label={LABEL}").split()
    if machines:
        say("removing the machines")
        podman("rm", "--force", "--time", "0", *machines)
    volumes = podman("volume", "ls", "--quiet", "--filter", f"label={LABEL}").split()
    if volumes:
        podman("volume", "rm", *volumes)
    for name in service.names():
        say(f"stopping {name}")
        service.stop(name)
    network.remove()
    shutil.rmtree(STATE, ignore_errors=True)
    say("the testbed is gone")
