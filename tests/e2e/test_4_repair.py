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
OBJECTS = "Apply the objects"
DROP_IN = "/etc/containerd/conf.d/99-nvidia.toml"


def on_node(*command: str):
    return lambda: on(NODE, *command)


def delete(*what: str):
    return lambda: kubectl("delete", *what)


def unlabel(*what: str):
    return lambda: kubectl("label", *what)


# One thing of the host and one of the cluster at a time, which different tasks repair.
@pytest.mark.parametrize(
    ("take_away", "repairs"),
    [
        pytest.param(
            [
                on_node("rm", "/usr/local/lib/kubegpu/pynvml.py"),
                unlabel("node", NODE, "nvidia.com/gpu.present-"),
            ],
            {"Deliver the Python binding of NVML", "Label the nodes"},
            id="binding, node label",
        ),
        pytest.param(
            [
                on_node("rm", "/etc/apt/sources.list.d/kubegpu-nvidia-driver.sources"),
                delete("-n", "kubegpu", "daemonset", "nvidia-device-plugin"),
            ],
            {"Declare the repository of the driver", OBJECTS},
            id="driver repository, DaemonSet",
        ),
        pytest.param(
            [on_node("dpkg", "--purge", "nvidia-driver-cuda"), delete("runtimeclass", "nvidia")],
            {"Install the driver", OBJECTS},
            id="driver package, RuntimeClass",
        ),
        pytest.param(
            [
                on_node("systemctl", "disable", "--now", "nvidia-persistenced.service"),
                delete("-n", "kubegpu", "serviceaccount", "nvidia-device-plugin"),
            ],
            {"Start the persistence daemon", OBJECTS},
            id="persistenced, ServiceAccount",
        ),
        pytest.param(
            [
                on_node("rm", "/etc/apt/sources.list.d/kubegpu-nvidia-container-toolkit.sources"),
                unlabel("namespace", "kubegpu", "pod-security.kubernetes.io/enforce-"),
            ],
            {"Declare the repository of the container toolkit", OBJECTS},
            id="toolkit repository, namespace label",
        ),
        pytest.param(
            [on_node("dpkg", "--purge", "--force-depends", "libnvidia-container-tools")],
            {"Install the container toolkit"},
            id="toolkit package",
        ),
        pytest.param([on_node("rm", DROP_IN)], {RUNTIME, RESTART}, id="drop-in"),
        pytest.param(
            [on_node("sed", "-i", "/^imports/d", "/etc/containerd/config.toml")],
            {RUNTIME, RESTART},
            id="import of the drop-in",
        ),
        pytest.param(
            [on_node("sed", "-i", "/unprivileged/d", "/etc/nvidia-container-runtime/config.toml")],
            {RUNTIME},
            id="toolkit hardening",
        ),
        pytest.param(
            [on_node("systemctl", "disable", "--now", "nvidia-cdi-refresh.path")],
            {"Keep the CDI specification up to date"},
            id="CDI refresh unit",
        ),
        pytest.param(
            [on_node("rm", "/var/run/cdi/nvidia.yaml")],
            {"Write the CDI specification that is not there yet"},
            id="CDI specification",
        ),
    ],
)
def test_what_is_taken_away_comes_back(converged: Run, take_away, repairs: set[str]) -> None:
    for action in take_away:
        action()
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


def test_a_configuration_that_only_root_may_read(converged: Run) -> None:
    for mode in ("600", "644"):
        on(NODE, "chmod", mode, "/etc/containerd/config.toml")
        run = site("--limit", NODE)
        assert run.code == 0, run.messages
        assert on(NODE, "stat", "-c", "%a", DROP_IN).strip() == mode, "the copy is as readable as the original"


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
