# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import collections

import pytest
import yaml

from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.model import slices_of
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.profiles import known_offer
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.wanted import Wish, instances_of, wishes
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._mig import boards
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._mig.fake_targets import T4, address, target


def hopper(*gigabytes):
    return boards.seven_slices(gigabytes, gigabytes, boards.HOPPER)


# Device id, and what the board offers; of the later ones only names and geometry matter here.
A100_40GB = (0x20B0, boards.A100_40)
A100_80GB = (0x20B2, boards.A100_80)
A30 = (0x20B7, boards.A30)
H100_80GB = (0x2330, boards.H100_80)
H100_NVL = (0x2321, known_offer(0x2321))
GH200_96GB = (0x2342, known_offer(0x2342))
H20 = (0x2329, known_offer(0x2329))
H200 = (0x2335, boards.H200)
GH200_144GB = (0x2348, hopper(18, 36, 36, 72, 72, 144))
B200 = (0x2901, boards.B200)
GB200 = (0x2941, hopper(23, 47, 47, 93, 93, 186))
GB200_189 = (0x2941, hopper(24, 47, 47, 95, 95, 189))
B300 = (0x3182, hopper(34, 67, 67, 135, 135, 269))
GB300 = (0x31C2, hopper(35, 70, 70, 139, 139, 278))
RTX_PRO_6000 = (0x2BB5, boards.RTX_PRO_6000)

# From NVIDIA's default configuration (gpu-operator v26.7.0, default-mig-parted-config), shortened: entries for any GPU.
UNIFORM = """
all-1g.5gb: {1g.5gb: 7}
all-1g.5gb.me: {1g.5gb+me: 1}
all-2g.10gb: {2g.10gb: 3}
all-3g.20gb: {3g.20gb: 2}
all-4g.20gb: {4g.20gb: 1}
all-7g.40gb: {7g.40gb: 1}
all-1g.10gb.me: {1g.10gb+me: 1}
all-1g.20gb: {1g.20gb: 4}
all-2g.20gb: {2g.20gb: 3}
all-3g.40gb: {3g.40gb: 2}
all-4g.40gb: {4g.40gb: 1}
all-7g.80gb: {7g.80gb: 1}
all-1g.6gb: {1g.6gb: 4}
all-1g.6gb.me: {1g.6gb+me: 1}
all-2g.12gb: {2g.12gb: 2}
all-2g.12gb.me: {2g.12gb+me: 1}
all-4g.24gb: {4g.24gb: 1}
all-1g.12gb: {1g.12gb: 7}
all-1g.12gb.me: {1g.12gb+me: 1}
all-1g.24gb: {1g.24gb: 4}
all-2g.24gb: {2g.24gb: 3}
all-3g.47gb: {3g.47gb: 2}
all-4g.47gb: {4g.47gb: 1}
all-7g.94gb: {7g.94gb: 1}
all-3g.48gb: {3g.48gb: 2}
all-4g.48gb: {4g.48gb: 1}
all-7g.96gb: {7g.96gb: 1}
all-1g.18gb: {1g.18gb: 7}
all-1g.18gb.me: {1g.18gb+me: 1}
all-2g.35gb: {2g.35gb: 3}
all-3g.71gb: {3g.71gb: 2}
all-4g.71gb: {4g.71gb: 1}
all-7g.141gb: {7g.141gb: 1}
all-1g.36gb: {1g.36gb: 4}
all-2g.36gb: {2g.36gb: 3}
all-3g.72gb: {3g.72gb: 2}
all-4g.72gb: {4g.72gb: 1}
all-7g.144gb: {7g.144gb: 1}
all-1g.23gb: {1g.23gb: 7}
all-1g.23gb.me: {1g.23gb+me: 1}
all-1g.45gb: {1g.45gb: 4}
all-2g.45gb: {2g.45gb: 3}
all-3g.90gb: {3g.90gb: 2}
all-4g.90gb: {4g.90gb: 1}
all-7g.180gb: {7g.180gb: 1}
all-1g.47gb: {1g.47gb: 4}
all-2g.47gb: {2g.47gb: 3}
all-3g.93gb: {3g.93gb: 2}
all-3g.95gb: {3g.95gb: 2}
all-4g.93gb: {4g.93gb: 1}
all-4g.95gb: {4g.95gb: 1}
all-7g.186gb: {7g.186gb: 1}
all-7g.189gb: {7g.189gb: 1}
all-1g.34gb: {1g.34gb: 7}
all-1g.34gb.me: {1g.34gb+me: 1}
all-1g.67gb: {1g.67gb: 4}
all-2g.67gb: {2g.67gb: 3}
all-3g.135gb: {3g.135gb: 2}
all-4g.135gb: {4g.135gb: 1}
all-7g.269gb: {7g.269gb: 1}
all-1g.35gb.me: {1g.35gb+me: 1}
all-1g.70gb: {1g.70gb: 4}
all-2g.70gb: {2g.70gb: 3}
all-3g.139gb: {3g.139gb: 2}
all-4g.139gb: {4g.139gb: 1}
all-7g.278gb: {7g.278gb: 1}
all-1g.24gb.gfx: {1g.24gb+gfx: 4}
all-1g.24gb.me: {1g.24gb+me: 1}
all-1g.24gb.me.all: {1g.24gb+me.all: 1}
all-1g.24gb-me: {1g.24gb-me: 4}
all-2g.48gb: {2g.48gb: 2}
all-2g.48gb.gfx: {2g.48gb+gfx: 2}
all-2g.48gb.me.all: {2g.48gb+me.all: 1}
all-2g.48gb-me: {2g.48gb-me: 2}
all-4g.96gb: {4g.96gb: 1}
all-4g.96gb.gfx: {4g.96gb+gfx: 1}
"""

