# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MIG from a declaration to pods, and over reboots. Each test begins with what the one before left."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from machines import restart_with
from pod_resources import devices_of
from pods import log_uuids, phase, pod
from running import Run, allocatable, get, kubectl, on, play, site, until

NODE = "gpu-a"
BOARDS = ("h100-80", "h100-80")
CLIENTS = "kubegpu.io/gpu-clients"
CHANGE = "Bring the GPUs to their layouts"
BOOT_FILE = "/etc/kubegpu/mig.json"
MANAGER = "nvidia-mig-manager.service"
WHOLE = [{"gpus": ["all"], "mode": "disabled"}]


@pytest.fixture(scope="module", autouse=True)
def whole_gpus(converged: Run) -> Iterator[None]:
    """The node begins as these tests expect it and, whatever became of them, ends as the others do."""
    undivided()
    yield
    undivided()


def undivided() -> None:
    if "Enabled" in on(NODE, "nvidia-smi", "--query-gpu=mig.mode.current", "--format=csv,noheader"):
        kubectl("cordon", NODE)
        mig(mig_layouts=WHOLE, mig_on_conflict="replace")
    kubectl("uncordon", NODE)
    on(NODE, "rm", "-f", BOOT_FILE)


@pytest.fixture
def cordoned() -> Iterator[None]:
    kubectl("cordon", NODE)
    yield
    kubectl("uncordon", NODE)


@pytest.fixture(scope="module")
def gpu(converged: Run) -> str:
    """UUID of the GPU that is divided: it stays the same in whichever slot the board is."""
    return on(NODE, "nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader", "-i", "0").strip()


def mig(*arguments: str, kill_at: str = "", **variables: Any) -> Run:
    return play("mig.yml", "--limit", NODE, *arguments, kill_at=kill_at, **variables)


def divided(gpu: str, **profiles: int) -> list[dict[str, Any]]:
    """A layout of the GPU: `_3g_40gb=1` is one 3g.40gb."""
    return [{"gpus": [gpu], "profiles": {name[1:].replace("_", "."): count for name, count in profiles.items()}}]


def log() -> list[str]:
    """The simulated driver's log of changing calls."""
    return on(NODE, "cat", "/var/log/simgpu.log").splitlines()


def mig_calls(since: list[str]) -> dict[str, int]:
    """How often MIG was changed since the log was that long, by kind; and each change was of one GPU."""
    lines = [line.split()[3:5] for line in log()[len(since) :]]
    lines = [line for line in lines if "mig" in line[0] or "instance" in line[0]]
    assert len({of_gpu for _, of_gpu in lines}) <= 1
    return dict(Counter(kind for kind, _ in lines))


def mig_devices(profile: str = "") -> list[str]:
    """UUIDs of the node's MIG devices as nvidia-smi prints them, sorted."""
    lines = [line for line in on(NODE, "nvidia-smi", "-L").splitlines() if f"MIG {profile}" in line]
    return sorted(line.split("UUID: ")[1].rstrip(")") for line in lines)


def cdi_mig_devices() -> list[str]:
    """The same of the CDI specification."""
    prefix = "nvidia.com/gpu=MIG-"
    names = on(NODE, "nvidia-ctk", "cdi", "list").splitlines()
    return sorted(f"MIG-{name.removeprefix(prefix)}" for name in names if name.startswith(prefix))


def layouts_at_boot() -> dict[str, list[tuple[str, int]]]:
    """What the boot file has: profile and place of the instances by GPU."""
    gpus = json.loads(on(NODE, "cat", BOOT_FILE))["gpus"]
    return {gpu["uuid"]: [(each["profile"], each["start"]) for each in gpu["instances"]] for gpu in gpus}


def layouts_now() -> dict[str, list[tuple[str, int]]]:
    """What the simulated driver has, of the GPUs that the boot file names."""
    found = {}
    for gpu in json.loads(on(NODE, "/usr/lib/simgpu/simgpu", "show"))["gpus"]:
        instances = sorted(gpu["gpu_instances"], key=lambda each: each["start"])
        found[gpu["uuid"]] = [(each["profile"], each["start"]) for each in instances]
    return {uuid: found[uuid] for uuid in layouts_at_boot()}


def clients() -> str:
    return get("node", NODE)["metadata"]["labels"][CLIENTS]


def started(unit: str, moment: str) -> int:
    """Microseconds since boot."""
    return int(on(NODE, "systemctl", "show", "--value", f"--property={moment}TimestampMonotonic", unit))


@pytest.mark.parametrize("playbook", ["site.yml", "mig.yml"])
def test_a_node_in_service_is_refused_before_anything_is_changed_on_any_host(playbook: str) -> None:
    before = log()
    run = play(playbook, mig_layouts=[{"models": ["NVIDIA H100*"], "profiles": {"1g.10gb": 7}}])
    assert run.code != 0
    for words in (
        "in service",
        "MIG mode becomes enabled",
        f"kubectl cordon {NODE}",
        f"kubegpu.nvidia.mig --limit {NODE}",
    ):
        assert words in run.messages
    assert run.changed == []
    assert run.output.count("PLAY [") == 1
    assert log() == before


