# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the simulated boards offer, against NVIDIA's tables."""

from __future__ import annotations

from typing import Any

import pytest
from simulated_node import Node

pytest.importorskip("pynvml")

EIGHTHS = [0, 1, 2, 3, 4, 5, 6]

# Of the boards with 7 compute and 8 memory slices all agree on: number, id, slices, limit, starts, size.
SEVEN_SLICES = [
    (0, 19, 1, 7, EIGHTHS, 1),
    (7, 20, 1, 1, EIGHTHS, 1),
    (9, 15, 1, 4, [0, 2, 4, 6], 2),
    (1, 14, 2, 3, [0, 2, 4], 2),
    (2, 9, 3, 2, [0, 4], 4),
    (3, 5, 4, 1, [0], 4),
    (4, 0, 7, 1, [0], 8),
]
A30 = [
    (0, 14, 1, 4, [0, 1, 2, 3], 1),
    (7, 21, 1, 1, [0, 1, 2, 3], 1),
    (1, 5, 2, 2, [0, 2], 2),
    (8, 6, 2, 1, [0, 2], 2),
    (3, 0, 4, 1, [0], 4),
]
RTX_PRO_6000 = [
    (0, 14, 1, 4, [0, 1, 2, 3], 1),
    (7, 21, 1, 1, [0, 1, 2, 3], 1),
    (10, 47, 1, 4, [0, 1, 2, 3], 1),
    (15, 65, 1, 1, [0, 1, 2, 3], 1),
    (13, 67, 1, 4, [0, 1, 2, 3], 1),
    (1, 5, 2, 2, [0, 2], 2),
    (11, 35, 2, 2, [0, 2], 2),
    (16, 64, 2, 1, [0, 2], 2),
    (14, 66, 2, 2, [0, 2], 2),
    (3, 0, 4, 1, [0], 4),
    (12, 32, 4, 1, [0], 4),
]
BOARDS = {
    "a100-40": (0x20B0, SEVEN_SLICES, "1g.5gb 1g.5gb+me 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb"),
    "a100-80": (0x20B2, SEVEN_SLICES, "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
    "h100-80": (0x2330, SEVEN_SLICES, "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
    "h100-80-79gb": (0x2330, SEVEN_SLICES, "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.39gb 4g.39gb 7g.79gb"),
    "h200": (0x2335, SEVEN_SLICES, "1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb"),
    "b200": (0x2901, SEVEN_SLICES, "1g.23gb 1g.23gb+me 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb"),
    "a30": (0x20B7, A30, "1g.6gb 1g.6gb+me 2g.12gb 2g.12gb+me 4g.24gb"),
    "rtx-pro-6000": (
        0x2BB5,
        RTX_PRO_6000,
        "1g.24gb 1g.24gb+me 1g.24gb+gfx 1g.24gb+me.all 1g.24gb-me"
        " 2g.48gb 2g.48gb+gfx 2g.48gb+me.all 2g.48gb-me 4g.96gb 4g.96gb+gfx",
    ),
}

# Memory in MB, multiprocessors, engines (decode, encode, JPEG, OFA), as far as NVIDIA's tables or listings say.
SIZES = {
    "a100-40": {
        "1g.5gb": (4864, 14, 0, 0, 0, 0),
        "1g.5gb+me": (4864, 14, 1, 0, 1, 1),
        "1g.10gb": (9856, 14, 1, 0, 0, 0),
        "2g.10gb": (9856, 28, 1, 0, 0, 0),
        "3g.20gb": (19968, 42, 2, 0, 0, 0),
        "4g.20gb": (19968, 56, 2, 0, 0, 0),
        "7g.40gb": (40192, 98, 5, 0, 1, 1),
    },
    "a100-80": {
        "1g.10gb": (9856, 14, 0, 0, 0, 0),
        "3g.40gb": (40192, 42, 2, 0, 0, 0),
        "7g.80gb": (80384, 98, 5, 0, 1, 1),
    },
    "h100-80": {
        "1g.10gb": (9856, 16, 1, 0, 1, 0),
        "1g.20gb": (19968, 26, 1, 0, 1, 0),
        "7g.80gb": (80384, 132, 7, 0, 7, 1),
    },
    "h200": {"1g.18gb": (16384, 16, 1, 0, 1, 0), "7g.141gb": (143360, 132, 7, 0, 7, 1)},
    "a30": {"1g.6gb": (5952, 14, 0, 0, 0, 0), "4g.24gb": (24000, 56, 4, 0, 1, 1)},
    "rtx-pro-6000": {
        "1g.24gb": (24192, 46, 1, 1, 1, 0),
        "1g.24gb+me": (24192, 46, 1, 1, 1, 1),
        "1g.24gb+me.all": (24192, 46, 4, 4, 4, 1),
        "1g.24gb-me": (24192, 46, 0, 0, 0, 0),
        "2g.48gb": (48512, 94, 2, 2, 2, 0),
        "4g.96gb+gfx": (97280, 188, 4, 4, 4, 1),
    },
}


def name_of(memory_mb: int, total_mib: int) -> int:
    """The GB of a profile's name, by the formula of NVIDIA's own tools: eighths of the board, rounded up."""
    eighths = -(-memory_mb * 8 // total_mib)
    return int(eighths / 8 * -(-total_mib // 1024) + 0.5)


def offered(node: Node) -> Any:
    return node.nvml(
        "[[number, i.id, i.sliceCount, i.instanceCount, [start for start, _ in placements(0, i.id)],"
        " placements(0, i.id)[0][1], i.name] for number, i in gpu_profiles(0)]"
    )


@pytest.mark.parametrize("board", BOARDS)
def test_profiles_of(node: Node, board: str) -> None:
    """All of them, with MIG off and on."""
    device, geometry, names = BOARDS[board]
    node.plug(board)
    node.load()
    assert node.nvml("nvmlDeviceGetPciInfo(gpu(0)).pciDeviceId") == device << 16 | 0x10DE
    wanted = sorted([*row, f"MIG {name}"] for row, name in zip(geometry, names.split()))
    assert offered(node) == wanted
    assert node.nvml("set_mode(0, 1)") == 0
    assert offered(node) == wanted

    sizes = {
        name.removeprefix("MIG "): tuple(values)
        for name, *values in node.nvml(
            "[[i.name, i.memorySizeMB, i.multiprocessorCount, i.decoderCount, i.encoderCount, i.jpegCount, i.ofaCount]"
            " for _, i in gpu_profiles(0)]"
        )
    }
    assert {name: sizes[name] for name in SIZES.get(board, {})} == SIZES.get(board, {})
    total = node.nvml("nvmlDeviceGetMemoryInfo(gpu(0)).total >> 20")
    if board != "h100-80-79gb":
        for name, values in sizes.items():
            assert f".{name_of(values[0], total)}gb" in name


def test_board_without_mig(node: Node) -> None:
    node.plug("t4")
    node.load()
    assert node.nvml("nvmlDeviceGetMigMode(gpu(0))") == 3
    assert node.nvml("nvmlDeviceSetMigMode(gpu(0), 1)") == 3
    assert node.nvml("nvmlDeviceGetGpuInstanceProfileInfo(gpu(0), 0)") == 3
    assert node.nvml("placements(0, 19)") == 3
    assert node.nvml("nvmlDeviceCreateGpuInstance(gpu(0), 19)") == 3
    assert node.nvml("nvmlDeviceGetMaxMigDeviceCount(gpu(0))") == 0


def test_profiles_by_id_and_in_other_structures(node: Node) -> None:
    """The second version is what pynvml asks for; the third tells which profiles can do graphics."""
    node.plug("rtx-pro-6000")
    node.load()
    assert node.nvml("nvmlDeviceGetGpuInstanceProfileInfoById(gpu(0), 47).name") == "MIG 1g.24gb+gfx"
    assert node.nvml("nvmlDeviceGetGpuInstanceProfileInfoById(gpu(0), 19).name") == 2
    first = "(lambda i: [i.id, i.sliceCount, i.instanceCount, i.multiprocessorCount, i.memorySizeMB])"
    assert node.nvml(f"{first}(nvmlDeviceGetGpuInstanceProfileInfo(gpu(0), 10, version=1))") == [47, 1, 4, 46, 24192]
    third = "[[i.id, i.memorySizeMB, i.name.decode(), i.capabilities] for i in (profile_v3(0, 0), profile_v3(0, 10))]"
    assert node.nvml(third) == [[14, 24192, "MIG 1g.24gb", 0], [47, 24192, "MIG 1g.24gb+gfx", 2]]
    assert node.nvml("profile_v3(0, 0, version=4)") == 2


def test_profile_numbers_that_do_not_exist(node: Node) -> None:
    """A number of other boards is not supported; one of no board ends an enumeration."""
    node.load()
    assert node.nvml("nvmlDeviceGetGpuInstanceProfileInfo(gpu(0), NVML_GPU_INSTANCE_PROFILE_1_SLICE_GFX)") == 3
    assert node.nvml("nvmlDeviceGetGpuInstanceProfileInfo(gpu(0), NVML_GPU_INSTANCE_PROFILE_COUNT)") == 2


# Slices of the compute instances that a GPU instance can have, each with its places.
@pytest.mark.parametrize(
    ("profile", "offered"),
    [
        ("1g.10gb", {"1g.10gb": [0]}),
        ("1g.20gb", {"1g.20gb": [0]}),
        ("2g.20gb", {"1c.2g.20gb": [0, 1], "2g.20gb": [0]}),
        ("3g.40gb", {"1c.3g.40gb": [0, 1, 2], "2c.3g.40gb": [0], "3g.40gb": [0]}),
        ("4g.40gb", {"1c.4g.40gb": [0, 1, 2, 3], "2c.4g.40gb": [0, 2], "4g.40gb": [0]}),
        (
            "7g.80gb",
            {
                "1c.7g.80gb": EIGHTHS,
                "2c.7g.80gb": [0, 2, 4],
                "3c.7g.80gb": [0, 4],
                "4c.7g.80gb": [0],
                "7g.80gb": [0],
            },
        ),
    ],
)
def test_compute_instance_profiles_of(node: Node, profile: str, offered: dict[str, list[int]]) -> None:
    node.plug("h100-80")
    node.load()
    assert node.nvml("set_mode(0, 1)") == 0
    found = node.nvml(
        f"[[i.name, i.instanceCount, [start for start, _ in compute_placements(gi, i.id)]]"
        f" for gi in [create_gpu_instance(0, {profile!r})] for i in compute_profiles(gi)]"
    )
    assert found == [[f"MIG {name}", len(starts), starts] for name, starts in offered.items()]
