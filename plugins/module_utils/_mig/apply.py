# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Gives one GPU in MIG mode exactly a layout: destroy, create, read back; and what was there before when that fails."""

from __future__ import annotations

import itertools
import typing as t

from .._errors import KubegpuError
from .._nvml import NvmlError
from .model import GpuInstance, Instance, Layout, Profile, compute_name, describe, layout_of
from .plan import Plan, difference

INSUFFICIENT_RESOURCES = 23

# Enough for every way in which seven slices can be divided into different sizes.
MOST_ORDERS = 120


class Device(t.Protocol):
    """What _nvml_mig.MigGpu does."""

    def instances(self) -> tuple[GpuInstance, ...]: ...

    def offered(self) -> tuple[Profile, ...]: ...

    def create(self, profile: Profile, start: int) -> int: ...

    def create_compute(self, gpu_instance: int, slices: int) -> None: ...

    def destroy(self, gpu_instance: int) -> None: ...

    def destroy_compute(self, gpu_instance: int, compute_instance: int) -> None: ...


class NotApplied(KubegpuError):
    """The GPU did not take the layout. `restored` tells whether it has the former one again."""

    def __init__(self, reason: str, restored: bool, now: str) -> None:
        state = "The former layout was restored" if restored else "The former layout could not be restored"
        super().__init__(f"{reason} {state}: {now}.")
        self.restored = restored


class _StepFailed(Exception):
    def __init__(self, step: str, reason: str, code: int | None = None) -> None:
        super().__init__(f"{step} failed: {reason}")
        self.code = code


def bring_about(device: Device, layout: Layout) -> Plan:
    """Does what the layout lacks and returns it. Raises NotApplied; then the GPU is as it was, if hardware allows."""
    current = device.instances()
    plan = difference(current, layout)
    if plan.empty:
        return plan
    try:
        _perform(device, plan)
        now = layout_of(device.instances())
        if now != layout:
            raise _StepFailed("Reading the layout back", f"NVML shows {described(now)} instead of {described(layout)}.")
    except (_StepFailed, NvmlError) as exc:
        former = layout_of(current)
        raise NotApplied(str(exc), *_restore(device, former)) from exc
    return plan


def described(layout: t.Iterable[Instance]) -> str:
    return ", ".join(describe(instance) for instance in layout) or "no instances"


def _perform(device: Device, plan: Plan) -> None:
    """Destroys before it creates, so that what is created finds its place."""
    offered = {profile.name: profile for profile in device.offered()}
    for instance, compute in plan.compute_destroyed:
        _destroy_compute(device, instance, compute.id, compute.slices)
    for instance in plan.destroyed:
        for compute in instance.compute:
            _destroy_compute(device, instance, compute.id, compute.slices)
        _step(f"Destroying {instance.profile}@{instance.start}", device.destroy, instance.id)
    for wanted in plan.created:
        step = f"Creating {wanted.profile}@{wanted.start}"
        if wanted.profile not in offered or wanted.start is None:
            raise _StepFailed(step, f"this GPU offers only {', '.join(offered)}.")
        number = _step(step, device.create, offered[wanted.profile], wanted.start)
        _divide(device, number, wanted.compute)
    for instance in dict.fromkeys(instance for instance, _slices in plan.compute_created):
        _divide(device, instance.id, tuple(slices for each, slices in plan.compute_created if each == instance))


def _destroy_compute(device: Device, instance: GpuInstance, compute: int, slices: int) -> None:
    what = f"{compute_name(instance.profile, slices)} in {instance.profile}@{instance.start}"
    _step(f"Destroying the compute instance {what}", device.destroy_compute, instance.id, compute)


def _divide(device: Device, gpu_instance: int, missing: tuple[int, ...]) -> None:
    """Creates compute instances in an order in which they fit, if there is one, since NVML places them itself.

    Those that are there and idle may be in the wrong place: then they are made anew with the others.
    """
    instance = _instance(device, gpu_instance)
    idle = [compute for compute in instance.compute if not compute.in_use]
    try:
        _create_compute(device, instance, missing)
    except _StepFailed:
        if not idle:
            raise
        for compute in idle:
            _destroy_compute(device, instance, compute.id, compute.slices)
        _create_compute(device, instance, (*missing, *(compute.slices for compute in idle)))


def _create_compute(device: Device, instance: GpuInstance, wanted: tuple[int, ...]) -> None:
    orders = sorted(set(itertools.permutations(wanted)), reverse=True)[:MOST_ORDERS]
    before = {compute.id for compute in _instance(device, instance.id).compute}
    for order in orders:
        try:
            for slices in order:
                name = compute_name(instance.profile, slices)
                _step(f"Creating the compute instance {name}", device.create_compute, instance.id, slices)
            return
        except _StepFailed as exc:
            if exc.code != INSUFFICIENT_RESOURCES or order == orders[-1]:
                raise
        for compute in _instance(device, instance.id).compute:
            if compute.id not in before:
                _destroy_compute(device, instance, compute.id, compute.slices)


def _instance(device: Device, number: int) -> GpuInstance:
    return next(instance for instance in device.instances() if instance.id == number)


def _step(name: str, call: t.Callable[..., t.Any], *arguments: t.Any) -> t.Any:
    try:
        return call(*arguments)
    except NvmlError as exc:
        raise _StepFailed(name, str(exc), exc.failure.code) from exc


def _restore(device: Device, former: Layout) -> tuple[bool, str]:
    """One try; and what is where after it."""
    try:
        _perform(device, difference(device.instances(), former))
        now = layout_of(device.instances())
    except (_StepFailed, NvmlError) as exc:
        try:
            return False, f"{exc} There is now {described(layout_of(device.instances()))}"
        except NvmlError as worse:
            return False, f"{exc} NVML says no more what is there: {worse}"
    return now == former, described(now)