def test_a_board_without_mig_is_refused() -> None:
    run = play("mig.yml", "--limit", "gpu-b", mig_layouts=[{"gpus": ["0000:1a:00.0"], "profiles": {"1g.10gb": 1}}])
    assert run.code != 0
    assert "MIG" in run.messages and "0000:1a:00.0" in run.messages
    assert run.changed == []


def test_whole_gpus_become_slices(gpu: str, cordoned: None) -> None:
    before = log()
    layouts = divided(gpu, _1g_10gb=7)
    predicted = mig("--check", "--diff", mig_layouts=layouts)
    assert predicted.code == 0, predicted.messages
    assert CHANGE in predicted.changed_tasks
    assert log() == before

    run = mig(mig_layouts=layouts)
    assert run.code == 0, run.messages
    assert predicted.changed_tasks <= run.changed_tasks
    assert mig_calls(before) == {"set_mig_mode": 1, "create_gpu_instance": 7, "create_compute_instance": 7}
    assert allocatable(NODE) == {"nvidia.com/mig-1g.10gb": "7", "nvidia.com/gpu": "1"}
    assert len(mig_devices()) == 7
    assert cdi_mig_devices() == mig_devices()
    assert clients() == "run"
    assert layouts_at_boot() == {gpu: [("1g.10gb", start) for start in range(7)]}
    assert on(NODE, "systemd-analyze", "verify", "--recursive-errors=no", "kubegpu-mig.service") == ""


def test_a_pod_gets_a_slice_that_nobody_takes_from_it(gpu: str) -> None:
    resource = "nvidia.com/mig-1g.10gb"
    with pod("slice", gpus=1, resource=resource, node=NODE, arguments=("--hold", "300")) as name:
        until(lambda: phase(name) == "Running", "pod slice runs")
        seen = until(lambda: log_uuids(name), "pod slice prints its device", 15)
        assert seen == devices_of(NODE, name)[resource]
        assert len(seen) == 1 and seen[0] in mig_devices()

        again = site("--limit", NODE, mig_layouts=divided(gpu, _1g_10gb=7))
        assert again.code == 0, again.messages
        assert again.changed == []
        assert "| mig 7x 1g.10gb |" in again.report[NODE]

        kubectl("cordon", NODE)
        before = log()
        refused = mig(mig_layouts=divided(gpu, _7g_80gb=1))
        kubectl("uncordon", NODE)
        assert refused.code != 0
        for words in ("vectorAdd", "pid ", f"pod default/{name}"):
            assert words in refused.messages
        assert refused.changed == []
        assert log() == before
        assert phase(name) == "Running"


@pytest.mark.parametrize("slots", [("h100-80@1", "h100-80@0"), BOARDS], ids=["boards swapped", "as before"])
def test_a_reboot_restores_the_layout_before_anything_uses_it(slots: tuple[str, ...]) -> None:
    layout = layouts_at_boot()
    restart_with(NODE, slots)
    assert layouts_now() == layout
    for unit in ("containerd.service", "kubelet.service"):
        assert started("kubegpu-mig.service", "ExecMainExit") < started(unit, "ExecMainStart")
    assert on(NODE, "systemctl", "is-active", "kubegpu-mig.service").strip() == "active"
    assert "ordering cycle" not in on(NODE, "journalctl", "--boot", "--no-pager", "_PID=1")
    assert len(mig_devices()) == 7
    assert cdi_mig_devices() == mig_devices()
    until(lambda: allocatable(NODE) == {"nvidia.com/mig-1g.10gb": "7", "nvidia.com/gpu": "1"}, "slices are advertised")


def test_a_stale_cdi_specification_is_replaced_and_the_clients_started_anew(gpu: str) -> None:
    """As after a change by hand and back, when there is nothing left to plan."""
    on(NODE, "sed", "-i", "s/MIG-/MIG-0/", "/var/run/cdi/nvidia.yaml")
    run = site("--limit", NODE, mig_layouts=divided(gpu, _1g_10gb=7))
    assert run.code == 0, run.messages
    assert run.changed_tasks == {
        "Pause the GPU clients",
        "Bring the CDI specification up to date",
        "Let the GPU clients come back",
    }
    assert cdi_mig_devices() == mig_devices()
    assert allocatable(NODE)["nvidia.com/mig-1g.10gb"] == "7"


