#!/usr/bin/env python3
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts hardware on a simulated node.

    hardware.py DIR --node NAME [BOARD...]

makes DIR/pci, what the node shows as /sys/bus/pci/devices, and DIR/boards, one file for each GPU: its profile
(boards/BOARD.board), its address, and a UUID and serial number that follow from the node's name, the slot and the
profile. Running it again replaces the hardware; a name "-" leaves a slot empty, so that the boards behind it keep
their addresses. BOARD@SLOT is the board that would be in that slot: "h100-80@1 h100-80@0" swaps two that were there.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import uuid
from pathlib import Path

PROFILES = Path(__file__).parent / "boards"
FIRST_BUS = 0x1A

# What else a server has: host bridge, SATA controller, the graphics of the management controller, network adapter.
FUNCTION = ("vendor", "device", "class", "subsystem_vendor", "subsystem_device")
OTHERS = {
    "0000:00:00.0": (0x8086, 0x09A2, 0x088000, 0x8086, 0x0000),
    "0000:00:17.0": (0x8086, 0xA182, 0x010601, 0x15D9, 0x1B3A),
    "0000:02:00.0": (0x1A03, 0x2000, 0x030000, 0x15D9, 0x1B3A),
    "0000:05:00.0": (0x15B3, 0x101D, 0x020000, 0x15B3, 0x0040),
}


def profile(name: str) -> list[tuple[str, str]]:
    """The lines of a profile; ends the program when there is none."""
    path = PROFILES / f"{name}.board"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in PROFILES.glob("*.board")))
        sys.exit(f"hardware.py: no board is called {name}; there are {known}")
    lines = (line.split("#")[0] for line in path.read_text().splitlines())
    return [(key.strip(), value.strip()) for key, _, value in (line.partition("=") for line in lines if "=" in line)]


def board(node: str, slot: int, name: str) -> list[tuple[str, str]]:
    """A board in its slot. Addresses are two buses apart, as behind bridges."""
    name, _, made_for = name.partition("@")
    identity = hashlib.sha256(f"{node}/{made_for or slot}/{name}".encode()).digest()
    return [
        ("address", f"0000:{FIRST_BUS + 2 * slot:02x}:00.0"),
        ("uuid", f"GPU-{uuid.UUID(bytes=identity[:16], version=4)}"),
        ("serial", f"165{int.from_bytes(identity[16:20], 'big'):010d}"),
        ("numa_node", "0"),
        *profile(name),
    ]


def function(data: dict[str, str]) -> dict[str, int]:
    """What sysfs says of a board. The class has the programming interface as its last byte there."""
    return {
        "vendor": 0x10DE,
        "device": int(data["device"], 0),
        "class": int(data["class"], 0) << 8,
        "subsystem_vendor": int(data["subsystem_vendor"], 0),
        "subsystem_device": int(data["subsystem_device"], 0),
    }


def write_function(directory: Path, values: dict[str, int]) -> None:
    directory.mkdir()
    for name, value in values.items():
        (directory / name).write_text(f"0x{value:0{6 if name == 'class' else 4}x}\n")
    (directory / "numa_node").write_text("0\n")
    (directory / "enable").write_text("1\n")
    modalias = "pci:v{vendor:08X}d{device:08X}sv{subsystem_vendor:08X}sd{subsystem_device:08X}".format(**values)
    kind = values["class"]
    (directory / "modalias").write_text(f"{modalias}bc{kind >> 16:02X}sc{kind >> 8 & 0xFF:02X}i{kind & 0xFF:02X}\n")


def empty(directory: Path) -> None:
    """Empties a directory that may be a mount point of a running node, whose inode must stay."""
    directory.mkdir(parents=True, exist_ok=True)
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description="Puts hardware on a simulated node.")
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--node", required=True, help="the node's name, from which UUIDs and serial numbers follow")
    parser.add_argument("boards", nargs="*", metavar="BOARD", help="a profile in boards/, or - for an empty slot")
    arguments = parser.parse_intermixed_args()

    boards = [board(arguments.node, slot, name) for slot, name in enumerate(arguments.boards) if name != "-"]
    pci, files = arguments.directory / "pci", arguments.directory / "boards"
    empty(pci)
    empty(files)
    for address, values in OTHERS.items():
        write_function(pci / address, dict(zip(FUNCTION, values)))
    for lines in boards:
        data = dict(lines)
        write_function(pci / data["address"], function(data))
        (files / data["address"]).write_text("".join(f"{key} = {value}\n" for key, value in lines))


if __name__ == "__main__":
    main()
