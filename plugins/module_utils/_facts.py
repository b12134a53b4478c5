# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""The fact `nvidia_gpu`, put together from what the other parts read. What cannot be read is a reason, no failure."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from . import _drivers, _host, _nvml, _nvml_mig, _packages, _pci, _toolkit
from ._commands import RunCommand
from ._mig.model import GpuInstance, compute_name
from ._processes import command_of
from ._runtime.daemons import find_daemons

PARTS = ("host", "pci", "driver", "nvml", "runtimes", "toolkit")

# Packages of the driver, and those that its kernel modules are built with.
DRIVER_PACKAGES = re.compile(
    r"(nvidia|libnvidia|libcuda|cuda-drivers|firmware-nvidia|kmod-nvidia|linux-headers-)|dkms$"
)


def gather(run_command: RunCommand, parts: t.Collection[str]) -> dict[str, t.Any]:
    """The wanted parts, and always whether there is a GPU and why something is missing."""
    reasons: list[str] = []
    functions = _scan(reasons)
    usable = [function for function in functions if function.usable]
    facts: dict[str, t.Any] = {"present": any(function.kind == "gpu" for function in functions)}
    if not facts["present"] and not reasons:
        reasons.append("This host has no NVIDIA GPU.")
    elif facts["present"] and not usable:
        reasons.append("This host's GPUs are given to virtual machines; its own driver has none to drive.")
    packages = _packages.Packages(None, None)
    if {"host", "driver", "toolkit"} & set(parts):
        packages = _packages.read(run_command)
    if "host" in parts:
        facts["host"] = {**_host.facts(), "packages_interrupted": packages.interrupted}
    if "pci" in parts:
        facts["pci"] = [function.as_fact() for function in functions]
    if "driver" in parts:
        facts["driver"] = _driver(packages.installed, usable, reasons)
    if "nvml" in parts:
        facts.update(read_nvml(usable, reasons))
    if "runtimes" in parts:
        facts["runtimes"] = [daemon.facts() for daemon in find_daemons(run_command)]
    if "toolkit" in parts:
        facts["toolkit"] = _toolkit.facts(packages.installed or {})
    facts["reason"] = " ".join(reasons)
    return facts


def _scan(reasons: list[str]) -> list[_pci.PciFunction]:
    try:
        return _pci.scan()
    except OSError as exc:
        reasons.append(
            f"The PCI bus cannot be read ({exc.strerror}: {exc.filename}), so there may or may not be a GPU."
        )
        return []


def _driver(packages: dict[str, str] | None, usable: list[_pci.PciFunction], reasons: list[str]) -> dict[str, t.Any]:
    if packages is not None:
        packages = {
            name: version
            for name, version in packages.items()
            if DRIVER_PACKAGES.match(name) and name not in _toolkit.PACKAGES
        }
    driver = _drivers.read(packages)
    verdict = _drivers.verdict(driver, gpu_present=bool(usable))
    if usable and verdict.verdict != "ok":
        reasons.append(verdict.reason)
    return {
        "loaded": dataclasses.asdict(driver.loaded) if driver.loaded else None,
        "library": driver.library,
        "packages": packages or {},
        "devices": _drivers.devices(),
        "nouveau_loaded": driver.nouveau,
        "verdict": verdict.verdict,
        "reason": verdict.reason,
    }


def read_nvml(
    usable: list[_pci.PciFunction],
    reasons: list[str],
    load_binding: t.Callable[[], _nvml.Binding] = _nvml.load_binding,
    proc: str = "/proc",
) -> dict[str, t.Any]:
    """What NVML says: about itself, about each GPU, and about which it says nothing."""
    nvml: dict[str, t.Any] = {
        "status": "not_needed",
        "error": None,
        "code": None,
        "message": "",
        "driver_version": None,
        "library_version": None,
        "cuda_version": None,
    }
    nothing: dict[str, t.Any] = {"nvml": nvml, "gpus": [], "missing": []}
    if not usable:
        return nothing
    try:
        with _nvml.session(load_binding()) as session:
            versions = session.versions()
            nvml.update(driver_version=versions.driver, library_version=versions.library, cuda_version=versions.cuda)
            gpus = _nvml_mig.gpus(session)
        nvml["status"] = "ok"
    except _nvml.BindingMissing as exc:
        nvml.update(status="binding_missing", message=str(exc))
    except _nvml.NvmlError as exc:
        nvml.update(status="error", **dataclasses.asdict(exc.failure))
    if nvml["status"] != "ok":
        # An error of NVML follows from a fault of the driver that has been told already.
        if nvml["status"] == "binding_missing" or not reasons:
            reasons.append(nvml["message"])
        return nothing
    _nvml.place_lost(gpus, [function.address for function in usable])
    missing = sorted({function.address for function in usable} - {gpu.pci_address for gpu in gpus})
    if missing:
        reasons.append(f"NVML does not show the GPU at {', '.join(missing)}; look for NVRM lines in the kernel log.")
    reasons += [f"GPU {gpu.pci_address or gpu.index}: {gpu.error.message}" for gpu in gpus if gpu.error]
    boards = {function.address: function.board for function in usable}
    return {
        "nvml": nvml,
        "gpus": [_gpu(gpu, boards.get(gpu.pci_address or "", _pci.Board()), proc) for gpu in gpus],
        "missing": missing,
    }


def _gpu(gpu: _nvml.Gpu, board: _pci.Board, proc: str) -> dict[str, t.Any]:
    # The kernel module still knows a GPU that NVML has lost.
    known = _drivers.gpu_information(gpu.pci_address, proc) if gpu.error and gpu.pci_address else {}
    minor = known.get("Device Minor", "")
    return {
        "uuid": gpu.uuid or known.get("GPU UUID"),
        "pci_address": gpu.pci_address,
        "index": gpu.index,
        "minor": int(minor) if gpu.minor is None and minor.isdigit() else gpu.minor,
        "name": gpu.name or known.get("Model") or board.name or "unknown GPU",
        "generation": gpu.generation or board.generation,
        "memory_mib": gpu.memory_mib,
        "serial": gpu.serial,
        "mig": {
            "current": gpu.mig_current,
            "pending": gpu.mig_pending,
            "instances": None if gpu.mig_instances is None else [_instance(each) for each in gpu.mig_instances],
        },
        "compute_mode": gpu.compute_mode,
        "persistence": gpu.persistence,
        "ecc": {"current": gpu.ecc_current, "pending": gpu.ecc_pending},
        "processes": None
        if gpu.processes is None
        else [{**dataclasses.asdict(each), "command": command_of(each.pid, proc)} for each in gpu.processes],
        "error": dataclasses.asdict(gpu.error) if gpu.error else None,
    }


def _instance(instance: GpuInstance) -> dict[str, t.Any]:
    return {
        "id": instance.id,
        "profile": instance.profile,
        "start": instance.start,
        "compute_instances": [
            {"id": each.id, "profile": compute_name(instance.profile, each.slices), "uuid": each.uuid}
            for each in instance.compute
        ],
    }
