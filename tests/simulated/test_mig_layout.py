# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mig_layout against the simulated driver: what it does, and counted, what it does not."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from host import FIVE, MODE, THREE, A, B, Done, Host, holding, instance_id, places, want

Make = Callable[..., Host]
ALL = {"gpus": ["all"]}
GPU_INSTANCE = "nvmlDeviceGetGpuInstanceById(nvmlDeviceGetHandleByIndex(0), %s)"
DESTROYED = {"destroy_gpu_instance": 4, "destroy_compute_instance": 4}


def test_from_nothing_to_a_layout_and_back(host: Make) -> None:
    node = host("h100-80", "h100-80")
    predicted = node.mig(layouts=[FIVE], check=True)
    assert predicted.counts == {} and node.layout() is None
    done = node.mig(layouts=[FIVE])
    assert done.code == 0, done.message
    assert done.result == predicted.result
    assert done.result["changed"] and done.result["disruptive"]
    assert node.layout(0) == ["1g.10gb@0", "1g.10gb@1", "1g.10gb@2", "1g.10gb@3", "3g.40gb@4"]
    assert node.layout(1) is None
    assert done.counts == {"set_mig_mode": 1, "create_gpu_instance": 5, "create_compute_instance": 5}
    again = node.mig(layouts=[FIVE])
    assert not again.result["changed"] and again.counts == {}
    off = node.mig(layouts=[{"gpus": ["all"], "mode": "disabled"}])
    assert off.code == 0 and node.layout() is None
    assert [gpu["mode_changed"] for gpu in off.result["gpus"]] == [True, False]


def test_work_on_an_instance_that_stays_runs_on(host: Make) -> None:
    node = host("h100-80", "h100-80")
    node.mig(layouts=[FIVE])
    worker = holding(node, "--gi", instance_id(node, "3g.40gb"), "0")
    done = node.mig(layouts=[THREE], diff=True)
    assert done.code == 0, done.message
    assert worker.poll() is None
    assert done.counts == {**DESTROYED, "create_gpu_instance": 2, "create_compute_instance": 2}
    (gpu,) = done.result["gpus"]
    assert places(gpu["kept"]) == ["3g.40gb@4"]
    assert places(gpu["destroyed"]) == ["1g.10gb@0", "1g.10gb@1", "1g.10gb@2", "1g.10gb@3"]
    assert places(gpu["created"]) == ["2g.20gb@0", "2g.20gb@2"]
    assert all(gpu["uuid"] in line for line in done.calls)
    (title,) = done.result["diff"]["after"]
    assert done.result["diff"]["after"][title] == {
        "mode": "enabled",
        "instances": ["2g.20gb@0", "2g.20gb@2", "3g.40gb@4"],
    }
    worker.communicate("end\n", timeout=10)


def test_work_on_an_instance_that_would_have_to_go_is_in_the_way(host: Make) -> None:
    node = host("h100-80")
    node.mig(layouts=[FIVE])
    worker = holding(node, "--gi", instance_id(node, "3g.40gb"), "0")
    (pid,) = [process["pid"] for process in node.facts()[0]["processes"]]
    for check in (True, False):
        refused = node.mig(layouts=[want(_7g_80gb=1)], check=check)
        assert refused.code == 1 and refused.counts == {}
        assert f"3g.40gb@4 has to go and is used by sh (pid {pid})" in refused.message
        assert "Nothing was changed" in refused.message
        assert [(holder["pid"], holder["command"]) for holder in refused.result["holders"]] == [(pid, "sh")]
    worker.communicate("end\n", timeout=10)
    assert node.mig(layouts=[want(_7g_80gb=1)]).code == 0
    assert node.layout() == ["7g.80gb@0"]


def test_busy_timeout_waits_for_the_end_of_the_work(host: Make) -> None:
    node = host("h100-80")
    worker = node.start("simgpu", "hold", "0", "--", "sh", "-c", "echo holding; sleep 3")
    assert worker.stdout and worker.stdout.readline() == "holding\n"
    refused = node.mig(layouts=[FIVE])
    assert "its MIG mode has to change and it is used by" in refused.message and refused.counts == {}
    planned = node.mig(layouts=[FIVE], check=True, busy_timeout=60)
    assert planned.code == 0 and "waits up to 60 seconds" in planned.result["disruption"][-1]
    done = node.mig(layouts=[FIVE], busy_timeout=60)
    assert done.code == 0 and worker.wait() == 0
    assert len(node.layout() or []) == 5


