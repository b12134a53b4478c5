# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GPUs of a host, as wishes are made about them."""

from __future__ import annotations

import dataclasses

from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.wanted import Target

A100_40 = {"name": "NVIDIA A100-SXM4-40GB", "device": 0x20B0, "subsystem": 0x134F10DE}
T4 = {"name": "Tesla T4", "device": 0x1EB8, "subsystem": 0x12A210DE, "mig_capable": False}
# What is known about a GPU that the driver lost: little more than its place.
LOST = {"uuid": None, "name": "GA100", "unusable": "fell off the bus"}
GIVEN_AWAY = {"index": None, "uuid": None, "name": "GA100", "unusable": "bound to vfio-pci", "ours": False}


def target(number: int = 0, **changes) -> Target:
    """An A100 of 80 GB, or what the changes make of it."""
    gpu = Target(
        index=number,
        uuid=f"GPU-{number}a",
        pci_address=address(number),
        name="NVIDIA A100-SXM4-80GB",
        device=0x20B2,
        subsystem=0x147F10DE,
        mig_capable=True,
    )
    return dataclasses.replace(gpu, **changes)


def address(number: int) -> str:
    return f"0000:{0x1A + number:02x}:00.0"
