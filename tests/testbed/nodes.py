# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes as machines and members of the cluster at once. Tests use these functions too."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from . import container_images
from .command import built, say
from .config import SOURCE, Node
from .kubernetes import cluster
from .machines import machine


def ensure(nodes: list[Node]) -> None:
    """The machines are on, with the images in them. They join the cluster by themselves as soon as it is there."""
    programs = built(SOURCE / "kubernetes" / "build.sh")
    archives = container_images.archives()
    for node in nodes:
        machine.ensure(node, programs)

    def finish(node: Node) -> None:
        machine.wait_until_booted(node)
        container_images.ensure(node, archives)

    with ThreadPoolExecutor() as pool:
        list(pool.map(finish, nodes))


def recreate(node: Node) -> None:
    """Replaces a machine by a freshly installed one of the same name, address and boards; it joins the cluster."""
    say(f"recreating {node.name}")
    machine.remove(node)
    cluster.remove_node(node)
    ensure([node])
    cluster.wait_until_ready([node])


def restart(node: Node) -> None:
    """Reboots a machine in an orderly way."""
    say(f"rebooting {node.name}")
    machine.restart(node)
    cluster.wait_until_ready([node])
