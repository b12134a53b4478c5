# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the testbed's things are, and which nodes it has."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import yaml

from .command import TestbedError

SOURCE = Path(__file__).resolve().parent
CHECKOUT = SOURCE.parent.parent

# State of the running testbed: keys, logs, hardware of the nodes. `down` removes it.
STATE = Path(os.environ.get("KUBEGPU_TESTBED") or "/var/tmp/kubegpu-testbed")
# The node file of the running testbed.
NODE_FILE = STATE / "testbed.yml"

# This machine on the nodes' network, where the API server and the package mirror listen.
HOST = "10.89.0.1"
NETWORK = "10.89.0.0/24"
API = f"https://{HOST}:6443"
# The service `kubernetes`; machines/rootfs has a unit that leads it to the API server.
SERVICE_NETWORK = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"


@dataclass(frozen=True)
class Node:
    """A machine of the testbed as its node file describes it."""

    name: str
    image: str
    boards: tuple[str, ...]
    number: int

    @property
    def address(self) -> str:
        return f"10.89.0.{10 + self.number}"

    @property
    def pod_network(self) -> str:
        return f"10.244.{self.number}.0/24"

    @property
    def first_boot(self) -> Path:
        """The files that the node takes over when it boots for the first time."""
        return STATE / "first-boot" / self.name

    @property
    def hardware(self) -> Path:
        """The node's PCI bus and the boards in it."""
        return STATE / "hardware" / self.name


def read_nodes(path: Path) -> list[Node]:
    """The nodes of a node file. The order gives them their addresses."""
    try:
        entries = yaml.safe_load(path.read_text())["nodes"]
        return [
            Node(entry["name"], entry["image"], tuple(entry["boards"]), number)
            for number, entry in enumerate(entries, start=1)
        ]
    except OSError as error:
        raise TestbedError(f"cannot read the node file: {error}") from error
    except (KeyError, TypeError) as error:
        raise TestbedError(f"{path}: every node needs name, image and boards ({error!r})") from error


def running_nodes() -> list[Node]:
    if not NODE_FILE.exists():
        raise TestbedError(f"no testbed is up in {STATE}; start it with `make testbed-up`")
    return read_nodes(NODE_FILE)


def running_node(name: str) -> Node:
    nodes = {node.name: node for node in running_nodes()}
    if name not in nodes:
        raise TestbedError(f"there is no node {name!r}; the nodes are {', '.join(nodes)}")
    return nodes[name]