def test_a_reset_is_refused_before_anything_is_changed(host: Make) -> None:
    node = host("a100-80", "h100-80")
    refused = node.mig(layouts=[want(A, _3g_40gb=1), want(B, _3g_40gb=1)])
    assert refused.code == 1 and refused.counts == {}
    assert f"NVIDIA A100-SXM4-80GB at {A} resets the GPU, and allow_reset is false" in refused.message
    done = node.mig(layouts=[want(A, _3g_40gb=1), want(B, _3g_40gb=1)], allow_reset=True)
    assert done.code == 0, done.message
    assert [gpu["reset"] for gpu in done.result["gpus"]] == [True, False]
    assert node.layout(0) == node.layout(1) == ["3g.40gb@0"]


def test_a_mode_that_somebody_left_pending_comes_or_goes(host: Make) -> None:
    node = host("a100-80")
    worker = holding(node, "0")
    pending = "nvmlDeviceSetMigMode(nvmlDeviceGetHandleByIndex(0), 1)"
    assert node.nvml(pending) == 19
    worker.communicate("end\n", timeout=10)
    assert node.nvml(MODE) == [0, 1]
    taken_back = node.mig(layouts=[{**ALL, "mode": "disabled"}])
    assert taken_back.code == 0 and taken_back.result["changed"] and not taken_back.result["disruptive"]
    assert node.nvml(MODE) == [0, 0] and "reset" not in taken_back.counts
    assert not node.mig(layouts=[{**ALL, "mode": "disabled"}]).result["changed"]


def test_who_has_the_gpu_open_is_in_the_way_of_a_mode_change_but_not_of_the_plan(host: Make) -> None:
    node = host("h100-80")
    client = node.start(sys.executable, "-c", "from pynvml import *; nvmlInit(); print('open', flush=True); input()")
    assert client.stdout and client.stdout.readline() == "open\n"
    assert node.mig(layouts=[FIVE], check=True).code == 0
    refused = node.mig(layouts=[FIVE])
    assert refused.code == 1 and "MIG mode has to change and it is used by python" in refused.message
    assert refused.counts == {}
    client.communicate("\n", timeout=10)
    assert node.mig(layouts=[FIVE]).code == 0


def test_a_client_that_nobody_sees_leaves_no_pending_mode(host: Make) -> None:
    node = host("h100-80")
    node.run("simgpu", "fault", "0", "invisible-client")
    refused = node.mig(layouts=[FIVE])
    assert refused.code == 1 and "nobody that can be seen from here" in refused.message
    assert node.nvml(MODE) == [0, 0]
    node.run("simgpu", "fault", "clear")
    assert node.mig(layouts=[FIVE]).code == 0


def test_m7_a_gpu_instance_that_a_dead_run_left(host: Make) -> None:
    node = host("a100-80")
    node.mig(layouts=[want(_2g_20gb=1, _3g_40gb=1)], allow_reset=True)
    gone = f"nvmlComputeInstanceDestroy(nvmlGpuInstanceGetComputeInstanceById({GPU_INSTANCE}, 0))"
    node.nvml(gone % instance_id(node, "2g.20gb"))
    assert node.layout() == ["2g.20gb@0 []", "3g.40gb@4"]
    done = node.mig(layouts=[want(_3g_40gb=1, _2g_20gb=1)])
    assert done.counts == {"create_compute_instance": 1}
    assert node.mig(layouts=[want(_3g_40gb=1, _2g_20gb=1)]).counts == {}
    node.nvml(gone % instance_id(node, "2g.20gb"))
    done = node.mig(layouts=[want(_3g_40gb=1)])
    assert done.counts == {"destroy_gpu_instance": 1}
    assert node.layout() == ["3g.40gb@4"]


def test_m8_a_reset_that_says_ok_and_does_nothing(host: Make) -> None:
    node = host("a100-40")
    assert node.run("simgpu", "fault", "0", "passthrough").returncode == 0
    layout = [want(_1g_5gb=7)]
    refused = node.mig(layouts=layout, allow_reset=True)
    assert refused.code == 1 and refused.result["reboot_required"]
    assert "needs a reboot" in refused.message
    assert refused.counts.get("reset") == 1 and "create_gpu_instance" not in refused.counts
    assert node.nvml(MODE) == [0, 1]
    node.run("simgpu", "unload", "--force")
    node.load()
    done = node.mig(layouts=layout, allow_reset=True)
    assert done.code == 0 and done.counts == {"create_gpu_instance": 7, "create_compute_instance": 7}
    assert node.mig(layouts=layout).counts == {}


