# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changing the MIG mode of simulated boards: what it needs, what it costs, how long it lasts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from simulated_node import Node

pytest.importorskip("pynvml")

AMPERE, HOPPER = "a100-80", "h100-80"
IN_USE, RESET_REQUIRED = 19, 16


def made_of(node: Node, *boards: str) -> Node:
    node.plug(*boards)
    node.load()
    return node


@contextmanager
def running(node: Node, *command: str) -> Iterator[subprocess.Popen[str]]:
    """A process that says when it is ready and ends when it is told to."""
    process = node.start(*command)
    assert process.stdout and process.stdout.readline() == "ready\n"
    yield process
    process.communicate("end\n", timeout=10)


def work_on(node: Node, gpu: str) -> tuple[str, ...]:
    return ("simgpu", "hold", gpu, "--", "sh", "-c", "echo ready; read end")


CLIENT = (sys.executable, "-c", "from pynvml import *; nvmlInit(); print('ready', flush=True); input()")


def resets(node: Node) -> int:
    return sum(line.startswith("reset ") for line in node.log())


@pytest.mark.parametrize(("board", "cost"), [(AMPERE, 1), (HOPPER, 0)])
def test_idle_board_switches_at_once(node: Node, board: str, cost: int) -> None:
    """Ampere is reset for it, both ways; setting the mode that is there does nothing."""
    made_of(node, board)
    assert node.nvml("[set_mode(0, 1), mode(0)]") == [0, [1, 1]]
    assert resets(node) == cost
    assert node.nvml("create(0, '1g.10gb', 0)") >= 0
    assert node.nvml("[set_mode(0, 1), layout(0)]") == [0, [["1g.10gb", 0, [1]]]]
    assert resets(node) == 0
    assert node.nvml("[set_mode(0, 0), mode(0)]") == [0, [0, 0]]
    assert resets(node) == cost
    assert node.nvml("[set_mode(0, 1), layout(0)]") == [0, []]


@pytest.mark.parametrize("board", [AMPERE, HOPPER])
def test_board_at_work_waits(node: Node, board: str) -> None:
    """The wish stays until it is set again when nobody is in the way; work on another board is not in the way."""
    made_of(node, board, HOPPER)
    with running(node, *work_on(node, "0")):
        assert node.nvml("[set_mode(0, 1), mode(0)]") == [IN_USE, [0, 1]]
        assert node.nvml("[set_mode(1, 1), mode(1)]") == [0, [1, 1]]
    assert node.nvml("mode(0)") == [0, 1]
    assert node.nvml("[set_mode(0, 1), mode(0)]") == [0, [1, 1]]


@pytest.mark.parametrize("board", [AMPERE, HOPPER])
def test_somebody_else_who_has_the_driver_open_is_in_the_way(node: Node, board: str) -> None:
    made_of(node, board)
    with running(node, *CLIENT):
        assert node.nvml("[set_mode(0, 1), mode(0)]") == [IN_USE, [0, 1]]
    assert node.nvml("[set_mode(0, 1), mode(0)]") == [0, [1, 1]]


def test_wish_that_waits_can_be_taken_back(node: Node) -> None:
    made_of(node, AMPERE)
    with running(node, *work_on(node, "0")):
        assert node.nvml("set_mode(0, 1)") == IN_USE
        assert node.nvml("[set_mode(0, 0), mode(0)]") == [0, [0, 0]]
        assert resets(node) == 0
    assert node.nvml("mode(0)") == [0, 0]


@pytest.mark.parametrize("board", [AMPERE, HOPPER])
def test_reset_grants_the_wish_that_waits(node: Node, board: str) -> None:
    made_of(node, board)
    with running(node, *work_on(node, "0")):
        assert node.nvml("set_mode(0, 1)") == IN_USE
        assert node.run("nvidia-smi", "--gpu-reset", "-i", "0").returncode == IN_USE
    assert node.run("nvidia-smi", "--gpu-reset", "-i", "0").returncode == 0
    assert node.nvml("mode(0)") == [1, 1]


def test_reset_destroys_the_instances_of_the_named_boards(node: Node) -> None:
    made_of(node, HOPPER, HOPPER, HOPPER)
    for gpu in range(3):
        assert node.nvml(f"[set_mode({gpu}, 1), create({gpu}, '1g.10gb', 0)]")
    third = node.state()["gpus"][2]["uuid"]
    done = node.run("nvidia-smi", "--gpu-reset", "-i", f"0,{third}")
    assert done.returncode == 0
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["reset.", "reset.", "done."]
    assert node.nvml("[layout(gpu) for gpu in range(3)]") == [[], [["1g.10gb", 0, [1]]], []]


