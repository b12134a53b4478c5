# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""What shall become of each GPU, decided before anything is changed. Pure: from what NVML said and what is wished."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._errors import KubegpuError
from .._nvml import Gpu
from .model import GpuInstance, Instance, Layout, Profile, as_data, describe, layout_of
from .plan import Busy, Plan, difference, place
from .wanted import instances_of
from .wish import Wish

# The driver resets these when their MIG mode changes; later generations change at once (MIG User Guide).
RESET_BY_MODE_CHANGE = frozenset({"ampere"})


@dataclass(frozen=True)
class Intent:
    """For a GPU that somebody wishes something of; the layout is empty where MIG is to be off."""

    gpu: Gpu
    wish: Wish
    layout: Layout
    plan: Plan
    busy: tuple[GpuInstance, ...] = ()  # they are in use and would have to go

    @property
    def sets_mode(self) -> bool:
        return {self.gpu.mig_current, self.gpu.mig_pending} != {self.wish.mode}

    @property
    def changes_mode(self) -> bool:
        return self.gpu.mig_current != self.wish.mode

    @property
    def resets(self) -> bool:
        return self.changes_mode and (self.gpu.generation in RESET_BY_MODE_CHANGE or self.gpu.generation is None)

    @property
    def changed(self) -> bool:
        return self.sets_mode or not self.plan.empty

    @property
    def name(self) -> str:
        return name_of(self.gpu)

    @property
    def uuid(self) -> str:
        return self.gpu.uuid or ""

    def disruption(self) -> list[str]:
        """What of it may disturb work that runs, in sentences."""
        found = []
        if self.changes_mode:
            by_reset = ", which resets the GPU" if self.resets else ""
            found.append(f"{self.name}: MIG mode becomes {self.wish.mode}{by_reset}")
        gone = [describe(instance) for instance in layout_of(self.plan.destroyed)]
        gone += [f"a compute instance of {each.profile}@{each.start}" for each, _compute in self.plan.compute_destroyed]
        if gone:
            found.append(f"{self.name}: destroys {', '.join(gone)}")
        return found

    def outcome(self) -> dict[str, t.Any]:
        """The module's report on this GPU when all of it is done."""
        return {
            **identity(self.gpu),
            "before": state(self.gpu.mig_current, layout_of(self.gpu.mig_instances or ())),
            "after": state(self.wish.mode, self.layout),
            "kept": [as_data(each) for each in layout_of(self.plan.kept)],
            "destroyed": [as_data(each) for each in layout_of(self.plan.destroyed)],
            "created": [as_data(each) for each in self.plan.created],
            "mode_changed": self.changes_mode,
            "reset": self.resets,
            "reset_with": [],
            "reboot_required": False,
        }


def name_of(gpu: Gpu) -> str:
    return f"{gpu.name or 'GPU'} at {gpu.pci_address}"


def identity(gpu: Gpu) -> dict[str, t.Any]:
    return {"uuid": gpu.uuid, "pci_address": gpu.pci_address, "name": gpu.name}


def state(mode: str | None, layout: Layout) -> dict[str, t.Any]:
    return {"mode": mode, "instances": [as_data(instance) for instance in layout]}


def intents(
    wishes: t.Mapping[str, Wish], gpus: t.Iterable[Gpu], offers: t.Mapping[str, tuple[Profile, ...]]
) -> list[Intent]:
    """By PCI address; raises KubegpuError with everything that cannot be had, so that nothing is changed for it."""
    found, errors = [], []
    for gpu in gpus:
        wish = wishes.get(gpu.pci_address or "")
        if wish is None or gpu.error:
            continue
        try:
            found.append(_intent(gpu, wish, offers.get(gpu.pci_address or "", ())))
        except KubegpuError as exc:
            errors.append(f"{name_of(gpu)}: {exc}")
    if errors:
        raise KubegpuError("\n".join(errors))
    return found


def _intent(gpu: Gpu, wish: Wish, offered: tuple[Profile, ...]) -> Intent:
    if gpu.mig_current == "enabled" and gpu.mig_instances is None:
        raise KubegpuError("NVML does not say which instances there are; that needs root. Run the task with become.")
    current = (gpu.mig_instances or ()) if gpu.mig_current == "enabled" else ()
    wanted: tuple[Instance, ...] = ()
    if wish.mode == "enabled" and wish.instances:
        if not offered:
            raise KubegpuError(
                "its driver cannot list MIG profiles while MIG is off, and this board is not one that is known without."
                " Switch MIG on first: declare `mode: enabled` without instances, and run again with the layout."
            )
        wanted = instances_of(wish, offered)
    try:
        layout = place(offered, current, wanted)
    except Busy as exc:
        return Intent(gpu, wish, exc.layout, difference(current, exc.layout), exc.instances)
    return Intent(gpu, wish, layout, difference(current, layout))
