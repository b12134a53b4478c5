# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Short names for what the tests ask of NVML on a simulated node. A GPU is its index here, a profile its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from ctypes import CDLL, POINTER, Structure, byref, c_uint, cast, sizeof
from typing import Any

import pynvml as nvml


def gpu(index: int) -> Any:
    return nvml.nvmlDeviceGetHandleByIndex(index)


def status(function: Any, *arguments: Any) -> int:
    """The number of a call's error, 0 when it has none."""
    try:
        function(*arguments)
    except nvml.NVMLError as error:
        return int(error.value)
    return 0


def gpu_profiles(index: int) -> Iterator[tuple[int, Any]]:
    for number in range(nvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        with suppress(nvml.NVMLError_NotSupported):
            yield number, nvml.nvmlDeviceGetGpuInstanceProfileInfo(gpu(index), number)


class ProfileV3(Structure):
    """nvmlGpuInstanceProfileInfo_v3_t, which pynvml does not have: without isP2pSupported, with capabilities."""

    _fields_ = [
        *((name, kind) for name, kind in nvml.c_nvmlGpuInstanceProfileInfo_v2_t._fields_ if name != "isP2pSupported"),
        ("capabilities", c_uint),
    ]


def profile_v3(index: int, number: int, version: int = 3) -> ProfileV3:
    info = ProfileV3(version=sizeof(ProfileV3) | version << 24)
    library = CDLL("libnvidia-ml.so.1")
    failure = library.nvmlDeviceGetGpuInstanceProfileInfoV(gpu(index), number, byref(info))
    if failure:
        raise nvml.NVMLError(failure)
    return info


def profile(index: int, name: str) -> Any:
    return next(info for _, info in gpu_profiles(index) if info.name == f"MIG {name}")


def placements(index: int, profile_id: int) -> list[list[int]]:
    count = c_uint()
    nvml.nvmlDeviceGetGpuInstancePossiblePlacements(gpu(index), profile_id, None, byref(count))
    array = (nvml.c_nvmlGpuInstancePlacement_t * count.value)()
    pointer = cast(array, POINTER(nvml.c_nvmlGpuInstancePlacement_t))
    nvml.nvmlDeviceGetGpuInstancePossiblePlacements(gpu(index), profile_id, pointer, byref(count))
    return [[each.start, each.size] for each in array]


def remaining(index: int, name: str) -> int:
    return int(nvml.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu(index), profile(index, name).id))


def create_gpu_instance(index: int, name: str, start: int | None = None) -> Any:
    """Makes a GPU instance where asked, else where the driver puts it; gives its handle."""
    wanted = profile(index, name)
    if start is None:
        return nvml.nvmlDeviceCreateGpuInstance(gpu(index), wanted.id)
    size = placements(index, wanted.id)[0][1]
    placement = nvml.c_nvmlGpuInstancePlacement_t(start, size)
    return nvml.nvmlDeviceCreateGpuInstanceWithPlacement(gpu(index), wanted.id, byref(placement))


def create(index: int, name: str, start: int | None = None) -> int:
    """The same with a compute instance of full size; gives the GPU instance's id."""
    instance = create_gpu_instance(index, name, start)
    slices = int(name[0])
    nvml.nvmlGpuInstanceCreateComputeInstance(instance, compute_profile(instance, slices).id)
    return int(nvml.nvmlGpuInstanceGetInfo(instance).id)


def compute_profile(instance: Any, slices: int) -> Any:
    return next(info for info in compute_profiles(instance) if info.sliceCount == slices)


def compute_profiles(instance: Any) -> Iterator[Any]:
    for number in range(nvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        with suppress(nvml.NVMLError_NotSupported):
            yield nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, number, 0)


