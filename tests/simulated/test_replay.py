# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What boot does with the file that mig_layout wrote, with what the role copies and nothing else of the collection."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from host import A, B, Host, places, want

ROOT = Path(__file__).resolve().parents[2]
Make = Callable[..., Host]
LAYOUTS = [
    {"gpus": [A], "profiles": {"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2}},
    {"gpus": [B], "instances": [{"profile": "3g.40gb", "start": 4, "compute_instances": ["1c.3g.40gb", "2c.3g.40gb"]}]},
]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The directory that the role makes."""
    files = yaml.safe_load((ROOT / "roles/mig/vars/main.yml").read_text())["__mig_boot_files"]
    for name in files:
        target = tmp_path / "boot" / "kubegpu_boot" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "plugins/module_utils" / name, target)
    return tmp_path / "boot"


def reboot(host: Host) -> None:
    assert host.run("simgpu", "unload", "--force").returncode == 0
    host.load()


def replay(host: Host, program: Path, file: Path) -> subprocess.CompletedProcess[str]:
    host.log()
    settings = (f"PATH={host.environment['PATH']}", "LD_LIBRARY_PATH=/run/lib", f"PYTHONPATH={program}")
    return host.run("env", "-i", *settings, sys.executable, "-B", "-m", "kubegpu_boot._mig.replay", str(file))


@pytest.mark.parametrize("board", ["a100-80", "h100-80"])
def test_a_boot_brings_everything_back(host: Make, program: Path, tmp_path: Path, board: str) -> None:
    node, file = host(board, board), tmp_path / "etc" / "mig.json"
    done = node.mig(layouts=LAYOUTS, allow_reset=True, boot_file=str(file))
    assert done.code == 0 and done.result["boot_file_changed"], done.message
    before = [gpu["mig"] for gpu in node.facts()]
    reboot(node)
    assert not node.layout(0)
    booted = replay(node, program, file)
    assert booted.returncode == 0, booted.stderr
    assert [gpu["mig"] for gpu in node.facts()] == before
    assert places(before[1]["instances"]) == ["3g.40gb@4 [2c.3g.40gb, 1c.3g.40gb]"]
    assert not node.mig(layouts=LAYOUTS, boot_file=str(file)).result["changed"]
    assert replay(node, program, file).returncode == 0
    assert node.log() == []


def test_boards_that_changed_their_slots_keep_their_layouts(host: Make, program: Path, tmp_path: Path) -> None:
    node, file = host("a100-80", "a100-80"), tmp_path / "mig.json"
    assert node.mig(layouts=LAYOUTS, allow_reset=True, boot_file=str(file)).code == 0
    before = {gpu["uuid"]: (gpu["index"], places(gpu["mig"]["instances"])) for gpu in node.facts()}
    assert node.run("simgpu", "unload", "--force").returncode == 0
    node.plug("a100-80@1", "a100-80@0")
    node.load()
    assert replay(node, program, file).returncode == 0
    after = {gpu["uuid"]: (gpu["index"], places(gpu["mig"]["instances"])) for gpu in node.facts()}
    assert {uuid: layout for uuid, (_index, layout) in after.items()} == {
        uuid: layout for uuid, (_index, layout) in before.items()
    }
    assert all(after[uuid][0] != index for uuid, (index, _layout) in before.items())


def test_a_gpu_that_fails_does_not_keep_the_other_from_working(host: Make, program: Path, tmp_path: Path) -> None:
    node, file = host("h100-80", "h100-80"), tmp_path / "mig.json"
    assert node.mig(layouts=LAYOUTS, boot_file=str(file)).code == 0
    reboot(node)
    node.run("simgpu", "lose", "0")
    booted = replay(node, program, file)
    assert booted.returncode == 1
    assert A in booted.stderr and "fallen off the bus" in booted.stderr
    assert node.layout(1) == ["3g.40gb@4 [2c.3g.40gb, 1c.3g.40gb]"]


def test_a_driver_that_names_profiles_otherwise_since(host: Make, program: Path, tmp_path: Path) -> None:
    node, file = host("h100-80-79gb"), tmp_path / "mig.json"
    assert node.mig(layouts=[{"gpus": ["all"], "profiles": {"7g.80gb": 1}}], boot_file=str(file)).code == 0
    file.write_text(file.read_text().replace("7g.79gb", "7g.80gb"))
    reboot(node)
    assert replay(node, program, file).returncode == 0
    assert node.layout() == ["7g.79gb@0"]


def test_a_run_that_failed_leaves_the_entry_that_was_there(host: Make, tmp_path: Path) -> None:
    node, file = host("h100-80", "h100-80"), tmp_path / "mig.json"
    assert node.mig(layouts=LAYOUTS, boot_file=str(file)).code == 0
    entries = json.loads(file.read_text())["gpus"]
    node.run("simgpu", "fault", "0", "fail", "3", "999")
    both = [{"gpus": ["all"], "profiles": {"7g.80gb": 1}}]
    assert node.mig(layouts=both, boot_file=str(file)).code == 1
    first, second = json.loads(file.read_text())["gpus"]
    assert first == entries[0]
    assert [each["profile"] for each in second["instances"]] == ["7g.80gb"]


def entries(file: Path) -> dict[str, list[str]]:
    return {gpu["pci_address"]: places(gpu["instances"]) for gpu in json.loads(file.read_text())["gpus"]}


def test_a_gpu_that_is_lost_or_no_longer_declared_keeps_its_entry(host: Make, tmp_path: Path) -> None:
    node, file = host("h100-80", "h100-80"), tmp_path / "mig.json"
    assert node.mig(layouts=LAYOUTS, boot_file=str(file)).code == 0
    before = entries(file)
    assert node.mig(layouts=LAYOUTS[:1], boot_file=str(file)).code == 0
    assert entries(file) == before
    node.run("simgpu", "lose", "0")
    models = [{"models": ["NVIDIA H100*"], "profiles": {"7g.80gb": 1}}]
    failed = node.mig(layouts=models, boot_file=str(file))
    assert failed.code == 1 and A in failed.message
    assert entries(file) == {A: before[A], B: ["7g.80gb@0"]}


def test_an_entry_that_is_no_longer_true_of_a_gpu_that_nobody_declares_goes(host: Make, tmp_path: Path) -> None:
    node, file = host("h100-80", "h100-80"), tmp_path / "mig.json"
    assert node.mig(layouts=LAYOUTS, boot_file=str(file)).code == 0
    assert node.mig(layouts=[want(B, _7g_80gb=1)]).code == 0
    assert node.mig(layouts=LAYOUTS[:1], boot_file=str(file)).code == 0
    assert list(entries(file)) == [A]


def test_boot_leaves_a_mode_alone_that_waits_for_it(host: Make, program: Path, tmp_path: Path) -> None:
    node, file = host("a100-80", "a100-80"), tmp_path / "mig.json"
    assert node.mig(layouts=[{"gpus": ["all"], "mode": "disabled"}], boot_file=str(file)).code == 0
    node.run("simgpu", "fault", "0", "passthrough")
    assert node.mig(layouts=LAYOUTS[:1], allow_reset=True, boot_file=str(file)).result["reboot_required"]
    assert list(entries(file)) == [B]
    reboot(node)
    assert replay(node, program, file).returncode == 0
    done = node.mig(layouts=LAYOUTS[:1], boot_file=str(file))
    assert done.code == 0, done.message
    assert list(entries(file)) == [A, B]


def test_a_boot_file_that_cannot_be_written_fails_with_the_whole_result(host: Make, tmp_path: Path) -> None:
    node = host("h100-80")
    (tmp_path / "file").write_text("")
    failed = node.mig(layouts=LAYOUTS[:1], boot_file=str(tmp_path / "file" / "mig.json"))
    assert failed.code == 1 and "cannot be noted for the next boot" in failed.message
    assert failed.result["gpus"][0]["after"]["mode"] == "enabled" and len(node.layout() or []) == 4


@pytest.mark.parametrize(
    ("text", "reason"), [("{}", "no layout that this program wrote"), ('{"version": 9}', "version 9")]
)
def test_a_file_that_cannot_be_used_is_told(host: Make, program: Path, tmp_path: Path, text: str, reason: str) -> None:
    node, file = host("h100-80"), tmp_path / "mig.json"
    file.write_text(text)
    booted = replay(node, program, file)
    assert booted.returncode == 1 and reason in booted.stderr and "Traceback" not in booted.stderr
