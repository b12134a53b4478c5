# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What mig_layout disturbs, counted in the simulated driver's log, against "clear all and recreate"; and its own time.

A seeded walk through layouts on one H100; then a host of four A100 of which one after the other gets another mode,
where mig-parted resets all GPUs of the host for each. The time is that of the module's process, without Ansible's
transport; it is printed as multiples of a module that does nearly nothing. As root: python tests/bench/mig/apply.py
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "simulated"))
from host import Host, checkout  # noqa: E402

LAYOUTS = (
    {"1g.10gb": 7},
    {"3g.40gb": 1, "1g.10gb": 4},
    {"3g.40gb": 1, "2g.20gb": 2},
    {"3g.40gb": 2},
    {"4g.40gb": 1, "1g.10gb": 3},
    {"2g.20gb": 3, "1g.10gb": 1},
    {"7g.80gb": 1},
    {"1g.20gb": 4},
    {"1g.10gb+me": 1, "2g.20gb": 1, "3g.40gb": 1},
)
STEPS = 30


def walk(host: Host) -> tuple[int, int, list[float], list[float]]:
    """Instances destroyed, instances that there were; seconds of runs with and without a change."""
    chance = random.Random(4)
    destroyed = existing = 0
    changing, idle = [], []
    for _step in range(STEPS):
        before = len(host.layout() or [])
        layouts = [{"gpus": ["all"], "profiles": chance.choice(LAYOUTS)}]
        for times in (changing, idle):
            start = time.perf_counter()
            done = host.mig(layouts=layouts)
            times.append(time.perf_counter() - start)
            assert done.code == 0, done.message
            destroyed += done.counts.get("destroy_gpu_instance", 0)
        existing += before
    return destroyed, existing, changing, idle


def resets(host: Host) -> tuple[int, int]:
    """GPUs reset by us, and by resetting all GPUs for every change."""
    ours = 0
    for address in (gpu["pci_address"] for gpu in host.facts()):
        done = host.mig(layouts=[{"gpus": [address], "profiles": {"1g.10gb": 7}}], allow_reset=True)
        assert done.code == 0, done.message
        ours += sum(gpu["reset"] for gpu in done.result["gpus"])
    return ours, len(host.facts()) ** 2


def mean(times: list[float]) -> float:
    return sum(times) / len(times)


def main() -> None:
    command = [str(ROOT / "tests/testbed/simgpu/build.sh"), "580.178.04"]
    build = Path(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip())
    with tempfile.TemporaryDirectory() as directory:
        tree = checkout(Path(directory))
        one = Host(build, tree, "h100-80")
        destroyed, existing, changing, idle = walk(one)
        nothing = []
        for _turn in range(5):
            start = time.perf_counter()
            one.module("gpu_facts", gather=["pci"])
            nothing.append(time.perf_counter() - start)
        one.stop()
        four = Host(build, tree, *["a100-80"] * 4)
        ours, all_of_them = resets(four)
        four.stop()
    print(f"{STEPS} random changes of a layout on an H100: {destroyed} GPU instances destroyed;")
    print(f"  clear all and recreate: {existing}, {existing / max(destroyed, 1):.1f} times as many")
    print(f"MIG mode of four A100, one after the other: {ours} GPUs reset;")
    print(f"  resetting all GPUs for each: {all_of_them}, {all_of_them / max(ours, 1):.1f} times as many")
    print(f"Module with a change {mean(changing) * 1000:.0f} ms, without {mean(idle) * 1000:.0f} ms;")
    ratios = f"{mean(changing) / mean(nothing):.1f} and {mean(idle) / mean(nothing):.1f}"
    print(f"  {ratios} times a module that only reads the PCI bus")


if __name__ == "__main__":
    main()