@pytest.fixture
def behind_a_switch(host: Make) -> Host:
    """Two A100 of which the first asks for a reset, and the second has an instance."""
    node = host("a100-80", "a100-80")
    switch = "/sys/bus/pci/devices/0000:0f:00.0"
    node.run("cp", "-r", f"/sys/bus/pci/devices/{A}", switch)
    node.run("rm", "-f", f"{switch}/driver")
    node.run("sh", "-c", f"echo 0x068000 > {switch}/class; echo 0x1af1 > {switch}/device")
    assert node.mig(layouts=[want(B, _3g_40gb=1)], allow_reset=True).code == 0
    node.run("simgpu", "fault", "0", "passthrough")
    return node


def test_behind_nvswitches_all_gpus_are_reset_together_and_get_their_instances_back(behind_a_switch: Host) -> None:
    done = behind_a_switch.mig(layouts=[want(A, _3g_40gb=1)], allow_reset=True)
    assert done.code == 1 and done.result["reboot_required"], done.message
    assert done.counts["reset"] == 2 and done.counts["create_gpu_instance"] == 1
    assert behind_a_switch.layout(1) == ["3g.40gb@0"]


def test_work_on_another_gpu_behind_the_same_nvswitches_forbids_the_reset(behind_a_switch: Host) -> None:
    worker = holding(behind_a_switch, "--gi", instance_id(behind_a_switch, "3g.40gb", 1), "1")
    refused = behind_a_switch.mig(layouts=[want(A, _3g_40gb=1)], allow_reset=True)
    assert refused.code == 1 and not refused.result["reboot_required"]
    assert "GPUs behind NVSwitches are reset together" in refused.message and f"at {B} by sh (pid " in refused.message
    assert behind_a_switch.nvml(MODE) == [0, 0]
    assert worker.poll() is None
    worker.communicate("end\n", timeout=10)


