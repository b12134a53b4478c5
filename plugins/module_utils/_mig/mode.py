# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Switches the MIG mode of a GPU, with a reset where the driver asks for one and the caller allows it."""

from __future__ import annotations

import re
import typing as t

from .. import _nvml
from .._commands import RunCommand, run
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
    mode = intent.wish.mode
    former: Layout = ()
    try:
        with _nvml.session(binding) as session:
            device = MigGpu(session, intent.uuid)
            former = layout_of(device.instances()) if intent.gpu.mig_current == "enabled" else ()
            if intent.changes_mode and mode == "disabled" and former:
                apply.bring_about(device, ())
            status = device.set_mode(mode)
            modes = MigGpu(session, intent.uuid).modes()
    except KubegpuError as exc:
        raise taken_back(binding, intent, former, f"Switching MIG mode to {mode} failed: {exc}") from exc
    if modes == (mode, mode):
        return
    pending = status or _nvml.explain(_nvml.RESET_REQUIRED)
    if pending.code == _nvml.IN_USE or not allow_reset:
        raise taken_back(binding, intent, former, _refusal(intent, pending))
    try:
        # NVML itself holds the GPU, so its session had to end.
        reset()
    except RebootRequired:
        raise
    except KubegpuError as exc:
        raise taken_back(binding, intent, former, str(exc)) from exc
    with _nvml.session(binding) as session:
        if MigGpu(session, intent.uuid).modes()[0] != mode:
            raise RebootRequired(
                f"MIG mode {mode} is still pending after a reset of the GPU, as in virtual machines that may not reset"
                " it; it needs a reboot of this machine. Run again after that."
            )


def taken_back(binding: _nvml.Binding, intent: Intent, former: Layout, reason: str) -> KubegpuError:
    """The reason, and whether the GPU is as it was, which this tries.

    A mode may not stay pending, or a later reset, perhaps by somebody who does not know of it, would bring it.
    """
    mode = intent.gpu.mig_current or "disabled"
    try:
        with _nvml.session(binding) as session:
            device = MigGpu(session, intent.uuid)
            if device.modes() != (mode, mode):
                device.set_mode(mode)
            device = MigGpu(session, intent.uuid)
            if former and device.modes()[0] == "enabled":
                apply.bring_about(device, former)
            modes = device.modes()
    except KubegpuError as exc:
        return KubegpuError(f"{reason} It could not be brought back to what it was: {exc}")
    if modes == (mode, mode):
        return KubegpuError(f"{reason} The GPU is as it was.")
    return KubegpuError(
        f"{reason} It could not be brought back to what it was: MIG mode is {modes[0]}, pending {modes[1]}."
    )


def reset_with_nvidia_smi(run_command: RunCommand, addresses: t.Sequence[str]) -> None:
    """One call, because GPUs behind NVSwitches are reset together or not at all."""
    command = ["nvidia-smi", "--gpu-reset", "-i", ",".join(addresses)]
    rc, out, err = run(run_command, command)
    if rc == 0:
        return
    said = f"{' '.join(command)} failed: {(out + err).strip()}."
    if rc == 127 or re.search(r"in use|being used", out + err, re.IGNORECASE):
        raise KubegpuError(said)
    raise RebootRequired(f"{said} The MIG mode stays pending until a reset or a reboot of this machine.")


def _refusal(intent: Intent, pending: _nvml.Failure) -> str:
    if pending.code != _nvml.IN_USE:
        return (
            f"MIG mode {intent.wish.mode} needs a reset of the GPU ({pending.error}), and allow_reset is false. Set"
            " allow_reset: true when no work runs there."
        )
    holders = ", ".join(str(holder) for holder in holders_of(intent.gpu)) or (
        "the kernel module nvidia_drm (modeset): unload it, or boot with nvidia_drm.modeset=0"
        if drm_holds()
        else "nobody that can be seen from here; look for DCGM, exporters and monitors in containers"
    )
    return f"The driver does not switch MIG mode to {intent.wish.mode}, because the GPU is in use by {holders}."
