# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A GPU in MIG mode without NVML: it takes and refuses what the driver takes and refuses, as far as these tests go."""

from __future__ import annotations

import dataclasses

from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.model import (
    ComputeInstance,
    GpuInstance,
    Instance,
    Profile,
)
from ansible_collections.kubegpu.nvidia.plugins.module_utils._nvml import NvmlError, explain

IN_USE, NOT_FOUND, INSUFFICIENT_RESOURCES = 19, 6, 23


class FakeGpu:
    """`refuse` maps the number of a changing call, from 1, to the error that it gets instead."""

    def __init__(self, offered: tuple[Profile, ...], *layout: Instance, refuse: dict[int, int] | None = None) -> None:
        self._offered = offered
        self._refuse: dict[int, int] = {}
        self._there: dict[int, GpuInstance] = {}
        self._places: dict[tuple[int, int], int] = {}
        self._next = 40  # so that nobody takes an id for a place
        self.calls: list[str] = []
        for wanted in layout:
            number = self.create(self._profile(wanted.profile), wanted.start or 0)
            for slices in wanted.compute:
                self.create_compute(number, slices)
        self.calls.clear()
        self._refuse = refuse or {}

    def offered(self) -> tuple[Profile, ...]:
        return self._offered

    def instances(self) -> tuple[GpuInstance, ...]:
        return tuple(sorted(self._there.values(), key=lambda each: each.start))

    def create(self, profile: Profile, start: int) -> int:
        self._called(f"create {profile.name}@{start}")
        taken = {
            slice_
            for each in self._there.values()
            for slice_ in range(each.start, each.start + self._profile(each.profile).size)
        }
        if taken & set(range(start, start + profile.size)):
            raise NvmlError(explain(INSUFFICIENT_RESOURCES))
        self._next -= 1
        self._there[self._next] = GpuInstance(self._next, profile.name, start)
        return self._next

    def create_compute(self, gpu_instance: int, slices: int) -> None:
        self._called(f"create compute {slices}")
        instance = self._there[gpu_instance]
        number = max((each.id for each in instance.compute), default=-1) + 1
        self._place(instance, number, slices)
        compute = (*instance.compute, ComputeInstance(number, slices))
        self._there[gpu_instance] = dataclasses.replace(instance, compute=compute)

    def destroy(self, gpu_instance: int) -> None:
        instance = self._there[gpu_instance]
        self._called(f"destroy {instance.profile}@{instance.start}")
        if instance.compute:
            raise NvmlError(explain(IN_USE))
        del self._there[gpu_instance]

    def destroy_compute(self, gpu_instance: int, compute_instance: int) -> None:
        self._called("destroy compute")
        instance = self._there[gpu_instance]
        left = tuple(each for each in instance.compute if each.id != compute_instance)
        if left == instance.compute:
            raise NvmlError(explain(NOT_FOUND))
        self._there[gpu_instance] = dataclasses.replace(instance, compute=left)

    def _place(self, instance: GpuInstance, number: int, slices: int) -> None:
        """The first free place that is aligned to the next power of two."""
        step = 1 << (slices - 1).bit_length()
        taken = {
            slice_
            for each in instance.compute
            for slice_ in range(self._places[instance.id, each.id], self._places[instance.id, each.id] + each.slices)
        }
        for start in range(0, int(instance.profile[0]) - slices + 1, step):
            if not taken & set(range(start, start + slices)):
                self._places[instance.id, number] = start
                return
        raise NvmlError(explain(INSUFFICIENT_RESOURCES))

    def _profile(self, name: str) -> Profile:
        return next(profile for profile in self._offered if profile.name == name)

    def _called(self, what: str) -> None:
        self.calls.append(what)
        if len(self.calls) in self._refuse:
            raise NvmlError(explain(self._refuse[len(self.calls)]))
