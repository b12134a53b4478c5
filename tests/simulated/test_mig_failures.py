# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mig_layout when things go wrong at the edges: modes that do not change, programs that fail, services, lost GPUs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from host import FIVE, MODE, A, B, Host, holding, instance_id, want

Make = Callable[..., Host]
OFF: list[dict[str, Any]] = [{"gpus": ["all"], "mode": "disabled"}]
SERVICE = "nvidia-dcgm.service"

# A systemctl with one service, whose state is a file; it refuses the verb in /run/refused.
SYSTEMCTL = """
[ "$2" = nvidia-dcgm.service ] || { echo inactive; exit 3; }
[ "$(cat /run/refused 2>/dev/null)" != "$1" ] || { echo "Failed to $1 $2" >&2; exit 1; }
case $1 in
is-active) cat /run/service ;;
stop) echo inactive >/run/service; echo stopped >>/run/services.log ;;
start) echo active >/run/service; echo started >>/run/services.log ;;
esac
"""


def test_a_mode_that_cannot_be_switched_off_leaves_the_instances(host: Make) -> None:
    """Five compute and five GPU instances are destroyed first; the eleventh call is the mode."""
    node = host("h100-80")
    assert node.mig(layouts=[FIVE]).code == 0
    before = node.layout()
    node.run("simgpu", "fault", "all", "fail", "11", "999")
    failed = node.mig(layouts=OFF)
    assert failed.code == 1
    assert "Switching MIG mode to disabled failed: UNKNOWN" in failed.message
    assert "The GPU is as it was" in failed.message
    assert node.nvml(MODE) == [1, 1] and node.layout() == before


def test_reading_that_fails_after_mig_was_switched_on_switches_it_off_again(host: Make) -> None:
    node = host("h100-80")
    for number in range(1, 420, 17):
        node.run("simgpu", "fault", "all", "fail-read", str(number), "999")
        done = node.mig(layouts=[FIVE])
        node.run("simgpu", "fault", "clear")
        assert not done.result.get("died"), (number, done.message)
        assert node.nvml(MODE) == ([0, 0] if done.code else [1, 1]), (number, done.message)
        assert node.mig(layouts=OFF).code == 0


@pytest.mark.parametrize(
    ("script", "words", "reboot"),
    [
        ("echo 'GPU 00000000:1A:00.0 is currently in use by another process.'; exit 19", "in use by another", False),
        ("exit 127", "--gpu-reset", False),
        ("echo 'Resetting GPU is not supported.'; exit 3", "is not supported", True),
    ],
    ids=["in use", "not there", "forbidden"],
)
def test_a_reset_that_fails(host: Make, script: str, words: str, reboot: bool) -> None:
    node = host("a100-80")
    node.run("simgpu", "fault", "0", "passthrough")
    node.program("nvidia-smi", script)
    failed = node.mig(layouts=[want(_3g_40gb=1)], allow_reset=True)
    assert failed.code == 1 and words in failed.message
    assert failed.result["reboot_required"] is reboot
    assert node.nvml(MODE) == [0, 1 if reboot else 0]


def test_a_reboot_is_not_asked_for_where_something_else_is_wrong_too(host: Make) -> None:
    node = host("a100-80", "h100-80")
    node.run("simgpu", "fault", "0", "passthrough")
    node.run("simgpu", "fault", "1", "invisible-client")
    failed = node.mig(layouts=[want(A, _3g_40gb=1), want(B, _3g_40gb=1)], allow_reset=True)
    assert [gpu["reboot_required"] for gpu in failed.result["gpus"]] == [True, False]
    assert not failed.result["reboot_required"]


def test_what_was_not_planned_is_not_done(host: Make) -> None:
    node = host("h100-80")
    refused = node.mig(layouts=[FIVE], allow_disruption=False)
    assert refused.code == 1 and "MIG mode becomes enabled" in refused.message and refused.counts == {}
    assert node.mig(layouts=[want(_3g_40gb=1)]).code == 0
    assert node.mig(layouts=[want(_3g_40gb=1, _1g_10gb=1)], allow_disruption=False).code == 0