def test_persistenced_is_in_the_way_of_a_reset_only(node: Node) -> None:
    made_of(node, AMPERE)
    assert node.run("nvidia-persistenced").returncode == 0
    assert node.nvml("[set_mode(0, 1), mode(0)]") == [0, [1, 1]]
    assert node.run("nvidia-smi", "--gpu-reset", "-i", "0").returncode == IN_USE


def test_own_client_is_in_the_way_of_a_reset(node: Node) -> None:
    made_of(node, AMPERE)
    reset = "__import__('subprocess').run(['simgpu', 'reset', '0']).returncode"
    node.environment["PATH"] = f"{node.build}:{node.environment['PATH']}"
    assert node.nvml(f"[{reset}, nvmlShutdown() or {reset}]") == [1, 0]


def test_new_load_keeps_the_mode_of_ampere_and_no_instances(node: Node) -> None:
    """Ampere remembers what it was told last, even when it had to wait."""
    made_of(node, AMPERE, HOPPER, "a30")
    assert node.nvml("[set_mode(0, 1), set_mode(1, 1), create(0, '1g.10gb', 0), create(1, '1g.10gb', 0)]")[:2] == [0, 0]
    with running(node, *work_on(node, "2")):
        assert node.nvml("set_mode(2, 1)") == IN_USE
    assert node.run("simgpu", "unload").returncode == 0
    node.load()
    assert node.nvml("[mode(gpu) for gpu in range(3)]") == [[1, 1], [0, 0], [1, 1]]
    assert node.nvml("layout(0)") == []


def test_passthrough(node: Node) -> None:
    """Ampere needs a new boot of the guest: a reset says that it did, and did not. Hopper does not mind."""
    made_of(node, AMPERE, HOPPER)
    assert node.run("simgpu", "fault", "all", "passthrough").returncode == 0
    assert node.nvml("[set_mode(0, 1), mode(0)]") == [RESET_REQUIRED, [0, 1]]
    assert node.nvml("[set_mode(1, 1), mode(1)]") == [0, [1, 1]]
    assert node.run("nvidia-smi", "--gpu-reset", "-i", "0").returncode == 0
    assert node.nvml("mode(0)") == [0, 1]
    assert node.nvml("create(0, '1g.10gb')") == 3
    assert node.run("simgpu", "unload").returncode == 0
    node.load()
    assert node.nvml("mode(0)") == [1, 1]


def test_invisible_client(node: Node) -> None:
    made_of(node, AMPERE, HOPPER)
    assert node.nvml("[set_mode(1, 1), create(1, '1g.10gb', 0)]")[0] == 0
    assert node.run("simgpu", "fault", "all", "invisible-client").returncode == 0
    assert node.nvml("[set_mode(0, 1), mode(0)]") == [IN_USE, [0, 1]]
    assert node.nvml("[len(nvmlDeviceGetComputeRunningProcesses(gpu(i))) for i in (0, 1)]") == [0, 0]
    assert node.run("nvidia-smi", "--gpu-reset", "-i", "0").returncode == IN_USE
    assert node.nvml("destroy(1, 0)") == IN_USE
    assert node.run("simgpu", "fault", "clear").returncode == 0
    assert node.nvml("[set_mode(0, 1), mode(0)]") == [0, [1, 1]]


def test_a_mode_that_does_not_exist(node: Node) -> None:
    made_of(node, HOPPER)
    assert node.nvml("set_mode(0, 2)") == 2


def test_boards_that_change_slots_keep_who_they_are(node: Node) -> None:
    """The index is the place; the mode that Ampere keeps goes with the board."""
    made_of(node, AMPERE, AMPERE)
    assert node.nvml("set_mode(0, 1)") == 0
    uuids = "[nvmlDeviceGetUUID(gpu(i)) for i in (0, 1)]"
    before = node.nvml(uuids)
    assert node.run("simgpu", "unload").returncode == 0
    node.plug(f"{AMPERE}@1", f"{AMPERE}@0")
    node.load()
    assert node.nvml(uuids) == before[::-1]
    assert node.nvml("[mode(0), mode(1)]") == [[0, 0], [1, 1]]
    assert node.nvml("nvmlDeviceGetPciInfo(gpu(0)).busId") == "00000000:1A:00.0"
