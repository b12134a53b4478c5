# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""NVIDIA's functions on the PCI bus, read from sysfs: what is known before, and without, any driver."""

from __future__ import annotations

import os
import re
import typing as t
from dataclasses import dataclass

from ._boards import Board, board
from ._files import first_line

NVIDIA = "10de"

# Classes as the kernel writes them, without the programming interface. NVSwitches are bridges of the class "other".
KINDS = {"0300": "gpu", "0302": "gpu", "0680": "nvswitch", "0403": "audio"}

ADDRESS = re.compile(r"^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])$")


@dataclass(frozen=True)
class PciFunction:
    address: str
    vendor_id: str
    device_id: str
    subsystem_vendor_id: str | None
    subsystem_device_id: str | None
    class_: str
    kind: str
    board: Board
    driver: str | None
    virtual_function: bool

    @property
    def usable(self) -> bool:
        """Whether this host's own NVIDIA driver is to drive it: a whole GPU, not given to a virtual machine."""
        return self.kind == "gpu" and not self.virtual_function and "vfio" not in (self.driver or "")

    def as_fact(self) -> dict[str, t.Any]:
        return {
            "address": self.address,
            "vendor_id": self.vendor_id,
            "device_id": self.device_id,
            "subsystem_vendor_id": self.subsystem_vendor_id,
            "subsystem_device_id": self.subsystem_device_id,
            "class": self.class_,
            "kind": self.kind,
            **self.board._asdict(),
            "driver": self.driver,
            "virtual_function": self.virtual_function,
            "usable": self.usable,
        }


def normal_address(text: str) -> str | None:
    """One spelling for a PCI address: sysfs says `0000:1a:00.0`, NVML `00000000:1A:00.0`, people `1a:00.0`."""
    match = ADDRESS.match(text.strip().lower())
    if match is None:
        return None
    domain, bus, device, function = match.groups()
    return f"{int(domain or '0', 16):04x}:{bus}:{device}.{function}"


def scan(root: str = "/sys/bus/pci/devices") -> list[PciFunction]:
    """NVIDIA's functions in the order of their addresses; raises OSError where there is no PCI bus to read."""
    functions = [_read(os.path.join(root, name), name) for name in sorted(os.listdir(root))]
    return [function for function in functions if function is not None]


def _read(directory: str, name: str) -> PciFunction | None:
    address = normal_address(name)
    vendor_id = _hexadecimal(directory, "vendor")
    if address is None or vendor_id != NVIDIA:
        return None
    device_id = _hexadecimal(directory, "device") or ""
    class_ = (_hexadecimal(directory, "class") or "")[:4]
    kind = KINDS.get(class_, "other")
    driver = os.path.join(directory, "driver")
    return PciFunction(
        address=address,
        vendor_id=vendor_id,
        device_id=device_id,
        subsystem_vendor_id=_hexadecimal(directory, "subsystem_vendor"),
        subsystem_device_id=_hexadecimal(directory, "subsystem_device"),
        class_=class_,
        kind=kind,
        board=board(device_id) if kind == "gpu" else Board(),
        driver=os.path.basename(os.readlink(driver)) if os.path.islink(driver) else None,
        virtual_function=os.path.lexists(os.path.join(directory, "physfn")),
    )


def _hexadecimal(directory: str, name: str) -> str | None:
    """The digits of a file such as `0x10de`; None when it is missing or holds something else."""
    text = (first_line(os.path.join(directory, name)) or "").lower()
    return text[2:] if re.fullmatch(r"0x[0-9a-f]+", text) else None
