# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""The GPUs of this host as MIG sees them, from the PCI bus and NVML. Changes nothing."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .. import _drivers, _nvml, _nvml_mig, _pci
from .._errors import KubegpuError
from .model import Profile
from .profiles import known_offer
from .wish import Target


@dataclass(frozen=True)
class Survey:
    gpus: list[_nvml.Gpu]
    targets: list[Target]
    offers: dict[str, tuple[Profile, ...]]  # by PCI address
    nvswitch: bool


def survey(binding: _nvml.Binding, scan: t.Callable[[], list[_pci.PciFunction]] = _pci.scan) -> Survey:
    try:
        functions = scan()
    except OSError as exc:
        raise KubegpuError(f"The PCI bus cannot be read: {exc}") from exc
    boards = [function for function in functions if function.kind == "gpu" and not function.virtual_function]
    with _nvml.session(binding) as session:
        gpus = _nvml_mig.gpus(session)
        _nvml.place_lost(gpus, [board.address for board in boards if board.usable])
        offers = {board.address: _offer(session, gpus, board) for board in boards}
    return Survey(
        gpus=gpus,
        targets=[_target(board, gpus) for board in boards],
        offers=offers,
        nvswitch=any(function.kind == "nvswitch" for function in functions),
    )


def _offer(session: _nvml.Session, gpus: list[_nvml.Gpu], board: _pci.PciFunction) -> tuple[Profile, ...]:
    for gpu in gpus:
        if gpu.pci_address == board.address and gpu.uuid and gpu.mig_current and not gpu.error:
            try:
                return _nvml_mig.MigGpu(session, gpu.uuid).offered() or known_offer(_number(board.device_id)) or ()
            except _nvml.NvmlError as exc:
                if exc.failure.code == _nvml.NO_PERMISSION:
                    raise
                gpu.error = exc.failure  # the others are no worse for it
    return ()


def _target(board: _pci.PciFunction, gpus: list[_nvml.Gpu]) -> Target:
    gpu = next((gpu for gpu in gpus if gpu.pci_address == board.address), None)
    if not board.usable:
        unusable: str | None = f"bound to {board.driver}"
    elif gpu is None:
        unusable = "NVML does not show it; look for NVRM lines in the kernel log"
    else:
        unusable = gpu.error.message if gpu.error else None
    # The kernel module still knows a GPU that NVML has lost.
    known = _drivers.gpu_information(board.address)
    return Target(
        index=gpu.index if gpu else None,
        uuid=(gpu.uuid if gpu else None) or known.get("GPU UUID"),
        pci_address=board.address,
        name=(gpu.name if gpu else None) or known.get("Model") or board.board.name or "unknown GPU",
        device=_number(board.device_id),
        # As NVML has it, the vendor in the lower half.
        subsystem=_number(board.subsystem_device_id) << 16 | _number(board.subsystem_vendor_id),
        mig_capable=bool(gpu and gpu.mig_current) if unusable is None else bool(board.board.mig_capable),
        unusable=unusable,
        ours=board.usable,
    )


def _number(digits: str | None) -> int:
    return int(digits or "0", 16)
