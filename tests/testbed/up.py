# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings up what is missing of the testbed."""

from __future__ import annotations

import shutil
from pathlib import Path

from . import nodes, package_mirror
from .ansible import environment, inventory
from .command import TestbedError, built, say
from .config import NODE_FILE, SOURCE, STATE, Node, read_nodes
from .kubernetes import cluster, control_plane, pki
from .machines import network


def up(node_file: Path) -> None:
    wanted = _choose(node_file)
    pki.ensure_authority()
    network.ensure()
    # The machines first: with them comes the network's bridge, on which everything else listens.
    nodes.ensure(wanted)
    control_plane.ensure(built(SOURCE / "kubernetes" / "build.sh"))
    package_mirror.ensure()
    inventory.write(wanted)
    environment.link_collection()
    cluster.wait_until_ready(wanted)
    say('the testbed is up; work with it after: eval "$(make -s testbed-env)"')


def _choose(node_file: Path) -> list[Node]:
    """The nodes to run. A testbed that is up keeps its own until it is taken down."""
    wanted = read_nodes(node_file)
    if NODE_FILE.exists() and read_nodes(NODE_FILE) != wanted:
        raise TestbedError("a testbed with other nodes is up; take it down first: make testbed-down")
    STATE.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not NODE_FILE.exists():
        shutil.copy(node_file, NODE_FILE)
    return wanted
