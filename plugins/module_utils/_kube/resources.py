# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which resources a node should advertise, and which it does. Private to the collection."""

from __future__ import annotations

import re
import typing as t

from .._errors import KubegpuError

WHOLE_GPU = "nvidia.com/gpu"
_OF_THE_DEVICE_PLUGIN = re.compile(r"nvidia\.com/(gpu|mig-.+?)(\.shared)?")
"""Others make resources in that domain, too: NVIDIA's Network Operator hostdev, KubeVirt's device plugin GH100_..."""

Gpu = t.Mapping[str, t.Any]
Resources = t.Mapping[str, t.Union[int, str]]


def expected_resources(gpus: t.Sequence[Gpu]) -> dict[str, int]:
    """What the device plugin makes of the GPUs that NVML reports; those that NVML cannot use count for nothing."""
    usable = [gpu for gpu in gpus if not gpu.get("error")]
    for gpu in usable:
        if (gpu.get("mig") or {}).get("current") == "enabled":
            raise KubegpuError(
                f"{gpu_name(gpu)} is in MIG mode; this version of the collection waits for whole GPUs only."
                " Disable MIG mode on it, or leave the node out."
            )
    return {WHOLE_GPU: len(usable)} if usable else {}


def unusable_gpus(gpus: t.Sequence[Gpu]) -> list[str]:
    """The GPUs that count for nothing, each with NVML's reason."""
    broken = [(gpu_name(gpu), gpu["error"]) for gpu in gpus if gpu.get("error")]
    return [f"{name}: {error.get('message') or error.get('error')}" for name, error in broken]


def advertised_resources(node: t.Mapping[str, t.Any]) -> dict[str, int | str]:
    """What NVIDIA's GPU device plugin has made of the node's GPUs.

    Allocatable, not capacity: that keeps resources for minutes after their plugin is gone.
    """
    allocatable = node.get("status", {}).get("allocatable") or {}
    of_plugin = filter(_OF_THE_DEVICE_PLUGIN.fullmatch, sorted(allocatable))
    return {name: _count(allocatable[name]) for name in of_plugin}


def is_as_expected(expected: Resources, advertised: Resources) -> bool:
    """Exactly these: a resource left over from another configuration may only be there with nothing in it."""
    return {name: amount for name, amount in advertised.items() if amount != 0} == dict(expected)


def describe(resources: Resources) -> str:
    amounts = [f"{name}: {amount}" for name, amount in sorted(resources.items())]
    return ", ".join(amounts) or f"no {WHOLE_GPU} or nvidia.com/mig-*"


def gpu_name(gpu: Gpu) -> str:
    return f"GPU {gpu.get('uuid') or gpu.get('index')} ({gpu.get('pci_address')})"


def _count(amount: str) -> int | str:
    # The plugin advertises plain numbers. Any other quantity is shown as it is, and equals nothing that we expect.
    return int(amount) if amount.isdecimal() else amount
