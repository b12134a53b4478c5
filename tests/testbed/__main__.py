# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The testbed's command line; testbed.sh starts it in its Python environment."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path

from . import config, nodes
from .ansible import environment
from .command import TestbedError
from .down import down
from .machines.podman import podman_command
from .up import up


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="testbed.sh", description="A GPU cluster on one machine without a GPU.")
    commands = parser.add_subparsers(dest="command", required=True)
    node_file = Path(os.environ.get("TESTBED") or config.SOURCE / "testbed.yml")
    commands.add_parser("up", help="start what is missing").add_argument(
        "nodes", nargs="?", type=Path, default=node_file, help="node file (default: $TESTBED, else testbed.yml)"
    )
    commands.add_parser("down", help="remove everything but what was built for it")
    commands.add_parser("env", help="print the settings to work with the testbed")
    for name, text in {
        "recreate": "replace a node by a freshly installed one",
        "restart": "reboot a node",
        "shell": "open a shell on a node",
    }.items():
        commands.add_parser(name, help=text).add_argument("node")
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    if arguments.command == "up":
        up(arguments.nodes)
    elif arguments.command == "down":
        down()
    elif arguments.command == "env":
        for name, value in environment.variables().items():
            print(f"export {name}={shlex.quote(value)}")
    elif arguments.command == "shell":
        command = podman_command("exec", "-it", arguments.node, "/bin/bash")
        os.execvpe(command.argv[0], command.argv, command.environment)
    else:
        node = config.running_node(arguments.node)
        {"recreate": nodes.recreate, "restart": nodes.restart}[arguments.command](node)


try:
    main()
except TestbedError as error:
    sys.exit(f"testbed: {error}")