# And entries as they stand there: by device filter, in both forms.
FILTERED = """
all-disabled:
  - devices: all
    mig-enabled: false

all-enabled:
  - devices: all
    mig-enabled: true
    mig-devices: {}

all-1g.10gb:
  # H100-80GB, H800-80GB, A100-80GB, A800-80GB
  - device-filter: ["0x233010DE", "0x233110DE", "0x232210DE", "0x20B210DE", "0x20B510DE", "0x20F310DE", "0x20F510DE"]
    devices: all
    mig-enabled: true
    mig-devices:
      "1g.10gb": 7
  # A100-40GB, A800-40GB
  - device-filter: ["0x20B010DE", "0x20B110DE", "0x20F110DE", "0x20F610DE"]
    devices: all
    mig-enabled: true
    mig-devices:
      "1g.10gb": 4

all-1g.35gb:
  # H200-141GB
  - device-filter: ["0x233510DE"]
    devices: all
    mig-enabled: true
    mig-devices:
      "1g.35gb": 4
  # GB300
  - device-filter: ["0x31C210DE"]
    devices: all
    mig-enabled: true
    mig-devices:
      "1g.35gb": 7

all-balanced:
  - {device-filter: ["0x294110DE"], devices: all, mig-enabled: true, mig-devices: {1g.23gb: 2, 2g.47gb: 1, 3g.93gb: 1}}
  - {device-filter: ["0x31C210DE"], devices: all, mig-enabled: true, mig-devices: {1g.35gb: 2, 2g.70gb: 1, 3g.139gb: 1}}
  - {device-filter: ["0x2BB510DE"], devices: all, mig-enabled: true, mig-devices: {1g.24gb: 2, 2g.48gb: 1}}
  - {device-filter: ["0x290110DE"], devices: all, mig-enabled: true, mig-devices: {1g.23gb: 2, 2g.45gb: 1, 3g.90gb: 1}}
  - {device-filter: ["0x318210DE"], devices: all, mig-enabled: true, mig-devices: {1g.34gb: 2, 2g.67gb: 1, 3g.135gb: 1}}
  - {device-filter: ["0x234810DE"], devices: all, mig-enabled: true, mig-devices: {1g.18gb: 2, 2g.36gb: 1, 3g.72gb: 1}}
  - {device-filter: ["0x233510DE", "0x233B10DE"], devices: all, mig-enabled: true,
     mig-devices: {1g.18gb: 2, 2g.35gb: 1, 3g.71gb: 1}}
  - {device-filter: ["0x232110DE", "0x233A10DE"], devices: all, mig-enabled: true,
     mig-devices: {1g.12gb: 2, 2g.24gb: 1, 3g.47gb: 1}}
  - {device-filter: ["0x233010DE", "0x233110DE", "0x232210DE", "0x20B210DE", "0x20B510DE", "0x20F310DE", "0x20F510DE"],
     devices: all, mig-enabled: true, mig-devices: {1g.10gb: 2, 2g.20gb: 1, 3g.40gb: 1}}
  - {device-filter: ["0x20B010DE", "0x20B110DE", "0x20F110DE", "0x20F610DE"], devices: all, mig-enabled: true,
     mig-devices: {1g.5gb: 2, 2g.10gb: 1, 3g.20gb: 1}}
  - {device-filter: "0x20B710DE", devices: all, mig-enabled: true, mig-devices: {1g.6gb: 2, 2g.12gb: 1}}
  - {device-filter: ["0x234210DE", "0x233D10DE", "0x20B610DE", "0x232910DE"], devices: all, mig-enabled: true,
     mig-devices: {1g.12gb: 2, 2g.24gb: 1, 3g.48gb: 1}}
"""
DEFAULT = {
    "version": "v1",
    "mig-configs": {
        **{
            name: [{"devices": "all", "mig-enabled": True, "mig-devices": devices}]
            for name, devices in yaml.safe_load(UNIFORM).items()
        },
        **yaml.safe_load(FILTERED),
    },
}


