# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated GPU, judged through NVIDIA's Python binding: on a node (a mount namespace) and in a container on it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from simulated_node import VERSION, Node

pytest.importorskip("pynvml")

UUIDS = "[nvmlDeviceGetUUID(nvmlDeviceGetHandleByIndex(i)) for i in range(nvmlDeviceGetCount())]"
PIDS = "[p.pid for p in nvmlDeviceGetComputeRunningProcesses(nvmlDeviceGetHandleByIndex(%d))]"


def test_driver_that_is_not_loaded_and_driver_of_another_version(node: Node) -> None:
    assert node.nvml("0") == 9
    smi = node.run("nvidia-smi")
    assert smi.returncode == 9 and "couldn't communicate with the NVIDIA driver" in smi.stdout
    node.load("--version", "580.173.02")
    assert node.nvml("0") == 18
    smi = node.run("nvidia-smi")
    assert smi.returncode == 18
    assert smi.stdout.startswith("Failed to initialize NVML: Driver/library version mismatch\n")


def test_boards_are_what_their_files_say(node: Node) -> None:
    node.load()
    h100, t4 = node.nvml(
        "[[nvmlDeviceGetName(d), nvmlDeviceGetPciInfo(d).busId, hex(nvmlDeviceGetPciInfo(d).pciDeviceId),"
        " nvmlDeviceGetArchitecture(d), nvmlDeviceGetMemoryInfo(d).total >> 20, nvmlDeviceGetMinorNumber(d)]"
        " for d in map(nvmlDeviceGetHandleByIndex, (0, 1))]"
    )
    assert h100 == ["NVIDIA H100 80GB HBM3", "00000000:1A:00.0", "0x233010de", 9, 81559, 0]
    assert t4 == ["Tesla T4", "00000000:1C:00.0", "0x1eb810de", 6, 15360, 1]
    assert node.nvml("nvmlDeviceGetMigMode(nvmlDeviceGetHandleByIndex(0))") == [0, 0]
    assert node.nvml("nvmlDeviceGetMigMode(nvmlDeviceGetHandleByIndex(1))") == 3
    assert node.nvml("nvmlDeviceGetMinorNumber(nvmlDeviceGetHandleByPciBusId('0000:1c:00.0'))") == 1
    assert f"x86_64  {VERSION}  Release Build" in node.run("cat", "/proc/driver/nvidia/version").stdout


def test_every_function_of_the_header_answers(node: Node) -> None:
    node.load()
    assert node.nvml("nvmlDeviceGetFanSpeed(nvmlDeviceGetHandleByIndex(0))") == 3
    library = str(node.build / f"libnvidia-ml.so.{VERSION}")
    assert node.run("nm", "-D", "--defined-only", library).stdout.count(" nvml") > 400


def test_a_board_that_is_pulled_leaves_the_other_as_it_was(node: Node) -> None:
    node.load()
    before = node.nvml(UUIDS)
    assert node.run("simgpu", "unload").returncode == 0
    node.plug("-", "t4")
    node.load()
    assert node.nvml(UUIDS) == before[1:]


def test_lost_gpu_is_an_event_and_then_an_error(node: Node) -> None:
    node.load()
    watcher = node.start(
        sys.executable, "-c",
        "from pynvml import *\nnvmlInit()\nd, s = nvmlDeviceGetHandleByIndex(0), nvmlEventSetCreate()\n"
        "nvmlDeviceRegisterEvents(d, nvmlEventTypeXidCriticalError, s)\nprint('waiting', flush=True)\n"
        "print(nvmlEventSetWait_v2(s, 10000).eventData)\n"
        "try: nvmlDeviceGetName(d)\nexcept NVMLError as e: print(e.value)",
    )  # fmt: skip
    assert watcher.stdout and watcher.stdout.readline() == "waiting\n"
    assert node.run("simgpu", "lose", "0").returncode == 0
    assert watcher.communicate(timeout=20)[0].split() == ["79", "15"]
    assert node.nvml("nvmlDeviceGetHandleByIndex(0)") == 15
    assert node.nvml("nvmlDeviceGetName(nvmlDeviceGetHandleByIndex(1))") == "Tesla T4"
    assert node.run("simgpu", "restore", "0").returncode == 0
    assert len(node.nvml(UUIDS)) == 2


def test_settings_are_seen_by_other_processes_and_logged(node: Node) -> None:
    node.load()
    mode = "nvmlDeviceGetComputeMode(nvmlDeviceGetHandleByIndex(1))"
    assert node.nvml("nvmlDeviceSetComputeMode(nvmlDeviceGetHandleByIndex(1), 3)") is None
    assert node.nvml(mode) == 3
    smi = node.run("nvidia-smi", "-i", "1", "--query-gpu=compute_mode,mig.mode.current", "--format=csv,noheader")
    assert smi.stdout == "Exclusive_Process, [N/A]\n"
    assert " set_compute_mode " in node.run("cat", "/var/log/simgpu.log").stdout


def test_ecc_waits_for_the_next_load(node: Node) -> None:
    node.load()
    ecc = "nvmlDeviceGetEccMode(nvmlDeviceGetHandleByIndex(0))"
    assert node.nvml("nvmlDeviceSetEccMode(nvmlDeviceGetHandleByIndex(0), 0)") is None
    assert node.nvml(ecc) == [1, 0]
    assert node.run("simgpu", "unload").returncode == 0
    node.load()
    assert node.nvml(ecc) == [0, 0]


def test_container_sees_its_gpu_and_its_process_is_seen_from_the_node(node: Node, tmp_path: Path) -> None:
    node.load()
    uuids = node.nvml(UUIDS)
    assert node.nvml(UUIDS, node.in_container()) == uuids[1:]
    simgpu = shutil.copy(node.build / "simgpu", tmp_path)
    workload = node.start(*node.in_container(simgpu, "hold", uuids[1], "--", "sh", "-c", "echo holding; read end"))
    assert workload.stdout and workload.stdout.readline() == "holding\n"
    (pid,) = node.nvml(PIDS % 1)
    assert node.run("cat", f"/proc/{pid}/comm").stdout == "sh\n"
    assert node.nvml(PIDS % 0) == []
    assert node.run("simgpu", "unload").returncode == 1
    workload.communicate("end\n", timeout=10)
    assert node.nvml(PIDS % 1) == []
    assert node.run("simgpu", "unload").returncode == 0


def test_container_outlives_a_restart_of_persistenced(node: Node) -> None:
    node.load()
    assert node.run("nvidia-persistenced").returncode == 0
    assert node.nvml("nvmlDeviceGetPersistenceMode(nvmlDeviceGetHandleByIndex(0))") == 1
    inside = node.start(*node.in_container(sys.executable, "-c",
        f"from pynvml import *\nnvmlInit()\nprint('ready', flush=True)\ninput()\nprint({UUIDS})"))  # fmt: skip
    assert inside.stdout and inside.stdout.readline() == "ready\n"
    stop = "cd /run/nvidia-persistenced; pid=$(cat *.pid); kill $pid; tail --pid=$pid -f /dev/null; rm -rf $PWD"
    assert node.run("bash", "-c", stop).returncode == 0
    assert node.nvml("nvmlDeviceGetPersistenceMode(nvmlDeviceGetHandleByIndex(0))") == 0
    assert node.run("nvidia-persistenced", "--foreground", "--user", "no-such-user").returncode == 1
    assert node.run("nvidia-persistenced").returncode == 0
    assert inside.communicate("\n", timeout=10)[0].startswith("['GPU-")
    assert len(node.nvml(UUIDS, node.in_container())) == 1
