# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Switches the MIG mode of a GPU, with a reset where the driver asks for one and the caller allows it."""

from __future__ import annotations

import typing as t

from .. import _nvml
from .._commands import RunCommand
from .._errors import KubegpuError
from .._nvml_mig import MigGpu
from . import apply
from .holders import drm_holds, holders_of
from .intent import Intent
from .model import Layout, layout_of


class RebootRequired(KubegpuError):
    """The mode stays pending: only a reboot (of the guest, in a virtual machine) brings it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reboot_required=True)


def switch(binding: _nvml.Binding, intent: Intent, allow_reset: bool, reset: t.Callable[[], None]) -> None:
    """The mode is as wished after this, or as before and KubegpuError says why; after RebootRequired it is pending."""
    with _nvml.session(binding) as session:
        device = MigGpu(session, _uuid(intent))
        former = layout_of(device.instances()) if intent.gpu.mig_current == "enabled" else ()
        if intent.wish.mode == "disabled" and former:
            apply.bring_about(device, ())
        status = device.set_mode(intent.wish.mode)
        if device.modes()[0] == intent.wish.mode:
            return
        pending = status or _nvml.explain(_nvml.RESET_REQUIRED)
        if pending.code == _nvml.IN_USE or not allow_reset:
            _take_back(device, intent, former)
            raise KubegpuError(_refusal(intent, pending))
    # NVML itself holds the GPU, so its session had to end.
    try:
        reset()
    except RebootRequired:
        raise
    except KubegpuError:
        with _nvml.session(binding) as session:
            _take_back(MigGpu(session, _uuid(intent)), intent, former)
        raise
    with _nvml.session(binding) as session:
        if MigGpu(session, _uuid(intent)).modes()[0] != intent.wish.mode:
            raise RebootRequired(
                f"MIG mode {intent.wish.mode} is still pending after a reset of the GPU, as in virtual machines that"
                " may not reset it; it needs a reboot of this machine. Run again after that."
            )


def reset_with_nvidia_smi(run_command: RunCommand, addresses: t.Sequence[str]) -> None:
    """One call, because GPUs behind NVSwitches are reset together or not at all."""
    command = ["nvidia-smi", "--gpu-reset", "-i", ",".join(addresses)]
    rc, out, err = run_command(command, handle_exceptions=False)
    if rc:
        raise RebootRequired(
            f"{' '.join(command)} failed: {(out + err).strip()} The MIG mode stays pending until a reset or a reboot."
        )


def _take_back(device: MigGpu, intent: Intent, former: Layout) -> None:
    """Or a later reset, perhaps by somebody who does not know of it, would change the mode."""
    if intent.gpu.mig_current:
        device.set_mode(intent.gpu.mig_current)
    if former:
        apply.bring_about(device, former)


def _refusal(intent: Intent, pending: _nvml.Failure) -> str:
    if pending.code != _nvml.IN_USE:
        return (
            f"MIG mode {intent.wish.mode} needs a reset of the GPU ({pending.error}); allow_reset does not allow it."
            " The mode is as it was."
        )
    holders = ", ".join(str(holder) for holder in holders_of(intent.gpu)) or (
        "the kernel module nvidia_drm (modeset): unload it, or boot with nvidia_drm.modeset=0"
        if drm_holds()
        else "nobody that can be seen from here; look for DCGM, exporters and monitors in containers"
    )
    return (
        f"the driver does not switch MIG mode to {intent.wish.mode}, because the GPU is in use by {holders}."
        " It is as it was."
    )


def _uuid(intent: Intent) -> str:
    return intent.gpu.uuid or ""