def compute_placements(instance: Any, profile_id: int) -> list[list[int]]:
    count = c_uint()
    nvml.nvmlGpuInstanceGetComputeInstancePossiblePlacements(instance, profile_id, None, byref(count))
    array = (nvml.c_nvmlComputeInstancePlacement_t * count.value)()
    pointer = cast(array, POINTER(nvml.c_nvmlComputeInstancePlacement_t))
    nvml.nvmlGpuInstanceGetComputeInstancePossiblePlacements(instance, profile_id, pointer, byref(count))
    return [[each.start, each.size] for each in array]


def compute_remaining(instance: Any, slices: int) -> int:
    wanted = compute_profile(instance, slices).id
    return int(nvml.nvmlGpuInstanceGetComputeInstanceRemainingCapacity(instance, wanted))


def create_compute_instance(instance: Any, slices: int, start: int | None = None) -> int:
    wanted = compute_profile(instance, slices).id
    if start is None:
        made = nvml.nvmlGpuInstanceCreateComputeInstance(instance, wanted)
    else:
        placement = nvml.c_nvmlComputeInstancePlacement_t(start, slices)
        made = nvml.nvmlGpuInstanceCreateComputeInstanceWithPlacement(instance, wanted, byref(placement))
    return int(nvml.nvmlComputeInstanceGetInfo_v2(made).id)


def gpu_instances(index: int) -> list[Any]:
    """Handles, ordered by place."""
    handles = []
    for _, info in gpu_profiles(index):
        count = c_uint()
        array = (nvml.c_nvmlGpuInstance_t * info.instanceCount)()
        nvml.nvmlDeviceGetGpuInstances(gpu(index), info.id, array, byref(count))
        handles += array[: count.value]
    return sorted(handles, key=lambda handle: int(nvml.nvmlGpuInstanceGetInfo(handle).placement.start))


def compute_instances(instance: Any) -> list[Any]:
    handles = []
    for info in compute_profiles(instance):
        count = c_uint()
        array = (nvml.c_nvmlComputeInstance_t * info.instanceCount)()
        nvml.nvmlGpuInstanceGetComputeInstances(instance, info.id, array, byref(count))
        handles += array[: count.value]
    return sorted(handles, key=lambda handle: int(nvml.nvmlComputeInstanceGetInfo_v2(handle).id))


def instance(index: int, start: int) -> Any:
    """The GPU instance that begins at a slice."""
    return next(each for each in gpu_instances(index) if nvml.nvmlGpuInstanceGetInfo(each).placement.start == start)


def destroy(index: int, start: int) -> None:
    """The GPU instance that begins at a slice, with what is in it."""
    found = instance(index, start)
    for each in compute_instances(found):
        nvml.nvmlComputeInstanceDestroy(each)
    nvml.nvmlGpuInstanceDestroy(found)


def layout(index: int) -> list[list[Any]]:
    """Of each GPU instance, by place: profile, start, the slices of its compute instances."""
    names = {info.id: info.name.removeprefix("MIG ") for _, info in gpu_profiles(index)}
    rows = []
    for each in gpu_instances(index):
        info = nvml.nvmlGpuInstanceGetInfo(each)
        slices = [nvml.nvmlComputeInstanceGetInfo_v2(ci).placement.size for ci in compute_instances(each)]
        rows.append([names[info.profileId], info.placement.start, slices])
    return rows


def ids(index: int) -> dict[int, int]:
    """Start to id of the GPU instances."""
    infos = map(nvml.nvmlGpuInstanceGetInfo, gpu_instances(index))
    return {info.placement.start: info.id for info in infos}


def mig_devices(index: int) -> dict[int, Any]:
    """Handles by index, without the holes."""
    found = {}
    for slot in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu(index))):
        with suppress(nvml.NVMLError_NotFound):
            found[slot] = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu(index), slot)
    return found


def mig_uuids(index: int) -> list[str]:
    return [nvml.nvmlDeviceGetUUID(device) for device in mig_devices(index).values()]


def mode(index: int) -> list[int]:
    return list(nvml.nvmlDeviceGetMigMode(gpu(index)))


def set_mode(index: int, enabled: int) -> int:
    """The activation status."""
    return int(nvml.nvmlDeviceSetMigMode(gpu(index), enabled))