def test_what_fits_stays_and_a_killed_run_is_finished(gpu: str, cordoned: None) -> None:
    run = mig(mig_layouts=divided(gpu, _3g_40gb=1, _1g_10gb=4))
    assert run.code == 0, run.messages
    assert allocatable(NODE) == {"nvidia.com/mig-3g.40gb": "1", "nvidia.com/mig-1g.10gb": "4", "nvidia.com/gpu": "1"}

    (large,) = mig_devices("3g.40gb")
    hold = ["podman", "exec", NODE, "/usr/lib/simgpu/simgpu", "hold", large, "--", "sleep", "600"]
    worker = subprocess.Popen(hold)
    try:
        until(lambda: '"compute"' in on(NODE, "/usr/lib/simgpu/simgpu", "show"), "a process computes on 3g.40gb", 10)
        before = log()
        wanted = divided(gpu, _3g_40gb=1, _2g_20gb=2)
        killed = mig(mig_layouts=wanted, kill_at=CHANGE)
        assert killed.code == -9
        assert clients() == "paused"
        assert log() == before

        finished = mig(mig_layouts=wanted)
        assert finished.code == 0, finished.messages
        assert mig_calls(before) == {
            "destroy_compute_instance": 4,
            "destroy_gpu_instance": 4,
            "create_gpu_instance": 2,
            "create_compute_instance": 2,
        }
        assert worker.poll() is None, "the process lives"
        assert mig_devices("3g.40gb") == [large]
        assert clients() == "run"
        assert allocatable(NODE) == {
            "nvidia.com/mig-3g.40gb": "1",
            "nvidia.com/mig-2g.20gb": "2",
            "nvidia.com/gpu": "1",
        }
    finally:
        on(NODE, "pkill", "-f", "^sleep 600$", check=False)
        worker.wait(10)


def test_mig_manager_is_refused_or_replaced(cordoned: None) -> None:
    unit = f"/usr/lib/systemd/system/{MANAGER}"
    service = r"[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n"
    on(NODE, "sh", "-c", f"printf '{service}' >{unit} && systemctl daemon-reload && systemctl start {MANAGER}")
    kubectl("label", "node", NODE, "nvidia.com/mig.config=all-1g.10gb")
    try:
        before = log()
        refused = mig(mig_layouts=WHOLE)
        assert refused.code != 0
        for words in (MANAGER, "nvidia.com/mig.config=all-1g.10gb", "mig_on_conflict"):
            assert words in refused.messages
        assert refused.changed == []
        assert log() == before

        replaced = mig(mig_layouts=WHOLE, mig_on_conflict="replace")
        assert replaced.code == 0, replaced.messages
        assert "which owned the MIG layouts of this host" in " ".join(replaced.output.split())
        assert on(NODE, "systemctl", "is-enabled", MANAGER, check=False).strip() == "masked"
        assert on(NODE, "systemctl", "is-active", MANAGER, check=False).strip() == "inactive"
        assert "nvidia.com/mig.config" not in get("node", NODE)["metadata"]["labels"]
        assert allocatable(NODE) == {"nvidia.com/gpu": "2"}
        assert mig_devices() == [] == cdi_mig_devices()
    finally:
        kubectl("label", "node", NODE, "nvidia.com/mig.config-")
        on(NODE, "systemctl", "unmask", MANAGER)
        on(NODE, "systemctl", "stop", MANAGER)
        on(NODE, "rm", unit)
        on(NODE, "systemctl", "daemon-reload")


def test_a_mode_that_only_a_reboot_brings(cordoned: None) -> None:
    """As in a virtual machine with an A100: the driver wants a reset, and the reset does nothing."""
    layouts = [{"gpus": ["all"], "profiles": {"1g.10gb": 2}}]
    # The board remembers its mode from the last time that it was here.
    on(NODE, "find", "/var/lib/simgpu/inforom", "-type", "f", "-delete")
    restart_with(NODE, ("a100-80",))
    try:
        refused = mig(mig_layouts=layouts)
        assert refused.code != 0
        assert "allow_reset" in refused.messages
        assert refused.changed == []

        on(NODE, "/usr/lib/simgpu/simgpu", "fault", "all", "passthrough")
        pending = mig(mig_layouts=layouts, mig_allow_reset=True)
        assert pending.code != 0
        assert "reboot" in pending.messages
        assert "Reboot" not in pending.changed_tasks
        assert clients() == "run"

        done = mig(mig_layouts=layouts, mig_allow_reset=True, mig_allow_reboot=True)
        assert done.code == 0, done.messages
        assert "Reboot" in done.changed_tasks
        assert allocatable(NODE) == {"nvidia.com/mig-1g.10gb": "2"}
        assert cdi_mig_devices() == mig_devices()
        assert clients() == "run"
    finally:
        on(NODE, "rm", "-f", BOOT_FILE)
        restart_with(NODE, BOARDS)


def test_without_a_declaration_nothing_is_done() -> None:
    run = site("--limit", NODE)
    assert run.code == 0, run.messages
    assert run.changed == []
