# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.holders import drm_holds, holders_of
from ansible_collections.kubegpu.nvidia.plugins.module_utils._nvml import Gpu, GpuProcess

UID = "8a1d1c0e-5f0b-4a7f-9a55-0c2f6f1d3b42"


@pytest.fixture
def proc(tmp_path):
    """/proc of a host in MIG mode: GPU instance 9 and its compute instance 0 have the device files 12 and 13."""
    root = tmp_path / "proc"
    minors = root / "driver" / "nvidia-caps" / "mig-minors"
    minors.parent.mkdir(parents=True)
    minors.write_text("config 1\nmonitor 2\ngpu0/gi9/access 12\ngpu0/gi9/ci0/access 13\ngpu1/gi9/access 200\n")

    def add(pid, command, cgroup="0::/user.slice", files=()):
        (root / str(pid) / "fd").mkdir(parents=True)
        (root / str(pid) / "comm").write_text(f"{command}\n")
        (root / str(pid) / "cgroup").write_text(f"{cgroup}\n")
        for number, path in enumerate(files):
            (root / str(pid) / "fd" / str(number)).symlink_to(path)

    add.root = str(root)
    return add


def holders(proc, *processes, minor=0, pod_logs="/nonexistent"):
    return holders_of(Gpu(0, minor=minor, processes=list(processes)), proc.root, pod_logs)


def test_nobody(proc):
    proc(7, "bash", files=["/dev/null"])
    assert holders(proc) == []


def test_a_process_that_computes_in_an_instance(proc):
    proc(7, "python3")
    (holder,) = holders(proc, GpuProcess(7, "compute", 9, 0))
    assert (holder.computes, holder.gpu_instance, holder.compute_instance) == (True, 9, 0)
    assert str(holder) == "python3 (pid 7)"


def test_one_that_computes_and_has_files_open_is_one(proc):
    proc(7, "python3", files=["/dev/nvidia0", "/dev/nvidiactl"])
    assert len(holders(proc, GpuProcess(7, "compute"), GpuProcess(7, "graphics"))) == 1


@pytest.mark.parametrize(
    "cgroup", ["0::/system.slice/nvidia-dcgm.service", "5:devices:/x\n1:name=systemd:/system.slice/nvidia-dcgm.service"]
)
def test_a_service_that_has_the_gpu_open(proc, cgroup):
    proc(7, "nv-hostengine", cgroup, ["/dev/nvidia0"])
    (holder,) = holders(proc)
    assert (holder.computes, holder.unit) == (False, "nvidia-dcgm.service")
    assert str(holder) == "nv-hostengine (pid 7, nvidia-dcgm.service)"


def test_another_gpu_and_the_control_device_are_not_this_gpu(proc):
    proc(7, "python3", files=["/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia10", "/dev/nvidia-caps/nvidia-cap200"])
    assert holders(proc) == []


def test_the_device_file_of_an_instance_names_the_instance(proc):
    proc(7, "python3", files=["/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13"])
    (holder,) = holders(proc)
    assert (holder.gpu_instance, holder.compute_instance) == (9, 0)


@pytest.mark.parametrize(
    "cgroup",
    [
        f"0::/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-4f.scope",
        f"5:devices:/kubepods/besteffort/pod{UID}/4f",
    ],
)
def test_a_pod_is_named_by_its_logs(proc, tmp_path, cgroup):
    logs = tmp_path / "pods"
    (logs / f"team-a_train-0_{UID}").mkdir(parents=True)
    (logs / "garbage").mkdir()
    proc(7, "python3", cgroup)
    (holder,) = holders(proc, GpuProcess(7, "compute"), pod_logs=str(logs))
    assert str(holder) == "python3 (pid 7, pod team-a/train-0)"
    assert holder.unit is None


def test_a_pod_without_logs_is_named_by_its_uid(proc):
    proc(7, "python3", f"0::/kubepods/pod{UID}/4f")
    (holder,) = holders(proc, GpuProcess(7, "compute"))
    assert holder.pod == UID


def test_this_process_is_not_in_its_own_way(proc):
    proc(os.getpid(), "python3", files=["/dev/nvidia0"])
    assert holders(proc) == []


def test_a_process_that_has_ended_is_still_named_by_its_number(proc):
    (holder,) = holders(proc, GpuProcess(7, "compute"))
    assert str(holder) == "a process (pid 7)"


@pytest.mark.parametrize(("content", "expected"), [("Y\n", True), ("N\n", False), (None, False)])
def test_the_kernels_display_driver(tmp_path, content, expected):
    if content:
        (tmp_path / "nvidia_drm" / "parameters").mkdir(parents=True)
        (tmp_path / "nvidia_drm" / "parameters" / "modeset").write_text(content)
    assert drm_holds(str(tmp_path)) is expected
