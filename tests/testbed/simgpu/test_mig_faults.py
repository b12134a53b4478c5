# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults on demand."""

from __future__ import annotations

import sys
import time

import pytest
from simulated_node import Node

pytest.importorskip("pynvml")

KILLED = -9
# Four changing calls.
REPLACE = "[destroy(0, 0), create(0, '2g.20gb', 0)]"


@pytest.fixture
def mig(node: Node) -> Node:
    node.plug("h100-80", "h100-80")
    node.load()
    assert node.nvml("[set_mode(0, 1), create(0, '1g.10gb', 0)]")
    return node


def fault(node: Node, *words: str) -> None:
    done = node.run("simgpu", "fault", *words)
    assert done.returncode == 0, done.stderr


def test_branch_that_lists_no_profiles_while_mig_is_off(mig: Node) -> None:
    fault(mig, "all", "no-profiles-when-off")
    assert mig.nvml("len(list(gpu_profiles(0)))") == 7
    assert mig.nvml("len(list(gpu_profiles(1)))") == 0
    assert mig.nvml("placements(1, 19)") == 3
    assert mig.nvml("set_mode(1, 1) or len(list(gpu_profiles(1)))") == 7


def test_driver_that_has_no_names_of_profiles(mig: Node) -> None:
    gi = f"nvmlDeviceGetGpuInstanceById(gpu(0), {mig.nvml('ids(0)[0]')})"
    fault(mig, "all", "no-profile-names")
    assert mig.nvml("nvmlDeviceGetGpuInstanceProfileInfo(gpu(0), 0).id") == 13
    assert mig.nvml("nvmlDeviceGetGpuInstanceProfileInfoById(gpu(0), 19).id") == 13
    assert mig.nvml("nvmlDeviceGetGpuInstanceProfileInfo(gpu(0), 0, version=1).id") == 19
    assert mig.nvml(f"nvmlGpuInstanceGetComputeInstanceProfileInfo({gi}, 0, 0).id") == 13
    assert mig.nvml(f"nvmlGpuInstanceGetComputeInstanceProfileInfo({gi}, 0, 0, version=1).id") == 0


def test_no_permission(mig: Node) -> None:
    """On one board; reading goes on."""
    fault(mig, "0", "no-permission")
    assert mig.nvml("destroy(0, 0)") == 4
    assert mig.nvml("set_mode(0, 0)") == 4
    assert mig.nvml("layout(0)") == [["1g.10gb", 0, [1]]]
    assert mig.nvml("set_mode(1, 1)") == 0


def test_changing_call_that_fails(mig: Node) -> None:
    """The third: the compute and the GPU instance are gone, and the new one is not made, once."""
    fault(mig, "0", "fail", "3", "999")
    assert mig.nvml(REPLACE) == 999
    assert mig.nvml("layout(0)") == []
    assert mig.nvml("create(0, '2g.20gb', 0) and layout(0)") == [["2g.20gb", 0, [2]]]


def test_set_mode_that_fails(mig: Node) -> None:
    fault(mig, "all", "fail", "1", "3")
    assert mig.nvml("set_mode(1, 1)") == 3
    assert mig.nvml("mode(1)") == [0, 0]


def test_reading_call_that_fails(mig: Node) -> None:
    """Each call counts once, whatever it asks."""
    fault(mig, "1", "fail-read", "3", "15")
    # Asking for a handle is about no board yet, so that it does not count here.
    functions = "nvmlDeviceGetName, nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetMemoryInfo"
    calls = f"[status(function, gpu(1)) for function in ({functions})]"
    assert mig.nvml(calls) == [0, 0, 15]
    assert mig.nvml(calls) == [0, 0, 0]


def test_slow_calls(mig: Node) -> None:
    """The caller waits, nobody else."""
    fault(mig, "0", "slow", "3000")
    start = time.monotonic()
    slow = mig.start(sys.executable, "-c", "from nvml_calls import *; nvml.nvmlInit(); set_mode(0, 1)")
    assert mig.nvml("layout(0)") == [["1g.10gb", 0, [1]]]
    assert slow.poll() is None and time.monotonic() - start < 3
    slow.communicate(timeout=20)
    assert time.monotonic() - start > 3


# What is there when the caller of REPLACE was killed before or after its n-th changing call.
BEFORE = {1: [["1g.10gb", 0, [1]]], 2: [["1g.10gb", 0, []]], 3: [], 4: [["2g.20gb", 0, []]]}
AFTER = {1: BEFORE[2], 2: BEFORE[3], 3: BEFORE[4], 4: [["2g.20gb", 0, [2]]]}


@pytest.mark.parametrize(("moment", "expected"), [("before", BEFORE), ("after", AFTER)])
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_caller_is_killed(mig: Node, moment: str, expected: dict[int, object], number: int) -> None:
    fault(mig, "all", f"kill-{moment}", str(number))
    assert mig.call(REPLACE).returncode == KILLED
    assert mig.nvml("layout(0)") == expected[number]
    assert mig.state()["faults"][0]["seen"] == number


def test_caller_is_killed_while_it_only_reads(mig: Node) -> None:
    fault(mig, "all", "kill", "2")
    assert mig.call("[gpu(0), gpu(0)] and 0").returncode == KILLED
    assert mig.nvml("mode(0)") == [1, 1]


def test_faults_are_listed_and_cleared(mig: Node) -> None:
    uuid = mig.state()["gpus"][1]["uuid"]
    fault(mig, uuid, "fail", "2", "23")
    fault(mig, "all", "passthrough")
    assert [(f["kind"], f["gpu"], f["number"], f["code"], f["seen"]) for f in mig.state()["faults"]] == [
        ("fail", uuid, 2, 23, 0),
        ("passthrough", "all", 0, 0, 0),
    ]
    fault(mig, "clear")
    assert mig.state()["faults"] == []


def test_faults_that_are_not_understood(mig: Node) -> None:
    for words in (("all", "nonsense"), ("all", "fail", "1"), ("0",), ("all", "passthrough", "1"), ()):
        assert mig.run("simgpu", "fault", *words).returncode == 2
    assert mig.run("simgpu", "fault", "7", "passthrough").returncode == 1
    assert mig.state()["faults"] == []


def test_faults_end_with_the_driver(mig: Node) -> None:
    fault(mig, "all", "invisible-client")
    assert mig.run("simgpu", "unload").returncode == 0
    mig.load()
    assert mig.state()["faults"] == []