def test_m9_a_driver_that_counts_memory_otherwise(host: Make) -> None:
    node = host("h100-80", "h100-80-79gb")
    layout = [{**ALL, "profiles": {"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2}}]
    assert node.mig(layouts=layout).code == 0
    assert "3g.40gb@0" in node.layout(0) or "3g.40gb@4" in node.layout(0)
    assert any(each.startswith("3g.39gb@") for each in node.layout(1))
    assert node.mig(layouts=layout).counts == {}
    refused = node.mig(layouts=[{**ALL, "profiles": {"1g.14gb": 1}}])
    assert refused.code == 1 and "1g.10gb" in refused.message and "1g.20gb" in refused.message
    assert refused.counts == {}
    assert node.mig(layouts=[{**ALL, "profiles": {"7g.80gb": 1}}]).code == 0
    assert node.layout(1) == ["7g.79gb@0"]


def test_m10_ids_are_not_places_and_uuids_prove_nothing(host: Make) -> None:
    node = host("a100-80", "a100-80")
    layout = [{**ALL, "profiles": {"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2}}]
    node.mig(layouts=layout, allow_reset=True)
    first, second = (gpu["mig"]["instances"] for gpu in node.facts())
    assert places(first) == places(second)
    assert [each["id"] for each in first] != [each["id"] for each in second]
    number = instance_id(node, "2g.20gb")
    uuid = [each["compute_instances"][0]["uuid"] for each in first if each["profile"] == "2g.20gb"]
    handle = GPU_INSTANCE % number
    node.nvml(
        f"[nvmlComputeInstanceDestroy(nvmlGpuInstanceGetComputeInstanceById({handle}, 0)),"
        f" nvmlGpuInstanceDestroy({handle})]"
    )
    done = node.mig(layouts=layout)
    assert places(done.result["gpus"][0]["created"]) == [each for each in places(first) if each.startswith("2g")]
    assert [
        each["compute_instances"][0]["uuid"]
        for each in node.facts()[0]["mig"]["instances"]
        if each["profile"] == "2g.20gb"
    ] == uuid


def test_n4_a_lost_gpu_fails_and_the_others_get_their_layout(host: Make) -> None:
    node = host("h100-80", "h100-80", "h100-80", "h100-80")
    uuids = [gpu["uuid"] for gpu in node.facts()]
    node.run("simgpu", "lose", uuids[1])
    others = {"gpus": [uuids[0], uuids[2], uuids[3]], "profiles": {"7g.80gb": 1}}
    done = node.mig(layouts=[{"gpus": [uuids[1]], "profiles": {"7g.80gb": 1}}, others])
    assert done.code == 1 and B in done.message and "fallen off the bus" in done.message
    assert [node.layout(index) for index in (0, 2, 3)] == [["7g.80gb@0"]] * 3
    facts = node.facts()
    assert [(gpu["index"], gpu["minor"], gpu["uuid"]) for gpu in facts] == [(i, i, uuids[i]) for i in range(4)]


def test_boards_without_mig_are_passed_over_or_refused(host: Make) -> None:
    node = host("t4", "h100-80")
    refused = node.mig(layouts=[want(A, _3g_40gb=1), want(B, _3g_40gb=1)])
    assert refused.code == 1 and "Tesla T4" in refused.message and refused.counts == {}
    assert node.mig(layouts=[want(B, _3g_40gb=1), {**ALL, "mode": "disabled"}]).code == 0
    assert node.layout(1) == ["3g.40gb@0"]


def test_wishes_that_cannot_be_had_change_nothing_anywhere(host: Make) -> None:
    node = host("h100-80", "h100-80")
    refused = node.mig(layouts=[want(A, _1g_10gb=7), want(B, _3g_40gb=3)])
    assert refused.code == 1 and refused.counts == {}
    assert f"at {B}: " in refused.message and f"at {A}: " not in refused.message
    refused = node.mig(layouts=[want(A, _1g_10gb=7), want(B, _3g_41gb=1, _9g_90gb=1)])
    assert refused.code == 1 and refused.counts == {} and "9g.90gb" in refused.message


@pytest.mark.parametrize("fault", ["no-profiles-when-off"])
def test_a_driver_that_lists_profiles_only_with_mig_on(host: Make, fault: str) -> None:
    node = host("a100-80")
    assert node.run("simgpu", "fault", "all", fault).returncode == 0
    refused = node.mig(layouts=[want(_3g_40gb=3)], allow_reset=True)
    assert refused.code == 1 and refused.counts == {}
    assert node.mig(layouts=[FIVE], allow_reset=True).code == 0
    assert len(node.layout() or []) == 5


def balanced(device: str, counts: dict[str, int]) -> dict[str, Any]:
    return {"device-filter": [device], "devices": "all", "mig-enabled": True, "mig-devices": counts}


def test_a_file_of_mig_parted(host: Make) -> None:
    node = host("h100-80", "a100-40")
    config = {
        "version": "v1",
        "mig-configs": {
            "all-balanced": [
                balanced("0x20B010DE", {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}),
                balanced("0x233010DE", {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}),
            ]
        },
    }
    done = node.mig(config=config, selected="all-balanced", allow_reset=True)
    assert done.code == 0, done.message
    assert sorted(each.split("@")[0] for each in node.layout(0) or []) == ["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]
    assert sorted(each.split("@")[0] for each in node.layout(1) or []) == ["1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"]
    assert node.mig(config=config, selected="all-balanced").counts == {}


def test_a_layout_that_the_device_plugin_could_not_serve_changes_nothing(host: Make) -> None:
    node = host("h100-80", "h100-80")
    for strategy, layouts in {
        "single": [want(A, _1g_10gb=7)],
        "none": [FIVE],
        "mixed": [want(A, _1c_3g_40gb=3)],
    }.items():
        refused = node.mig(layouts=layouts, strategy=strategy)
        assert refused.code == 1 and strategy in refused.message and refused.counts == {}, refused.message
    assert node.mig(layouts=[{**ALL, "profiles": {"1g.10gb": 7}}], strategy="single").code == 0
    refused = node.mig(layouts=[want(A, _1g_10gb=6)], strategy="mixed", plugin_mps=True)
    assert refused.code == 1 and "MPS" in refused.message and refused.counts == {}


def test_two_runs_are_kept_apart(host: Make) -> None:
    node = host("h100-80")
    node.run("simgpu", "fault", "all", "slow", "500")
    first = node.start(*node.module_command("mig_layout", layouts=[FIVE], stop_services=[]))
    time.sleep(1.5)
    second = node.mig(layouts=[THREE])
    assert second.code == 1 and "Another run changes the MIG layout of this host" in second.message
    assert first.wait(60) == 0
    assert len(node.layout() or []) == 5


def test_killed_between_any_two_calls_the_next_run_converges(host: Make) -> None:
    """Five instances become three: 4 + 4 destroyed, 2 + 2 created, killed before and after each."""
    node = host("h100-80")
    for number in range(1, 13):
        for moment in ("kill-before", "kill-after"):
            assert node.mig(layouts=[FIVE]).code == 0
            node.run("simgpu", "fault", "all", moment, str(number))
            killed = node.mig(layouts=[THREE])
            assert killed.code == -signal.SIGKILL, (moment, number)
            node.run("simgpu", "fault", "clear")
            done = node.mig(layouts=[THREE])
            assert done.code == 0, (moment, number, done.message)
            assert node.layout() == ["2g.20gb@0", "2g.20gb@2", "3g.40gb@4"], (moment, number)
            assert node.mig(layouts=[THREE]).counts == {}


def test_killed_while_the_mode_changes_the_next_run_converges(host: Make) -> None:
    node = host("a100-80")
    for number in range(1, 12):
        for moment in ("kill-before", "kill-after"):
            assert node.mig(layouts=[{**ALL, "mode": "disabled"}], allow_reset=True).code == 0
            node.run("simgpu", "fault", "all", moment, str(number))
            assert node.mig(layouts=[FIVE], allow_reset=True).code == -signal.SIGKILL, (moment, number)
            node.run("simgpu", "fault", "clear")
            assert node.mig(layouts=[FIVE], allow_reset=True).code == 0, (moment, number)
            assert len(node.layout() or []) == 5


def survives(node: Host, *fault: str, layouts: list[dict[str, Any]]) -> Done:
    """A run with a fault: it ends with a clear message, whatever that is."""
    node.run("simgpu", "fault", "all", *fault)
    failed = node.mig(layouts=layouts)
    node.run("simgpu", "fault", "clear")
    assert failed.code == 1 and not failed.result.get("died"), (fault, failed.message)
    return failed


@pytest.mark.parametrize("code", [19, 999])
def test_a_changing_call_that_fails_leaves_the_gpu_as_it_was(host: Make, code: int) -> None:
    """Five instances become three, in 12 calls."""
    node = host("h100-80")
    assert node.mig(layouts=[FIVE]).code == 0
    before = node.layout()
    for number in range(1, 13):
        failed = survives(node, "fail", str(number), str(code), layouts=[THREE])
        assert " failed: " in failed.message and "The former layout was restored" in failed.message, number
        assert node.layout() == before, number
    assert node.mig(layouts=[THREE]).code == 0


ADVICE = {
    2: "INVALID_ARGUMENT. This board does not know",
    3: "NOT_SUPPORTED. This board",
    4: "NO_PERMISSION. The request needs root",
    15: "GPU_IS_LOST. The GPU has fallen off the bus",
    23: "INSUFFICIENT_RESOURCES. No free placement",
}


@pytest.mark.parametrize("number", [1, 9, 10], ids=["destroying", "creating", "creating_compute"])
def test_every_error_has_a_name_and_advice(host: Make, number: int) -> None:
    node = host("h100-80")
    assert node.mig(layouts=[FIVE]).code == 0
    before = node.layout()
    for code, advice in ADVICE.items():
        failed = survives(node, "fail", str(number), str(code), layouts=[THREE])
        assert advice in failed.message
        assert node.layout() == before


@pytest.mark.parametrize("code", [19, 999])
def test_a_mode_change_with_instances_that_fails_leaves_mig_off(host: Make, code: int) -> None:
    """The mode and five instances, in 11 calls."""
    node = host("h100-80")
    for number in range(1, 12):
        survives(node, "fail", str(number), str(code), layouts=[FIVE])
        assert node.nvml(MODE) == [0, 0], number


def test_a_reading_call_that_fails_changes_nothing_for_the_worse(host: Make) -> None:
    """Before the change everything stays; after it, what was done is taken back."""
    node = host("h100-80")
    assert node.mig(layouts=[FIVE]).code == 0
    for number in range(1, 400, 13):
        node.run("simgpu", "fault", "all", "fail-read", str(number), "999")
        done = node.mig(layouts=[THREE])
        node.run("simgpu", "fault", "clear")
        assert not done.result.get("died"), (number, done.message)
        assert len(node.layout() or []) == (5 if done.code else 3), (number, done.message)
        assert node.mig(layouts=[FIVE]).code == 0


def test_killed_at_calls_of_any_kind_the_next_run_converges(host: Make) -> None:
    node = host("h100-80")
    for number in range(1, 400, 13):
        assert node.mig(layouts=[FIVE]).code == 0
        node.run("simgpu", "fault", "all", "kill", str(number))
        node.mig(layouts=[THREE])
        node.run("simgpu", "fault", "clear")
        assert node.mig(layouts=[THREE]).code == 0, number
        assert node.layout() == ["2g.20gb@0", "2g.20gb@2", "3g.40gb@4"], number


def test_no_permission_is_told(host: Make) -> None:
    node = host("h100-80")
    node.run("simgpu", "fault", "all", "no-permission")
    refused = node.mig(layouts=[FIVE])
    assert refused.code == 1 and "run the task with become" in refused.message
