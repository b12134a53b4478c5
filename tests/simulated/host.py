# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our modules on a host with simulated GPUs, without Ansible's transport: as root, in a mount namespace of its own."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "testbed" / "simgpu"))
from simulated_node import Node  # noqa: E402

MODULES = "ansible_collections.kubegpu.nvidia.plugins.modules"


@dataclass(frozen=True)
class Done:
    code: int
    result: dict[str, Any]
    calls: list[str] = field(default_factory=list)

    @property
    def message(self) -> str:
        return str(self.result.get("msg", ""))

    @property
    def counts(self) -> dict[str, int]:
        """How often which changing call reached the driver, whether it took effect or not."""
        return dict(Counter(line.split()[0] for line in self.calls))


def checkout(directory: Path) -> Path:
    """A directory in which this checkout is ansible_collections/kubegpu/nvidia."""
    (directory / "ansible_collections" / "kubegpu").mkdir(parents=True)
    (directory / "ansible_collections" / "kubegpu" / "nvidia").symlink_to(ROOT)
    return directory


class Host(Node):
    """A node whose PCI bus is that of its boards, on which modules run."""

    def __init__(self, build: Path, tree: Path, *boards: str) -> None:
        super().__init__(build)
        self.scratch = Path(tempfile.mkdtemp(dir=tree))
        self.numbers = itertools.count()
        self.environment["PYTHONPATH"] += f":{tree}"
        self.environment["PATH"] = f"/run/bin:{build}:{os.environ['PATH']}"
        self.plug(*boards)
        self.load()

    def plug(self, *boards: str) -> None:
        super().plug(*boards)
        bind = "mountpoint -q /sys/bus/pci/devices || mount --bind /var/lib/simgpu/hardware/pci /sys/bus/pci/devices"
        assert self.run("sh", "-c", bind).returncode == 0

    def module(self, name: str, check: bool = False, diff: bool = False, **arguments: Any) -> Done:
        self.log()
        done = self.run(*self.module_command(name, _ansible_check_mode=check, _ansible_diff=diff, **arguments))
        try:
            result = json.loads(done.stdout)
        except ValueError:
            result = {"msg": f"{done.stdout}{done.stderr}", "died": True}
        return Done(done.returncode, result, self.log())

    def module_command(self, name: str, **arguments: Any) -> list[str]:
        path = self.scratch / f"{next(self.numbers)}.json"
        path.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": arguments}))
        return [sys.executable, "-m", f"{MODULES}.{name}", str(path)]

    def program(self, name: str, script: str) -> None:
        """A program that modules find before any other of that name."""
        self.run("mkdir", "-p", "/run/bin")
        (self.scratch / name).write_text(f"#!/bin/sh\n{script}\n")
        assert self.run("install", str(self.scratch / name), f"/run/bin/{name}").returncode == 0

    def mig(self, **arguments: Any) -> Done:
        return self.module("mig_layout", **{"stop_services": [], **arguments})

    def facts(self) -> list[dict[str, Any]]:
        done = self.module("gpu_facts", gather=["nvml"])
        return done.result["ansible_facts"]["nvidia_gpu"]["gpus"]

    def layout(self, index: int = 0) -> list[str] | None:
        """What facts say of a GPU, such as ["1g.10gb@0", "3g.40gb@4 []"]; None when MIG is off."""
        instances = self.facts()[index]["mig"]["instances"]
        return None if instances is None else [short(each) for each in instances]


def short(instance: dict[str, Any]) -> str:
    names = [each if isinstance(each, str) else each["profile"] for each in instance["compute_instances"]]
    place = f"{instance['profile']}@{instance['start']}"
    return place if names == [instance["profile"]] else f"{place} [{', '.join(names)}]"


def places(instances: list[dict[str, Any]]) -> list[str]:
    return [short(each) for each in instances]


A, B = "0000:1a:00.0", "0000:1c:00.0"
MODE = "nvmlDeviceGetMigMode(nvmlDeviceGetHandleByIndex(0))"


def want(gpu: str = A, **profiles: int) -> dict[str, Any]:
    """An entry of layouts: want(_3g_40gb=1)."""
    return {"gpus": [gpu], "profiles": {name[1:].replace("_", "."): count for name, count in profiles.items()}}


FIVE = want(_3g_40gb=1, _1g_10gb=4)
THREE = want(_3g_40gb=1, _2g_20gb=2)


def holding(host: Host, *place: str) -> subprocess.Popen[str]:
    """A process that computes there, until its standard input ends."""
    process = host.start("simgpu", "hold", *place, "--", "sh", "-c", "echo holding; read end")
    assert process.stdout and process.stdout.readline() == "holding\n"
    return process


def instance_id(host: Host, profile: str, gpu: int = 0) -> str:
    (found,) = [each["id"] for each in host.facts()[gpu]["mig"]["instances"] if each["profile"] == profile]
    return str(found)
