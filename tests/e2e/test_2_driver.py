# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens to a driver that is there, and to an installation that was killed."""

from __future__ import annotations

import subprocess
import threading
import time

import pytest
from machines import recreate
from running import allocatable, on, site

NODE = "gpu-b"
OLDER = "580.173.02"


@pytest.fixture(scope="module")
def older_driver() -> None:
    recreate(NODE)
    run = site("--limit", NODE, nvidia_driver_version=OLDER)
    assert run.code == 0, run.messages


def loaded() -> str:
    return on(NODE, "cat", "/proc/driver/nvidia/version")


def test_an_exact_version_is_installed(older_driver: None) -> None:
    assert OLDER in loaded()
    assert "580.178.04" not in on(NODE, "dpkg-query", "-W", "*nvidia*")


def test_a_driver_of_the_branch_is_left_alone(older_driver: None) -> None:
    on(NODE, "apt-get", "update")
    run = site("--limit", NODE)
    assert run.code == 0, run.messages
    assert run.changed_tasks == {"Install the package that pins the version of the driver"}
    assert OLDER in loaded()
    assert "580.178.04" not in on(NODE, "dpkg-query", "-W", "libnvidia-ml1")
    assert site("--limit", NODE).changed == []


@pytest.mark.parametrize("variables", [{"nvidia_driver_version": "580.178.04"}, {"nvidia_driver_branch": "595"}])
def test_a_driver_that_runs_is_not_replaced(older_driver: None, variables: dict[str, str]) -> None:
    before = on(NODE, "dpkg-query", "-W")
    run = site("--limit", NODE, **variables)
    assert run.code != 0
    assert f"Driver {OLDER} (open kernel modules) runs on this host" in run.messages
    assert run.changed == []
    assert on(NODE, "dpkg-query", "-W") == before


def test_packages_that_were_upgraded_under_a_running_driver(older_driver: None) -> None:
    names = ["nvidia-driver-cuda", "nvidia-kernel-open-dkms", "nvidia-persistenced", "libnvidia-ml1"]
    on(NODE, "apt-get", "--yes", "--only-upgrade", "install", *names)
    assert "580.178.04" in on(NODE, "dpkg-query", "-W", "libnvidia-ml1")
    run = site("--limit", NODE)
    assert run.code != 0
    assert "Verdict re" in run.messages, "it takes a reload or a reboot, and says so"
    assert "580.178.04" in on(NODE, "dpkg-query", "-W", "libnvidia-ml1"), "it is not for us to undo it"
    back = site("--limit", NODE, nvidia_driver_version=OLDER)
    assert back.code == 0, back.messages
    assert OLDER in on(NODE, "dpkg-query", "-W", "libnvidia-ml1")
    assert site("--limit", NODE, nvidia_driver_version=OLDER).changed == []


def killed_inside_dpkg() -> bool:
    """Kill the playbook on a bare host while packages are unpacked but not configured; False when it was faster."""
    recreate(NODE)
    over = threading.Event()

    def kill() -> None:
        while not over.is_set():
            if "unpacked" in on(NODE, "dpkg-query", "-W", "-f", "${Status}\\n", "*nvidia*", check=False):
                over.set()
                subprocess.run(["pkill", "-9", "-f", "ansible-playbook site.yml"], check=False)
                on(NODE, "sh", "-c", "pkill -9 apt-get; pkill -9 dpkg; pkill -9 -f AnsiballZ", check=False)
            time.sleep(0.02)

    watcher = threading.Thread(target=kill)
    watcher.start()
    try:
        return site("--limit", NODE).code != 0
    finally:
        over.set()
        watcher.join()


def test_a_run_killed_inside_the_package_manager_is_finished_by_the_next() -> None:
    assert any(killed_inside_dpkg() for _attempt in range(3)), "the run was always faster"
    assert on(NODE, "dpkg", "--audit") != "", "the package manager was killed in the middle"
    finished = site("--limit", NODE)
    assert finished.code == 0, finished.messages
    assert "Configure what is unpacked" in finished.changed_tasks
    assert allocatable(NODE) == {"nvidia.com/gpu": "1"}
