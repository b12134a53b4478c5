# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of GPU instances, compute instances and MIG devices on simulated boards."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from simulated_node import Node

pytest.importorskip("pynvml")


@pytest.fixture
def mig(node: Node) -> Node:
    """A node whose first GPU is in MIG mode; the second is not."""
    node.plug("h100-80", "h100-80")
    node.load()
    assert node.nvml("set_mode(0, 1)") == 0
    node.log()
    return node


@pytest.fixture
def rtx(node: Node) -> Iterator[Node]:
    node.plug("rtx-pro-6000")
    node.load()
    assert node.nvml("set_mode(0, 1)") == 0
    yield node


def test_life_cycle(mig: Node) -> None:
    """Every process sees what one made, until another one takes it away; the log has each step."""
    assert mig.nvml("remaining(0, '1g.10gb')") == 7
    first, second = mig.nvml("[create(0, '3g.40gb', 4), create(0, '1g.10gb', 2)]")
    assert mig.nvml("layout(0)") == [["1g.10gb", 2, [1]], ["3g.40gb", 4, [3]]]
    assert mig.nvml("[remaining(0, '1g.10gb'), remaining(0, '2g.20gb'), remaining(0, '4g.40gb')]") == [3, 1, 0]
    assert mig.nvml("layout(1)") == 3
    assert mig.nvml(f"destroy(0, 4) or status(nvmlDeviceGetGpuInstanceById, gpu(0), {first})") == 6
    assert mig.nvml("layout(0)") == [["1g.10gb", 2, [1]]]
    uuid = mig.state()["gpus"][0]["uuid"]
    assert mig.log() == [
        f"create_gpu_instance gpu={uuid} profile=3g.40gb placement=4:4 gi={first} status=0",
        f"create_compute_instance gpu={uuid} profile=3g.40gb placement=0:3 gi={first} ci=0 status=0",
        f"create_gpu_instance gpu={uuid} profile=1g.10gb placement=2:1 gi={second} status=0",
        f"create_compute_instance gpu={uuid} profile=1g.10gb placement=0:1 gi={second} ci=0 status=0",
        f"destroy_compute_instance gpu={uuid} profile=3g.40gb placement=0:3 gi={first} ci=0 status=0",
        f"destroy_gpu_instance gpu={uuid} profile=3g.40gb placement=4:4 gi={first} status=0",
    ]


def test_a_place_that_is_taken(mig: Node) -> None:
    assert mig.nvml("create(0, '2g.20gb', 2)") >= 0
    assert mig.nvml("status(create, 0, '1g.10gb', 3)") == 23
    assert mig.nvml("status(create, 0, '3g.40gb', 0)") == 23
    assert mig.nvml("status(create, 0, '7g.80gb')") == 23
    assert mig.nvml("layout(0)") == [["2g.20gb", 2, [2]]]


def test_a_place_that_does_not_exist(mig: Node) -> None:
    assert mig.nvml("status(create, 0, '2g.20gb', 1)") == 2
    assert mig.nvml("status(create, 0, '2g.20gb', 6)") == 2
    assert mig.nvml("status(create, 0, '1g.10gb', 7)") == 2
    wrong_size = "byref(c_nvmlGpuInstancePlacement_t(4, 3))"
    assert mig.nvml(f"nvmlDeviceCreateGpuInstanceWithPlacement(gpu(0), 9, {wrong_size})") == 2
    assert mig.nvml("nvmlDeviceCreateGpuInstance(gpu(0), 8)") == 2


def test_no_more_than_the_profile_allows(node: Node) -> None:
    """A board whose file says two where there would be place for seven."""
    node.plug("h100-80")
    two = r"s/^(mig_profile = 1g\.10gb +0 19 1) 7 /\1 2 /"
    assert node.run("sed", "-Ei", two, "/var/lib/simgpu/hardware/boards/0000:1a:00.0").returncode == 0
    node.load()
    assert node.nvml("set_mode(0, 1) or remaining(0, '1g.10gb')") == 2
    assert node.nvml("[status(create, 0, '1g.10gb', start) for start in (0, 1, 2)]") == [0, 0, 23]
    assert node.nvml("remaining(0, '1g.20gb')") == 3


