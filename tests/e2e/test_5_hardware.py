# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same runs with other boards: what is advertised follows NVML, and each field of the manifest is needed for it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import pytest
from machines import restart_with
from pods import ended, log_uuids, pod
from running import Run, allocatable, get, gpu_uuids, kubectl, on, site, until

DAEMON_SET = ("-n", "kubegpu", "daemonset", "nvidia-device-plugin")
CLIENTS = "kubegpu.io/gpu-clients"
PATH = "/spec/template/spec"


@contextlib.contextmanager
def boards(node: str, *names: str, instead_of: tuple[str, ...]) -> Iterator[None]:
    """Other boards in a node, through a power cycle each way."""
    restart_with(node, names)
    try:
        yield
    finally:
        restart_with(node, instead_of)


@pytest.mark.parametrize(
    ("node", "now", "before"),
    [
        pytest.param("gpu-a", ("h100-80",), ("h100-80", "h100-80"), id="a board less"),
        pytest.param("gpu-b", ("t4", "h100-80", "t4"), ("t4",), id="more boards, mixed"),
    ],
)
def test_other_boards_are_advertised_as_they_are(
    converged: Run, node: str, now: tuple[str, ...], before: tuple[str, ...]
) -> None:
    with boards(node, *now, instead_of=before):
        run = site()
        assert run.code == 0, run.messages
        uuids = gpu_uuids(node)
        assert len(uuids) == len(now)
        assert allocatable(node) == {"nvidia.com/gpu": str(len(now))}
        with pod("other-boards", gpus=len(now), node=node) as name:
            assert ended(name) == "Succeeded", kubectl("logs", name, check=False)
            assert log_uuids(name) == uuids
    assert site().code == 0
    assert allocatable(node) == {"nvidia.com/gpu": str(len(before))}


def without(path: str) -> list[dict[str, str]]:
    return [{"op": "remove", "path": f"{PATH}/{path}"}]


def named(items: list[dict[str, str]], name: str) -> int:
    return next(index for index, item in enumerate(items) if item["name"] == name)


@pytest.mark.parametrize(
    "field", ["runtimeClassName", "privileged", "DEVICE_LIST_STRATEGY", "cdi", "driver-root", "device-plugins"]
)
def test_each_field_of_the_plugin_is_needed(converged: Run, field: str) -> None:
    spec = get(*DAEMON_SET)["spec"]["template"]["spec"]
    container = spec["containers"][0]
    patch = {
        "runtimeClassName": lambda: without("runtimeClassName"),
        "privileged": lambda: without("containers/0/securityContext/privileged"),
        "DEVICE_LIST_STRATEGY": lambda: without(f"containers/0/env/{named(container['env'], field)}"),
        "cdi": lambda: without(f"containers/0/volumeMounts/{named(container['volumeMounts'], field)}"),
        "driver-root": lambda: without(f"containers/0/volumeMounts/{named(container['volumeMounts'], field)}"),
        "device-plugins": lambda: without(f"containers/0/volumeMounts/{named(container['volumeMounts'], field)}"),
    }[field]()
    kubectl("patch", *DAEMON_SET, "--type=json", "-p", json.dumps(patch))
    try:
        assert not gpu_pod_works("gpu-a"), f"the plugin does its work without {field}"
    finally:
        kubectl("patch", *DAEMON_SET, "--type=json", "-p", json.dumps([{"op": "replace", "path": PATH, "value": spec}]))


def test_with_all_fields_it_works(converged: Run) -> None:
    assert gpu_pod_works("gpu-a")
    # The patches of the test before took fields over; the first run takes them back.
    for expected in ({"Apply the objects"}, set()):
        run = site()
        assert run.code == 0, run.messages
        assert run.changed_tasks == expected


def test_a_plugin_that_cannot_start_is_no_success(converged: Run) -> None:
    try:
        run = site("--limit", "gpu-b", device_plugin_version="v0.0.0", device_plugin_timeout=20)
        assert run.code != 0
        assert "gpu-b" in run.messages
        assert "ImagePull" in run.messages
    finally:
        assert site().code == 0


def test_a_node_whose_board_was_pulled_is_released(converged: Run) -> None:
    with boards("gpu-b", instead_of=("t4",)):
        run = site()
        assert run.code == 0, run.messages
        assert run.report["gpu-b"] == "gpu-b: This host has no NVIDIA GPU."
        assert not [
            name for name in get("node", "gpu-b")["metadata"]["labels"] if "nvidia" in name or "kubegpu" in name
        ]
        until(lambda: allocatable("gpu-b") == {}, "nothing is advertised")
    run = site()
    assert run.code == 0, run.messages
    assert allocatable("gpu-b") == {"nvidia.com/gpu": "1"}


def restart_plugin(node: str) -> None:
    """The plugin's pod anew, as its template says now, when nothing is left of what the one before did."""
    kubectl("label", "node", node, f"{CLIENTS}=paused", "--overwrite")
    until(lambda: not allocatable(node), "the plugin before is gone", 40)
    on(node, "sh", "-c", "rm -f /var/run/cdi/k8s.device-plugin*")
    kubectl("label", "node", node, f"{CLIENTS}=run", "--overwrite")


def gpu_pod_works(node: str) -> bool:
    """Whether a pod on the node gets a GPU once the plugin has had time to start."""
    restart_plugin(node)
    with contextlib.suppress(AssertionError):
        until(lambda: allocatable(node), "a GPU is advertised", 25)
        with pod("field-needed", gpus=1, node=node) as name:
            return ended(name, 30) == "Succeeded"
    return False
