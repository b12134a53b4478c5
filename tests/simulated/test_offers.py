# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What GPUs offer, as NVML is asked here, against the tables that were written by hand."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from host import Host

Make = Callable[..., Host]
COLLECTION = "ansible_collections.kubegpu.nvidia"
BOARDS = {
    "a100-40": "A100_40",
    "a100-80": "A100_80",
    "a30": "A30",
    "b200": "B200",
    "h100-80": "H100_80",
    "h200": "H200",
    "rtx-pro-6000": "RTX_PRO_6000",
}

# Which profiles differ, and how: memory in MB is not compared, because only the name is made of it.
COMPARE = f"""
import dataclasses, json, sys
from {COLLECTION}.plugins.module_utils import _nvml, _nvml_mig
from {COLLECTION}.tests.unit.plugins.module_utils._mig import boards
with _nvml.session(_nvml.load_binding()) as session:
    (gpu,) = session.gpus()
    offered = _nvml_mig.MigGpu(session, gpu.uuid).offered()
def table(profiles):
    return {{each.name: str(dataclasses.replace(each, memory_mb=0)) for each in profiles}}
found, wanted = table(offered), table(getattr(boards, sys.argv[1]))
pairs = {{name: [found.get(name), wanted.get(name)] for name in {{*found, *wanted}}}}
print(json.dumps({{name: pair for name, pair in pairs.items() if pair[0] != pair[1]}}))
"""


def differences(node: Host, table: str) -> Any:
    done = node.run(sys.executable, "-c", COMPARE, table)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("board", "table"), BOARDS.items())
@pytest.mark.parametrize("fault", [None, "no-profile-names"], ids=["named", "old structures without names"])
def test_every_profile_of_every_board(host: Make, board: str, table: str, fault: str | None) -> None:
    node = host(board)
    if fault:
        assert node.run("simgpu", "fault", "all", fault).returncode == 0
    assert differences(node, table) == {}


def test_a_driver_that_lists_none_while_mig_is_off_has_them_when_it_is_on(host: Make) -> None:
    node = host("h100-80")
    node.run("simgpu", "fault", "all", "no-profiles-when-off")
    assert len(differences(node, "H100_80")) == 7
    node.nvml("nvmlDeviceSetMigMode(nvmlDeviceGetHandleByIndex(0), 1)")
    assert differences(node, "H100_80") == {}