def on_board(selected, board):
    """The instances, by profile, that the default configuration wants on a host with that board and a T4."""
    device, offered = board
    found = wishes(None, DEFAULT, selected, "keep", [target(0, device=device), target(1, **T4)])
    assert address(1) not in found.by_address
    instances = instances_of(found.by_address[address(0)], offered)
    assert all(instance.compute == (slices_of(instance.profile),) for instance in instances)
    return dict(collections.Counter(instance.profile for instance in instances))


@pytest.mark.parametrize(
    "board, names",
    [
        (A100_40GB, "1g.5gb 1g.5gb.me 2g.10gb 3g.20gb 4g.20gb 7g.40gb"),
        (A100_80GB, "1g.10gb.me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
        (H100_80GB, "1g.10gb.me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
        (A30, "1g.6gb 1g.6gb.me 2g.12gb 2g.12gb.me 4g.24gb"),
        (H100_NVL, "1g.12gb 1g.12gb.me 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb"),
        (GH200_96GB, "1g.12gb 1g.12gb.me 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb"),
        (H200, "1g.18gb 1g.18gb.me 2g.35gb 3g.71gb 4g.71gb 7g.141gb"),
        (GH200_144GB, "1g.18gb 1g.18gb.me 1g.36gb 2g.36gb 3g.72gb 4g.72gb 7g.144gb"),
        (B200, "1g.23gb 1g.23gb.me 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb"),
        (GB200, "1g.23gb 1g.23gb.me 1g.47gb 2g.47gb 3g.93gb 4g.93gb 7g.186gb"),
        (GB200_189, "3g.95gb 4g.95gb 7g.189gb"),
        (B300, "1g.34gb 1g.34gb.me 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb"),
        (GB300, "1g.35gb.me 1g.70gb 2g.70gb 3g.139gb 4g.139gb 7g.278gb"),
        (RTX_PRO_6000, "1g.24gb 1g.24gb.gfx 1g.24gb.me 1g.24gb.me.all 1g.24gb-me"),
        (RTX_PRO_6000, "2g.48gb 2g.48gb.gfx 2g.48gb.me.all 2g.48gb-me 4g.96gb 4g.96gb.gfx"),
    ],
)
def test_nvidias_uniform_configurations(board, names):
    for name in names.split():
        assert on_board(f"all-{name}", board) == DEFAULT["mig-configs"][f"all-{name}"][0]["mig-devices"]


@pytest.mark.parametrize(
    "selected, board, instances",
    [
        ("all-1g.10gb", A100_80GB, {"1g.10gb": 7}),
        ("all-1g.10gb", H100_80GB, {"1g.10gb": 7}),
        ("all-1g.10gb", A100_40GB, {"1g.10gb": 4}),
        ("all-1g.35gb", H200, {"1g.35gb": 4}),
        ("all-1g.35gb", GB300, {"1g.35gb": 7}),
        ("all-balanced", A100_40GB, {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}),
        ("all-balanced", A100_80GB, {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}),
        ("all-balanced", H100_80GB, {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}),
        ("all-balanced", A30, {"1g.6gb": 2, "2g.12gb": 1}),
        ("all-balanced", H100_NVL, {"1g.12gb": 2, "2g.24gb": 1, "3g.47gb": 1}),
        ("all-balanced", GH200_96GB, {"1g.12gb": 2, "2g.24gb": 1, "3g.48gb": 1}),
        ("all-balanced", H20, {"1g.12gb": 2, "2g.24gb": 1, "3g.48gb": 1}),
        ("all-balanced", H200, {"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1}),
        ("all-balanced", GH200_144GB, {"1g.18gb": 2, "2g.36gb": 1, "3g.72gb": 1}),
        ("all-balanced", B200, {"1g.23gb": 2, "2g.45gb": 1, "3g.90gb": 1}),
        ("all-balanced", GB200, {"1g.23gb": 2, "2g.47gb": 1, "3g.93gb": 1}),
        ("all-balanced", B300, {"1g.34gb": 2, "2g.67gb": 1, "3g.135gb": 1}),
        ("all-balanced", GB300, {"1g.35gb": 2, "2g.70gb": 1, "3g.139gb": 1}),
        ("all-balanced", RTX_PRO_6000, {"1g.24gb": 2, "2g.48gb": 1}),
        ("all-enabled", A30, {}),
    ],
)
def test_nvidias_filtered_configurations(selected, board, instances):
    assert on_board(selected, board) == instances


def test_all_disabled():
    found = wishes(None, DEFAULT, "all-disabled", "keep", [target(0), target(1, **T4)])
    assert found.by_address == {address(0): Wish("disabled")}
    assert found.skipped == {address(1): "this board has no MIG"}
