# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""What a PCI device id of NVIDIA says about the board, without a driver. An unknown id has no answers, no guesses."""

from __future__ import annotations

import typing as t


class Board(t.NamedTuple):
    """Facts about one kind of board; None means that nobody has told us."""

    name: str | None = None
    generation: str | None = None
    needs_open_modules: bool | None = None
    supports_open_modules: bool | None = None
    mig_capable: bool | None = None


class Chip(t.NamedTuple):
    """NVIDIA gives each chip blocks of device ids; all boards of a chip share these properties."""

    first: int
    last: int
    name: str
    generation: str
    mig_capable: bool | None


# Blocks of ids: The PCI ID Repository (pci-ids.ucw.cz, 2026-08-22), rounded to the blocks in which ids were given out.
# MIG: MIG User Guide, "Supported GPUs" (release 620); None where only some boards of the chip have it.
CHIPS = (
    Chip(0x0FC0, 0x0FFF, "GK107", "kepler", False),
    Chip(0x1001, 0x103F, "GK110", "kepler", False),
    Chip(0x1180, 0x11BF, "GK104", "kepler", False),
    Chip(0x11C0, 0x11FF, "GK106", "kepler", False),
    Chip(0x1280, 0x12BF, "GK208", "kepler", False),
    Chip(0x1340, 0x137F, "GM108", "maxwell", False),
    Chip(0x1380, 0x13BD, "GM107", "maxwell", False),
    Chip(0x13BE, 0x13FF, "GM204", "maxwell", False),
    Chip(0x1400, 0x143F, "GM206", "maxwell", False),
    Chip(0x15C0, 0x15FF, "GP100", "pascal", False),
    Chip(0x1600, 0x167F, "GM204", "maxwell", False),
    Chip(0x1725, 0x172F, "GP100", "pascal", False),
    Chip(0x1740, 0x177F, "GM108", "maxwell", False),
    Chip(0x1780, 0x17BF, "GM107", "maxwell", False),
    Chip(0x17C0, 0x17FF, "GM200", "maxwell", False),
    Chip(0x1B00, 0x1B7F, "GP102", "pascal", False),
    Chip(0x1B80, 0x1BFF, "GP104", "pascal", False),
    Chip(0x1C00, 0x1C7F, "GP106", "pascal", False),
    Chip(0x1C80, 0x1CFF, "GP107", "pascal", False),
    Chip(0x1D00, 0x1D7F, "GP108", "pascal", False),
    Chip(0x1D80, 0x1DFF, "GV100", "volta", False),
    Chip(0x1E00, 0x1E7F, "TU102", "turing", False),
    Chip(0x1E80, 0x1EFF, "TU104", "turing", False),
    Chip(0x1F00, 0x1F7F, "TU106", "turing", False),
    Chip(0x1F80, 0x1FFF, "TU117", "turing", False),
    Chip(0x2080, 0x20FF, "GA100", "ampere", True),
    Chip(0x2180, 0x21FF, "TU116", "turing", False),
    Chip(0x2200, 0x227F, "GA102", "ampere", False),
    Chip(0x2300, 0x23FF, "GH100", "hopper", True),
    Chip(0x2400, 0x247F, "GA103", "ampere", False),
    Chip(0x2480, 0x24FF, "GA104", "ampere", False),
    Chip(0x2500, 0x257F, "GA106", "ampere", False),
    Chip(0x2580, 0x25FF, "GA107", "ampere", False),
    Chip(0x2680, 0x26FF, "AD102", "ada", False),
    Chip(0x2700, 0x277F, "AD103", "ada", False),
    Chip(0x2780, 0x27FF, "AD104", "ada", False),
    Chip(0x2800, 0x287F, "AD106", "ada", False),
    Chip(0x2880, 0x28FF, "AD107", "ada", False),
    Chip(0x2900, 0x297F, "GB100", "blackwell", True),
    Chip(0x2980, 0x29FF, "GB102", "blackwell", True),
    Chip(0x2B00, 0x2B00, "GB10B", "blackwell", None),
    Chip(0x2B80, 0x2BFF, "GB202", "blackwell", None),
    Chip(0x2C00, 0x2C7F, "GB203", "blackwell", None),
    Chip(0x2D00, 0x2D7F, "GB206", "blackwell", False),
    Chip(0x2D80, 0x2DFF, "GB207", "blackwell", False),
    Chip(0x2E00, 0x2E7F, "GB20B", "blackwell", False),
    Chip(0x2F00, 0x2F7F, "GB205", "blackwell", False),
    Chip(0x3000, 0x307F, "GR100", "rubin", None),
    Chip(0x3180, 0x31FF, "GB110", "blackwell", True),
    Chip(0x3200, 0x327F, "GB112", "blackwell", True),
)