def test_media_engines_run_out_before_the_slices(rtx: Node) -> None:
    """Four of each kind: an instance that takes them all leaves room only for those without."""
    assert rtx.nvml("create(0, '1g.24gb+me.all', 0)") >= 0
    assert rtx.nvml("[remaining(0, f'1g.24gb{suffix}') for suffix in ('', '+me', '+gfx', '-me')]") == [0, 0, 0, 3]
    assert rtx.nvml("status(create, 0, '2g.48gb', 2)") == 23
    assert rtx.nvml("create(0, '2g.48gb-me', 2)") >= 0
    assert rtx.nvml("destroy(0, 0) or create(0, '1g.24gb', 0)") >= 0
    assert rtx.nvml("remaining(0, '1g.24gb+me')") == 1


def test_order_matters_where_the_driver_chooses(mig: Node) -> None:
    """NVIDIA's example: profiles 19, 19, 14, 9 do not fit in this order; 9, 19, 14, 19 do."""
    names = {19: "1g.10gb", 14: "2g.20gb", 9: "3g.40gb"}
    assert mig.nvml(f"[status(create, 0, name) for name in {[names[i] for i in (19, 19, 14, 9)]}]") == [0, 0, 0, 23]
    assert mig.nvml("[destroy(0, start) for _, start, _ in layout(0)]")
    assert mig.nvml(f"[status(create, 0, name) for name in {[names[i] for i in (9, 19, 14, 19)]}]") == [0] * 4


def test_ids_are_not_places_and_differ_between_boards(mig: Node) -> None:
    """The UUIDs of these two begin with 3 and 9: their eighths are numbered in another order."""
    assert mig.nvml("set_mode(1, 1)") == 0
    for gpu in (0, 1):
        assert mig.nvml(f"[create({gpu}, '1g.10gb', start) for start in range(7)]")
    first, second = mig.nvml("[list(ids(0).values()), list(ids(1).values())]")
    assert first == [10, 9, 8, 7, 14, 13, 12]
    assert second == [8, 7, 10, 9, 12, 11, 14]
    assert mig.nvml("[destroy(0, start) for start in range(7)]")
    assert mig.nvml("[create(0, '3g.40gb', start) for start in (0, 4)]") == [1, 2]


def test_what_is_made_again_at_its_place_has_its_uuid(mig: Node) -> None:
    assert mig.nvml("[create(0, '2g.20gb', 0), create(0, '2g.20gb', 2)]")
    before = mig.nvml("mig_uuids(0)")
    assert len(set(before)) == 2 and all(uuid.startswith("MIG-") for uuid in before)
    assert mig.nvml("destroy(0, 0) or create(0, '2g.20gb', 0)") >= 0
    assert mig.nvml("mig_uuids(0)") == before
    assert mig.nvml("destroy(0, 0) or create(0, '1g.10gb', 0)") >= 0
    assert mig.nvml("mig_uuids(0)")[1] == before[1] and mig.nvml("mig_uuids(0)")[0] != before[0]


def test_compute_instances(mig: Node) -> None:
    """They take slices of their GPU instance, which cannot go before them."""
    assert mig.nvml("create_gpu_instance(0, '3g.40gb', 0) and create_gpu_instance(0, '1g.10gb', 4) and 0") == 0
    assert mig.nvml("mig_uuids(0)") == []
    assert mig.nvml("[create_compute_instance(instance(0, 0), slices) for slices in (2, 1)]") == [0, 1]
    assert mig.nvml("layout(0)") == [["3g.40gb", 0, [2, 1]], ["1g.10gb", 4, []]]
    assert mig.nvml("[compute_remaining(instance(0, 0), 1), compute_remaining(instance(0, 4), 1)]") == [0, 1]
    assert mig.nvml("status(create_compute_instance, instance(0, 0), 1)") == 23
    assert mig.nvml("status(nvmlGpuInstanceDestroy, instance(0, 0))") == 19
    names = mig.nvml("[nvmlDeviceGetName(device) for device in mig_devices(0).values()]")
    assert names == ["NVIDIA H100 80GB HBM3 MIG 2c.3g.40gb", "NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb"]
    assert mig.nvml("nvmlGpuInstanceDestroy(instance(0, 4))") == 0


def test_compute_instances_at_places(mig: Node) -> None:
    """Those of two slices begin at even ones: one slice in the way is enough."""
    assert mig.nvml("create_compute_instance(create_gpu_instance(0, '3g.40gb', 0), 1)") == 0
    assert mig.nvml("status(create_compute_instance, instance(0, 0), 2)") == 23
    assert mig.nvml("status(create_compute_instance, instance(0, 0), 2, 1)") == 2
    assert mig.nvml("create_compute_instance(instance(0, 0), 1, 2)") == 1
    assert mig.nvml("nvmlGpuInstanceCreateComputeInstance(instance(0, 0), 3)") == 2