def test_a_reset_that_did_not_take_place_is_not_reported(host: Make) -> None:
    node = host("a100-80")
    node.run("simgpu", "fault", "0", "invisible-client")
    failed = node.mig(layouts=[want(_3g_40gb=1)], allow_reset=True)
    assert failed.code == 1 and "reset" not in failed.counts
    assert not failed.result["gpus"][0]["reset"]


def test_a_group_reset_that_fails_half_way_gives_the_others_their_instances_back(host: Make) -> None:
    node = host("a100-80", "a100-80")
    switch = "/sys/bus/pci/devices/0000:0f:00.0"
    node.run("cp", "-r", f"/sys/bus/pci/devices/{A}", switch)
    node.run("rm", "-f", f"{switch}/driver")
    node.run("sh", "-c", f"echo 0x068000 > {switch}/class; echo 0x1af1 > {switch}/device")
    node.run("simgpu", "fault", "1", "passthrough")
    node.program("nvidia-smi", f"simgpu reset {A}; exit 255")
    # The first one gets its instance in the same run.
    failed = node.mig(layouts=[want(A, _3g_40gb=1), want(B, _3g_40gb=1)], allow_reset=True)
    assert failed.code == 1 and B in failed.message
    assert node.layout(0) == ["3g.40gb@0"]


def test_work_on_an_instance_does_not_keep_a_pending_mode_from_being_taken_back(host: Make) -> None:
    node = host("h100-80")
    assert node.mig(layouts=[FIVE]).code == 0
    worker = holding(node, "--gi", instance_id(node, "3g.40gb"), "0")
    assert node.nvml("nvmlDeviceSetMigMode(nvmlDeviceGetHandleByIndex(0), 0)") == 19
    done = node.mig(layouts=[FIVE])
    assert done.code == 0 and done.result["changed"], done.message
    assert node.nvml(MODE) == [1, 1] and worker.poll() is None
    worker.communicate("end\n", timeout=10)


def test_services_are_stopped_for_a_mode_only_and_started_again(host: Make) -> None:
    node = host("h100-80")
    node.program("systemctl", SYSTEMCTL)
    node.run("sh", "-c", "echo active >/run/service")
    assert node.mig(layouts=[FIVE], stop_services=[SERVICE]).code == 0
    assert node.mig(layouts=[want(_7g_80gb=1)], stop_services=[SERVICE]).code == 0
    assert node.run("cat", "/run/services.log").stdout.split() == ["stopped", "started"]


def test_a_service_that_does_not_start_again_fails_the_run_but_loses_nothing(host: Make) -> None:
    node = host("h100-80")
    node.program("systemctl", SYSTEMCTL)
    node.run("sh", "-c", "echo active >/run/service; echo start >/run/refused")
    failed = node.mig(layouts=[FIVE], stop_services=[SERVICE])
    assert failed.code == 1 and f"{SERVICE} was stopped for a change" in failed.message
    assert len(failed.result["gpus"][0]["created"]) == 5 and len(node.layout() or []) == 5
    assert node.mig(layouts=[FIVE], stop_services=[SERVICE], check=True).result["changed"]
    node.run("rm", "/run/refused")
    assert node.mig(layouts=[FIVE], stop_services=[SERVICE]).result["changed"]
    assert node.run("cat", "/run/service").stdout == "active\n"
    assert not node.mig(layouts=[FIVE], stop_services=[SERVICE]).result["changed"]


def test_a_gpu_that_fails_while_it_is_looked_at_does_not_stop_the_others(host: Make) -> None:
    node = host("h100-80", "h100-80")
    for number in range(1, 60, 4):
        node.run("simgpu", "fault", "1", "fail-read", str(number), "15")
        done = node.mig(layouts=[want(A, _7g_80gb=1)])
        node.run("simgpu", "fault", "clear")
        assert done.code == 0, (number, done.message)


def test_a_file_of_mig_parted_that_is_empty_changes_nothing(host: Make, tmp_path: Path) -> None:
    node, file = host("h100-80"), tmp_path / "config.yaml"
    assert node.mig(layouts=[FIVE]).code == 0
    file.write_text("# nothing yet\n")
    refused = node.mig(config_file=str(file), selected="all-disabled", unmatched="disabled")
    assert refused.code == 1 and "is empty" in refused.message and refused.counts == {}
    refused = node.mig(selected="all-disabled", unmatched="disabled")
    assert refused.code == 1 and refused.counts == {}
