# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node with simulated boards: namespaces for its files and its processes, and containers on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
VERSION = "580.178.04"
NAMESPACES = ("unshare", "-m", "-p", "-f", "--mount-proc", "--propagation", "private")

# Private copies of what loading the driver changes. The node is ready when it says so. The shell is the node's first
# process, which reaps orphans and takes all others along when it ends.
NODE = """
set -e
mount -t tmpfs tmpfs /run
mkdir -p /var/lib/simgpu
mount -t tmpfs tmpfs /var/lib/simgpu
mount -t tmpfs tmpfs /var/log
mkdir /run/dev
cp -a /dev/null /dev/zero /dev/urandom /run/dev
mount --bind /run/dev /dev
mkdir /run/lib
cp "$1/libnvidia-ml.so.$2" /run/lib/libnvidia-ml.so.1
echo ready
cat
exit
"""

# What CDI puts into a container: the named devices, the library and the socket; nothing else of the node.
CONTAINER = """
set -e
devices=$1
shift
mkdir -p /run/container
mount -t tmpfs tmpfs /run/container
mkdir /run/container/lib /run/container/nvidia-persistenced /run/container/dev
(cd /dev; cp -a --parents null zero urandom nvidiactl $devices /run/container/dev)
cp /run/lib/* /run/container/lib
touch /run/container/nvidia-persistenced/socket
mount --bind /run/nvidia-persistenced/socket /run/container/nvidia-persistenced/socket
mount --bind /run/container/dev /dev
mount --rbind /run/container /run
exec "$@"
"""


class Node:
    """A simulated node with the driver's files, not yet loaded."""

    def __init__(self, build: Path) -> None:
        self.build = build
        self.environment = {**os.environ, "LD_LIBRARY_PATH": "/run/lib", "PYTHONPATH": str(HERE)}
        self.logged = 0
        self.anchor = subprocess.Popen(
            [*NAMESPACES, "bash", "-c", NODE, "node", str(build), VERSION],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.anchor.stdout and self.anchor.stdout.readline() == "ready\n"
        self.first_process = Path(f"/proc/{self.anchor.pid}/task/{self.anchor.pid}/children").read_text().strip()
        self.plug("h100-80", "t4")

    def command(self, *command: str) -> list[str]:
        path = str(self.build / command[0])
        enter = ("nsenter", "-m", "-p", "-t", self.first_process)
        return [*enter, path if Path(path).exists() else command[0], *command[1:]]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*command), env=self.environment, capture_output=True, text=True, timeout=30)

    def start(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*command), env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def plug(self, *boards: str) -> None:
        assert not self.run(
            sys.executable, str(HERE / "hardware.py"), "/var/lib/simgpu/hardware", "--node", "gpu-a", *boards
        ).returncode

    def load(self, *options: str) -> None:
        done = self.run("simgpu", "load", *options)
        assert done.returncode == 0, done.stderr

    def call(self, code: str, inside: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Runs a program that prints an expression of names of pynvml and nvml_calls, or the number of its error."""
        program = "import json\nfrom pynvml import *\nfrom nvml_calls import *\n"
        program += f"try:\n nvmlInit()\n print(json.dumps({code}))\nexcept NVMLError as e: print(e.value)"
        return self.run(*inside, sys.executable, "-c", program)

    def nvml(self, code: str, inside: tuple[str, ...] = ()) -> Any:
        """The value of such an expression, or the number of the error that came instead."""
        done = self.call(code, inside)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def state(self) -> Any:
        return json.loads(self.run("simgpu", "show").stdout)

    def log(self) -> list[str]:
        """The changing calls since the last time it was asked: name, details and status."""
        lines = Path(f"/proc/{self.anchor.pid}/root/var/log/simgpu.log").read_text().splitlines()
        new, self.logged = lines[self.logged :], len(lines)
        return [line.split(" ", 3)[3] for line in new]

    def in_container(self, *command: str, devices: tuple[str, ...] = ("nvidia1",)) -> tuple[str, ...]:
        """A command in a container that has these devices."""
        return (*NAMESPACES, "bash", "-c", CONTAINER, "container", " ".join(devices), *command)

    def stop(self) -> None:
        self.run("simgpu", "unload", "--force")
        self.anchor.communicate(timeout=10)