def test_handles_of_what_was_destroyed(mig: Node) -> None:
    assert mig.nvml("create(0, '1g.10gb', 0)") >= 0
    gone = "(lambda gi, ci, device: destroy(0, 0) or [status(function, handle) for function, handle in ["
    gone += "(nvmlGpuInstanceGetInfo, gi), (nvmlGpuInstanceDestroy, gi), (nvmlComputeInstanceDestroy, ci),"
    gone += "(nvmlDeviceGetUUID, device)]])(instance(0, 0), compute_instances(instance(0, 0))[0], mig_devices(0)[0])"
    assert mig.nvml(gone) == [2, 2, 2, 2]


def test_without_mig_mode(mig: Node) -> None:
    assert mig.nvml("nvmlDeviceCreateGpuInstance(gpu(1), 19)") == 3
    assert mig.nvml("remaining(1, '1g.10gb')") == 3
    assert mig.nvml("nvmlDeviceGetGpuInstanceById(gpu(1), 0)") == 3
    assert mig.nvml("[nvmlDeviceGetMaxMigDeviceCount(gpu(i)) for i in (0, 1)]") == [7, 0]


def test_only_root_changes_anything(mig: Node) -> None:
    assert mig.nvml("create(0, '1g.10gb', 0)") >= 0
    as_user = "__import__('os').seteuid(65534) or"
    assert mig.nvml(f"{as_user} nvmlDeviceSetMigMode(gpu(0), 0)") == 4
    assert mig.nvml(f"{as_user} nvmlDeviceCreateGpuInstance(gpu(0), 19)") == 4
    assert mig.nvml(f"{as_user} layout(0)") == 4
    assert mig.nvml(f"{as_user} len(mig_uuids(0))") == 1
    assert mig.nvml("layout(0)") == [["1g.10gb", 0, [1]]]


def test_mig_devices(mig: Node) -> None:
    """Each keeps its index, so that there are holes; what is made next fills the first."""
    assert mig.nvml("[create(0, '1g.10gb', start) for start in (0, 1, 2)]")
    assert mig.nvml("destroy(0, 1) or list(mig_devices(0))") == [0, 2]
    assert mig.nvml("nvmlDeviceGetMigDeviceHandleByIndex(gpu(0), 7)") == 2
    assert mig.nvml("create(0, '3g.40gb', 4) and list(mig_devices(0))") == [0, 1, 2]
    device = "mig_devices(0)[1]"
    assert mig.nvml(f"nvmlDeviceGetGpuInstanceId({device}) == ids(0)[4]") is True
    assert mig.nvml(f"nvmlDeviceGetComputeInstanceId({device})") == 0
    assert mig.nvml(f"nvmlDeviceGetIndex({device})") == 1
    assert mig.nvml(f"nvmlDeviceGetIndex(nvmlDeviceGetDeviceHandleFromMigDeviceHandle({device}))") == 0
    assert mig.nvml(f"[nvmlDeviceIsMigDeviceHandle(d).value for d in ({device}, gpu(0))]") == [1, 0]
    assert mig.nvml(f"nvmlDeviceGetUUID(nvmlDeviceGetHandleByUUID(nvmlDeviceGetUUID({device}))) == mig_uuids(0)[1]")
    assert mig.nvml("nvmlDeviceGetHandleByUUID('MIG-00000000-0000-5000-8000-000000000000')") == 6
    sizes = "(lambda a: [a.multiprocessorCount, a.gpuInstanceSliceCount, a.computeInstanceSliceCount, a.memorySizeMB])"
    assert mig.nvml(f"{sizes}(nvmlDeviceGetAttributes_v2({device}))") == [60, 3, 3, 40192]
    assert mig.nvml(f"nvmlDeviceGetMemoryInfo({device}).total >> 20") == 40192
    assert mig.nvml("nvmlDeviceGetAttributes_v2(gpu(0))") == 3
    assert mig.nvml(f"nvmlDeviceGetPciInfo({device})") == 3
    assert mig.nvml("nvmlDeviceGetUtilizationRates(gpu(0))") == 3