# Boards of data centres and workstations, by the names that The PCI ID Repository gives them.
NAMES = {
    0x102D: "Tesla K80",
    0x13BD: "Tesla M10",
    0x13F2: "Tesla M60",
    0x15F7: "Tesla P100 PCIe 12GB",
    0x15F8: "Tesla P100 PCIe 16GB",
    0x15F9: "Tesla P100 SXM2 16GB",
    0x17FD: "Tesla M40",
    0x1B38: "Tesla P40",
    0x1BB3: "Tesla P4",
    0x1DB1: "Tesla V100 SXM2 16GB",
    0x1DB4: "Tesla V100 PCIe 16GB",
    0x1DB5: "Tesla V100 SXM2 32GB",
    0x1DB6: "Tesla V100 PCIe 32GB",
    0x1DB8: "Tesla V100 SXM3 32GB",
    0x1DF6: "Tesla V100S PCIe 32GB",
    0x1E30: "Quadro RTX 6000/8000",
    0x1EB8: "Tesla T4",
    0x20B0: "A100 SXM4 40GB",
    0x20B1: "A100 PCIe 40GB",
    0x20B2: "A100 SXM4 80GB",
    0x20B3: "A100 SXM 64GB",
    0x20B5: "A100 PCIe 80GB",
    0x20B7: "A30 PCIe",
    0x20B8: "A100X",
    0x20B9: "A30X",
    0x20BD: "A800 SXM4 40GB",
    0x20F1: "A100 PCIe 40GB",
    0x20F3: "A800 SXM4 80GB",
    0x20F5: "A800 80GB PCIe",
    0x20F6: "A800 40GB PCIe",
    0x2230: "RTX A6000",
    0x2231: "RTX A5000",
    0x2235: "A40",
    0x2236: "A10",
    0x2237: "A10G",
    0x2313: "H100 CNX",
    0x2321: "H100 NVL 94GB",
    0x2322: "H800 PCIe",
    0x2324: "H800",
    0x2329: "H20",
    0x2330: "H100 SXM5 80GB",
    0x2331: "H100 PCIe",
    0x2335: "H200 SXM 141GB",
    0x2337: "H100 SXM5 64GB",
    0x2338: "H100 SXM5 96GB",
    0x2339: "H100 SXM5 94GB",
    0x233A: "H800 NVL 94GB",
    0x233B: "H200 NVL",
    0x233D: "H100 96GB",
    0x2342: "GH200 120GB / 480GB",
    0x2348: "GH200 144GB HBM3e",
    0x25B6: "A2 / A16",
    0x26B1: "RTX 6000 Ada Generation",
    0x26B2: "RTX 5000 Ada Generation",
    0x26B5: "L40",
    0x26B9: "L40S",
    0x26BA: "L20",
    0x27B6: "L2",
    0x27B8: "L4",
    0x2901: "B200",
    0x2941: "GB200",
    0x29BC: "B100",
    0x2BB1: "RTX PRO 6000 Blackwell Workstation Edition",
    0x2BB3: "RTX PRO 5000 Blackwell",
    0x2BB4: "RTX PRO 6000 Blackwell Max-Q Workstation Edition",
    0x2BB5: "RTX PRO 6000 Blackwell Server Edition",
    0x2C31: "RTX PRO 4500 Blackwell",
    0x2E12: "GB10",
    0x3182: "B300 SXM6",
    0x31C2: "GB300",
    0x31C3: "GB300",
}

# MIG where it differs from the chip's. Crypto-mining boards of GA100 have none; of GB202 and GB203 only the RTX PRO
# boards named in the MIG User Guide have it, GeForce boards have none.
MIG_CAPABLE = {
    0x2082: False,
    0x20C2: False,
    0x2B85: False,
    0x2B87: False,
    0x2B8C: False,
    0x2BB1: True,
    0x2BB3: True,
    0x2BB4: True,
    0x2BB5: True,
    0x2C02: False,
    0x2C05: False,
    0x2C31: True,
}

# Driver installation guide, "Kernel modules": before Turing there is no GSP for the open modules to talk to; Grace
# Hopper and everything since Blackwell runs with the open modules only.
WITHOUT_OPEN_MODULES = frozenset({"kepler", "maxwell", "pascal", "volta"})
ONLY_OPEN_MODULES = frozenset({"blackwell", "rubin"})
GRACE_HOPPER = frozenset({0x2342, 0x2343, 0x2345, 0x2348})


def board(device_id: str) -> Board:
    """What is known about a PCI device id of NVIDIA, four hexadecimal digits such as `2330`."""
    try:
        number = int(device_id, 16)
    except ValueError:
        return Board()
    for chip in CHIPS:
        if chip.first <= number <= chip.last:
            return Board(
                name=f"{chip.name} [{NAMES[number]}]" if number in NAMES else chip.name,
                generation=chip.generation,
                needs_open_modules=chip.generation in ONLY_OPEN_MODULES or number in GRACE_HOPPER,
                supports_open_modules=chip.generation not in WITHOUT_OPEN_MODULES,
                mig_capable=MIG_CAPABLE.get(number, chip.mig_capable),
            )
    return Board()
