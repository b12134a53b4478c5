# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""MIG through NVML: what a GPU offers, which instances it has, and the calls that change them.

Numbers of profiles and instances are a GPU's own and come from NVML, never from a table: they differ between boards.
"""

from __future__ import annotations

import ctypes
import dataclasses
import typing as t

from ._mig.model import ComputeInstance, Engines, GpuInstance, Profile
from ._mig.profiles import named
from ._nvml import FUNCTION_NOT_FOUND, MIG_MODES, UNANSWERED, Failure, Gpu, GpuProcess, NvmlError, Session, explain

# nvml.h's NVML_GPU_INSTANCE_PROFILE_*: what a profile's name ends with, for drivers whose structure has no name.
SUFFIXES = {
    0x0: "", 0x1: "", 0x2: "", 0x3: "", 0x4: "", 0x5: "", 0x6: "", 0x7: "+me", 0x8: "+me", 0x9: "",
    0xA: "+gfx", 0xB: "+gfx", 0xC: "+gfx", 0xD: "-me", 0xE: "-me", 0xF: "+me.all", 0x10: "+me.all", 0x11: "+gfx",
}  # fmt: skip
COMPUTE_PROFILES = range(9)
SHARED_ENGINES = 0

# NVML_ERROR_INVALID_ARGUMENT and NVML_ERROR_NOT_SUPPORTED: a profile that this board or driver does not know.
UNKNOWN_PROFILE = (2, 3)
ARGUMENT_VERSION_MISMATCH = 25

# More than any board has of one profile; NVML wants room for all it could have.
ROOM = 16


class MigGpu:
    """One GPU in a running session. After its mode changed, take a new one: NVML's handle may be another."""

    def __init__(self, session: Session, uuid: str) -> None:
        self._session = session
        self._handle = session.call("nvmlDeviceGetHandleByUUID", uuid)

    def modes(self) -> tuple[str | None, str | None]:
        """Current and pending mode: enabled or disabled."""
        current, pending = self._session.call("nvmlDeviceGetMigMode", self._handle)
        return MIG_MODES.get(current), MIG_MODES.get(pending)

    def set_mode(self, mode: str) -> Failure | None:
        """Resets an idle GPU of the Ampere generation by itself. Returns why the mode is only pending, if it is."""
        number = {name: number for number, name in MIG_MODES.items()}[mode]
        status = self._session.call("nvmlDeviceSetMigMode", self._handle, number)
        return explain(status) if status else None

    def offered(self) -> tuple[Profile, ...]:
        """The GPU instance profiles; none when this driver cannot list them while MIG is off (535 cannot)."""
        total = self._session.call("nvmlDeviceGetMemoryInfo", self._handle).total // 2**20
        found = []
        for enum, info in self._profiles():
            placements = self._placements(info.id)
            if placements:
                found.append(_profile(enum, info, placements, total))
        return tuple(found)

    def instances(self) -> tuple[GpuInstance, ...]:
        """Every GPU instance, also one without compute instances, which no MIG device shows; and which are in use."""
        names = {profile.id: profile.name for profile in self.offered()}
        uuids = self._uuids()
        found = []
        for _enum, info in self._profiles():
            for instance in self._list("nvmlDeviceGetGpuInstances", self._handle, info.id, "c_nvmlGpuInstance_t"):
                about = self._session.call("nvmlGpuInstanceGetInfo", instance)
                compute = tuple(
                    dataclasses.replace(each, uuid=uuids.get((about.id, each.id)))
                    for each in self._compute_instances(instance)
                )
                if info.id not in names:  # a profile without a place, which instances have
                    raise NvmlError(explain(UNKNOWN_PROFILE[0]))
                found.append(GpuInstance(about.id, names[info.id], about.placement.start, compute))
        busy = self._session.processes(self._handle) or ()
        return _used(sorted(found, key=lambda each: each.start), busy)

    def create(self, profile: Profile, start: int) -> int:
        """Id of the new GPU instance."""
        placement = self._session.binding.c_nvmlGpuInstancePlacement_t(start, profile.size)
        instance = self._session.call(
            "nvmlDeviceCreateGpuInstanceWithPlacement", self._handle, profile.id, ctypes.byref(placement)
        )
        return int(self._session.call("nvmlGpuInstanceGetInfo", instance).id)

    def create_compute(self, gpu_instance: int, slices: int) -> None:
        instance = self._gpu_instance(gpu_instance)
        for info in self._compute_profiles(instance):
            if info.sliceCount == slices:
                self._session.call("nvmlGpuInstanceCreateComputeInstance", instance, info.id)
                return
        raise NvmlError(explain(UNKNOWN_PROFILE[0]))

    def destroy(self, gpu_instance: int) -> None:
        self._session.call("nvmlGpuInstanceDestroy", self._gpu_instance(gpu_instance))

    def destroy_compute(self, gpu_instance: int, compute_instance: int) -> None:
        instance = self._gpu_instance(gpu_instance)
        compute = self._session.call("nvmlGpuInstanceGetComputeInstanceById", instance, compute_instance)
        self._session.call("nvmlComputeInstanceDestroy", compute)

    # --- how NVML wants to be asked ---

    def _gpu_instance(self, number: int) -> t.Any:
        return self._session.call("nvmlDeviceGetGpuInstanceById", self._handle, number)

    def _profiles(self) -> t.Iterator[tuple[int, t.Any]]:
        for enum in SUFFIXES:
            info = self._info("nvmlDeviceGetGpuInstanceProfileInfo", self._handle, enum)
            if info is not None:
                yield enum, info

    def _compute_profiles(self, instance: t.Any) -> t.Iterator[t.Any]:
        for enum in COMPUTE_PROFILES:
            info = self._info("nvmlGpuInstanceGetComputeInstanceProfileInfo", instance, enum, SHARED_ENGINES)
            if info is not None:
                yield info

    def _info(self, name: str, *arguments: t.Any) -> t.Any:
        """The structure with a name in it, or the old one where the driver has only that; None when there is none."""
        for version in (2, 1):
            try:
                return self._session.call(name, *arguments, version=version)
            except NvmlError as exc:
                if exc.failure.code in UNKNOWN_PROFILE:
                    return None
                if exc.failure.code not in (FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH) or version == 1:
                    raise
        return None

    def _placements(self, profile: int) -> list[t.Any]:
        count = ctypes.c_uint(0)
        name = "nvmlDeviceGetGpuInstancePossiblePlacements"
        try:
            self._session.call(name, self._handle, profile, None, ctypes.byref(count))
            placements = (self._session.binding.c_nvmlGpuInstancePlacement_t * count.value)()
            self._session.call(name, self._handle, profile, placements, ctypes.byref(count))
        except NvmlError as exc:
            if exc.failure.code in UNKNOWN_PROFILE:
                return []
            raise
        return list(placements)

    def _list(self, name: str, owner: t.Any, profile: int, kind: str) -> list[t.Any]:
        handles = (getattr(self._session.binding, kind) * ROOM)()
        count = ctypes.c_uint(ROOM)
        try:
            self._session.call(name, owner, profile, handles, ctypes.byref(count))
        except NvmlError as exc:
            if exc.failure.code in UNKNOWN_PROFILE:
                return []
            raise
        return list(handles[: count.value])

    def _compute_instances(self, instance: t.Any) -> list[ComputeInstance]:
        found = {}
        for info in self._compute_profiles(instance):
            kind = "c_nvmlComputeInstance_t"
            for compute in self._list("nvmlGpuInstanceGetComputeInstances", instance, info.id, kind):
                number = self._session.call("nvmlComputeInstanceGetInfo_v2", compute).id
                found[number] = ComputeInstance(number, info.sliceCount)
        return [found[number] for number in sorted(found)]

    def _uuids(self) -> dict[tuple[int, int], str]:
        """By GPU and compute instance; the list of MIG devices has holes."""
        found = {}
        for index in range(self._session.ask("nvmlDeviceGetMaxMigDeviceCount", self._handle) or 0):
            try:
                device = self._session.call("nvmlDeviceGetMigDeviceHandleByIndex", self._handle, index)
            except NvmlError:
                continue
            place = [self._session.ask(f"nvmlDeviceGet{kind}InstanceId", device) for kind in ("Gpu", "Compute")]
            found[(place[0], place[1])] = self._session.ask("nvmlDeviceGetUUID", device)
        return found


