# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Who is in the way: processes that use a GPU or an instance of it, and what they belong to."""

from __future__ import annotations

import os
import re
import typing as t
from dataclasses import asdict, dataclass

from .._files import content, first_line
from .._nvml import Gpu
from .._processes import command_of, holding

# The kubelet's directories of logs are named NAMESPACE_NAME_UID: who a pod is, without asking the cluster.
POD_LOGS = "/var/log/pods"
POD_UID = re.compile(r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})")
UNIT = re.compile(r"/([^/]+\.service)(?:/|$)", re.MULTILINE)

CAPABILITY = "/dev/nvidia-caps/nvidia-cap"


@dataclass(frozen=True)
class Holder:
    """A process. Of one that computes NVML says in which instance; of one that has only files open nobody does."""

    pid: int
    command: str
    computes: bool
    gpu_instance: int | None = None
    compute_instance: int | None = None
    pod: str | None = None
    unit: str | None = None

    def __str__(self) -> str:
        owner = f"pod {self.pod}" if self.pod else self.unit
        return f"{self.command or 'a process'} (pid {self.pid}{', ' + owner if owner else ''})"

    def as_data(self) -> dict[str, t.Any]:
        return asdict(self)


def holders_of(gpu: Gpu, proc: str = "/proc", pod_logs: str = POD_LOGS) -> list[Holder]:
    """Everybody who uses the GPU, this process apart."""
    found: dict[int, Holder] = {}
    for process in gpu.processes or ():
        found.setdefault(
            process.pid,
            _holder(process.pid, True, (process.gpu_instance, process.compute_instance), proc, pod_logs),
        )
    minor, capabilities = gpu.minor, _capabilities(gpu.minor, proc)
    for process_, paths in (holding("/dev/nvidia", proc) or {}).items():
        places = [capabilities[path] for path in paths if path in capabilities]
        if process_.pid not in found and (f"/dev/nvidia{minor}" in paths or places):
            place = max(places, default=(None, None), key=lambda place: place[1] is not None)
            found[process_.pid] = _holder(process_.pid, False, place, proc, pod_logs)
    found.pop(os.getpid(), None)
    return [found[pid] for pid in sorted(found)]


def drm_holds(modules: str = "/sys/module") -> bool:
    """Whether the kernel's own display driver has the GPUs, which no list of processes shows (mig-parted #181)."""
    return first_line(f"{modules}/nvidia_drm/parameters/modeset") == "Y"


def _holder(pid: int, computes: bool, place: tuple[int | None, int | None], proc: str, pod_logs: str) -> Holder:
    cgroup = content(f"{proc}/{pid}/cgroup") or ""
    pod = POD_UID.search(cgroup)
    unit = UNIT.search(cgroup)
    return Holder(
        pid=pid,
        command=command_of(pid, proc),
        computes=computes,
        gpu_instance=place[0],
        compute_instance=place[1],
        pod=_pod_name(pod.group(1).replace("_", "-"), pod_logs) if pod else None,
        unit=unit.group(1) if unit and not pod else None,
    )


def _pod_name(uid: str, pod_logs: str) -> str:
    try:
        names = [name.split("_") for name in os.listdir(pod_logs)]
    except OSError:
        names = []
    for name in names:
        if name[-1] == uid and len(name) == 3:
            return f"{name[0]}/{name[1]}"
    return uid


def _capabilities(minor: int | None, proc: str) -> dict[str, tuple[int | None, int | None]]:
    """The device files of a GPU's instances, with GPU and compute instance; from /proc/driver/nvidia-caps/mig-minors.

    Lines there are `gpu0/gi1/access 12` and `gpu0/gi1/ci0/access 13`.
    """
    found: dict[str, tuple[int | None, int | None]] = {}
    for line in (content(f"{proc}/driver/nvidia-caps/mig-minors") or "").splitlines():
        match = re.match(rf"gpu{minor}/gi(\d+)/(?:ci(\d+)/)?access (\d+)$", line)
        if match:
            gpu_instance, compute_instance, number = match.groups()
            found[f"{CAPABILITY}{number}"] = (
                int(gpu_instance),
                None if compute_instance is None else int(compute_instance),
            )
    return found
