# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each managed thing taken away in turn: check mode predicts the repair, the run does exactly that, and no more."""

from __future__ import annotations

import subprocess

import pytest
from machines import recreate
from running import Run, allocatable, get, kubectl, on, site, until

NODE = "gpu-b"
RUNTIME = "Configure the runtime handler and CDI"
RESTART = "Restart the runtime that does not run with its configuration"
DROP_IN = "/etc/containerd/conf.d/99-nvidia.toml"


def on_node(*command: str):
    return lambda: on(NODE, *command)


@pytest.mark.parametrize(
    ("take_away", "repairs"),
    [
        pytest.param(
            on_node("rm", "/usr/local/lib/kubegpu/pynvml.py"), {"Deliver the Python binding of NVML"}, id="binding"
        ),
        pytest.param(
            on_node("rm", "/etc/apt/sources.list.d/kubegpu-nvidia-driver.sources"),
            {"Declare the repository of the driver"},
            id="driver repository",
        ),
        pytest.param(
            on_node("dpkg", "--purge", "--force-depends", "nvidia-smi"), {"Install the driver"}, id="driver package"
        ),
        pytest.param(
            on_node("systemctl", "disable", "--now", "nvidia-persistenced.service"),
            {"Start the persistence daemon"},
            id="persistenced",
        ),
        pytest.param(
            on_node("rm", "/etc/apt/sources.list.d/kubegpu-nvidia-container-toolkit.sources"),
            {"Declare the repository of the container toolkit"},
            id="toolkit repository",
        ),
        pytest.param(on_node("rm", DROP_IN), {RUNTIME, RESTART}, id="drop-in"),
        pytest.param(
            on_node("sed", "-i", "/^imports/d", "/etc/containerd/config.toml"),
            {RUNTIME, RESTART},
            id="import of the drop-in",
        ),
        pytest.param(
            on_node("sed", "-i", "/unprivileged/d", "/etc/nvidia-container-runtime/config.toml"),
            {RUNTIME},
            id="toolkit hardening",
        ),
        pytest.param(
            on_node("systemctl", "disable", "--now", "nvidia-cdi-refresh.path"),
            {"Keep the CDI specification up to date"},
            id="CDI refresh",
        ),
        pytest.param(
            lambda: kubectl("label", "node", NODE, "nvidia.com/gpu.present-"), {"Label the nodes"}, id="node label"
        ),
        pytest.param(
            lambda: kubectl("delete", "-n", "kubegpu", "daemonset", "nvidia-device-plugin"),
            {"Apply the objects"},
            id="DaemonSet",
        ),
        pytest.param(lambda: kubectl("delete", "runtimeclass", "nvidia"), {"Apply the objects"}, id="RuntimeClass"),
        pytest.param(
            lambda: kubectl("delete", "-n", "kubegpu", "serviceaccount", "nvidia-device-plugin"),
            {"Apply the objects"},
            id="ServiceAccount",
        ),
        pytest.param(
            lambda: kubectl("label", "namespace", "kubegpu", "pod-security.kubernetes.io/enforce-"),
            {"Apply the objects"},
            id="namespace label",
        ),
    ],
)
def test_what_is_taken_away_comes_back(converged: Run, take_away, repairs: set[str]) -> None:
    take_away()
    predicted = site("--check", "--diff", "--limit", NODE)
    assert predicted.code == 0, predicted.messages
    assert predicted.changed_tasks == repairs
    repaired = site("--limit", NODE)
    assert repaired.code == 0, repaired.messages
    assert repaired.changed_tasks == repairs
    assert allocatable(NODE) == {"nvidia.com/gpu": "1"}


def test_after_all_repairs_nothing_is_left_to_do(converged: Run) -> None:
    run = site()
    assert run.code == 0, run.messages
    assert run.changed == []


def runtime_start() -> str:
    return on(NODE, "systemctl", "show", "--property=ExecMainStartTimestampMonotonic", "containerd.service")


def test_a_run_killed_before_the_restart_is_finished_by_the_next(converged: Run) -> None:
    on(NODE, "rm", DROP_IN)
    before = runtime_start()
    killed = site("--limit", NODE, kill_at=RESTART)
    subprocess.run(["podman", "exec", NODE, "pkill", "-9", "-f", "AnsiballZ"], check=False)
    assert killed.code == -9
    assert on(NODE, "cat", DROP_IN), "the run was killed after the configuration was written"
    assert runtime_start() == before
    finished = site("--limit", NODE)
    assert finished.code == 0, finished.messages
    assert finished.changed_tasks == {RESTART}
    assert runtime_start() != before
    assert site("--limit", NODE).changed == []


def test_a_run_killed_on_a_bare_host_is_finished_by_the_next() -> None:
    recreate(NODE)
    assert site("--limit", NODE, kill_at=RESTART).code == -9
    finished = site("--limit", NODE)
    assert finished.code == 0, finished.messages
    assert RESTART in finished.changed_tasks
    assert until(lambda: allocatable(NODE) == {"nvidia.com/gpu": "1"}, "the GPU is advertised")
    assert get("node", NODE)["metadata"]["labels"]["nvidia.com/gpu.present"] == "true"