def gpus(session: Session) -> list[Gpu]:
    """All GPUs as Session.gpus() has them, with the instances of those in MIG mode."""
    found = session.gpus()
    for gpu in found:
        if gpu.error is None and gpu.uuid and gpu.mig_current == "enabled":
            try:
                gpu.mig_instances = MigGpu(session, gpu.uuid).instances()
            except NvmlError as exc:
                if exc.failure.code not in UNANSWERED:
                    gpu.error = exc.failure
    return found


def _used(instances: t.Iterable[GpuInstance], processes: t.Iterable[GpuProcess]) -> tuple[GpuInstance, ...]:
    busy = {(process.gpu_instance, process.compute_instance) for process in processes}
    return tuple(
        dataclasses.replace(
            instance,
            compute=tuple(
                dataclasses.replace(each, in_use=(instance.id, each.id) in busy or (instance.id, None) in busy)
                for each in instance.compute
            ),
        )
        for instance in instances
    )


def _profile(enum: int, info: t.Any, placements: list[t.Any], total_mib: int) -> Profile:
    name = getattr(info, "name", b"")
    text = name.decode(errors="replace") if isinstance(name, bytes) else name
    starts = tuple(sorted(placement.start for placement in placements))
    return Profile(
        name=text.replace("MIG ", "", 1) or named(info.sliceCount, info.memorySizeMB, total_mib, SUFFIXES[enum]),
        id=info.id,
        slices=info.sliceCount,
        memory_mb=info.memorySizeMB,
        # Drivers have been seen to count more instances of an A30 than there are places.
        limit=min(info.instanceCount, len(starts)),
        starts=starts,
        size=placements[0].size,
        engines=Engines(info.decoderCount, info.encoderCount, info.jpegCount, info.ofaCount),
    )