def test_work_on_a_mig_device(mig: Node) -> None:
    """It is listed by the GPU and by the device, with its place, and keeps the instance from being destroyed."""
    gi = mig.nvml("create(0, '3g.40gb', 4)")
    assert mig.nvml("create(0, '1g.10gb', 0)") >= 0
    uuid, other = mig.nvml("mig_uuids(0)")
    work = mig.start("simgpu", "hold", "--memory", "1000", uuid, "--", "sh", "-c", "echo holding; read end")
    assert work.stdout and work.stdout.readline() == "holding\n"
    listed = "[[p.pid, p.gpuInstanceId, p.computeInstanceId] for p in nvmlDeviceGetComputeRunningProcesses(%s)]"
    (process,) = mig.nvml(listed % "gpu(0)")
    assert process[1:] == [gi, 0]
    assert mig.nvml(listed % f"nvmlDeviceGetHandleByUUID({uuid!r})") == [process]
    assert mig.nvml(listed % f"nvmlDeviceGetHandleByUUID({other!r})") == []
    assert mig.nvml("nvmlDeviceGetMemoryInfo(mig_devices(0)[0]).used >> 20") == 1000

    opened = mig.run("find", f"/proc/{process[0]}/fd", "-lname", "/dev/nvidia*", "-printf", "%l\\n").stdout.split()
    assert {"/dev/nvidiactl", "/dev/nvidia0"} < set(opened)
    assert sum(path.startswith("/dev/nvidia-caps/nvidia-cap") for path in opened) == 2

    assert mig.nvml("status(destroy, 0, 4)") == 19
    assert mig.nvml("destroy(0, 0) or layout(0)") == [["3g.40gb", 4, [3]]]
    assert mig.nvml("set_mode(0, 0)") == 19
    work.communicate("end\n", timeout=10)
    assert mig.nvml("destroy(0, 4) or layout(0)") == []


def test_work_outside_of_mig_has_no_place(mig: Node) -> None:
    assert mig.run("simgpu", "hold", "0", "--", "true").returncode == 1
    assert mig.run("simgpu", "hold", "--gi", "1", "0", "--", "true").returncode == 1
    work = mig.start("simgpu", "hold", "1", "--", "sh", "-c", "echo holding; read end")
    assert work.stdout and work.stdout.readline() == "holding\n"
    places = "[[p.gpuInstanceId, p.computeInstanceId] for p in nvmlDeviceGetComputeRunningProcesses(gpu(1))]"
    # pynvml says None for NVML's number.
    assert mig.nvml(places) in ([[None, None]], [[0xFFFFFFFF, 0xFFFFFFFF]])
    work.communicate("end\n", timeout=10)


def test_instances_by_number(mig: Node) -> None:
    gi = mig.nvml("create_gpu_instance(0, '2g.20gb', 0) and ids(0)[0]")
    assert mig.nvml("[create_compute_instance(instance(0, 0), 1) for _ in (0, 1)]") == [0, 1]
    work = mig.start("simgpu", "hold", "--gi", str(gi), "--ci", "1", "0", "--", "sh", "-c", "echo holding; read end")
    assert work.stdout and work.stdout.readline() == "holding\n"
    free = "[len(nvmlDeviceGetComputeRunningProcesses(device)) for device in mig_devices(0).values()]"
    assert mig.nvml(free) == [0, 1]
    assert mig.nvml("[status(nvmlComputeInstanceDestroy, ci) for ci in compute_instances(instance(0, 0))]") == [0, 19]
    work.communicate("end\n", timeout=10)


def test_xid_of_a_mig_device_says_where(mig: Node) -> None:
    gi = mig.nvml("create(0, '1g.10gb', 0)")
    watcher = mig.start(
        sys.executable, "-c",
        "from pynvml import *\nnvmlInit()\nd, s = nvmlDeviceGetHandleByIndex(0), nvmlEventSetCreate()\n"
        "nvmlDeviceRegisterEvents(d, nvmlEventTypeXidCriticalError, s)\nprint('waiting', flush=True)\n"
        "e = nvmlEventSetWait_v2(s, 10000)\nprint(e.eventData, e.gpuInstanceId, e.computeInstanceId)\n",
    )  # fmt: skip
    assert watcher.stdout and watcher.stdout.readline() == "waiting\n"
    assert mig.run("simgpu", "xid", mig.nvml("mig_uuids(0)")[0], "43").returncode == 0
    assert watcher.communicate(timeout=20)[0].split() == ["43", str(gi), "0"]


def test_nvidia_smi_lists_them(mig: Node) -> None:
    assert mig.nvml("create_compute_instance(create_gpu_instance(0, '3g.40gb', 4), 1)") == 0
    assert mig.nvml("create(0, '1g.10gb', 0)") >= 0
    first, second = mig.nvml("mig_uuids(0)")
    assert mig.run("nvidia-smi", "-L").stdout.splitlines()[1:3] == [
        f"  MIG 1c.3g.40gb  Device  0: (UUID: {first})",
        f"  MIG 1g.10gb     Device  1: (UUID: {second})",
    ]
