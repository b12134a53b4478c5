# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From bare hosts to pods with GPUs, and the runs after that."""

from __future__ import annotations

import pytest
from pod_resources import devices_of
from pods import ended, log_uuids, phase, pod
from running import Run, allocatable, get, gpu_uuids, kubectl, on, site, until

# Module executions on a host in a run without a difference; the number is printed, this is the ceiling.
EXECUTIONS = 10


def test_nodes_advertise_exactly_their_gpus(converged: Run) -> None:
    assert {node: allocatable(node) for node in ("gpu-a", "gpu-b", "cpu-a")} == {
        "gpu-a": {"nvidia.com/gpu": str(len(gpu_uuids("gpu-a")))},
        "gpu-b": {"nvidia.com/gpu": str(len(gpu_uuids("gpu-b")))},
        "cpu-a": {},
    }
    assert [len(gpu_uuids("gpu-a")), len(gpu_uuids("gpu-b"))] == [2, 1]


@pytest.mark.parametrize("node", ["gpu-a", "gpu-b"])
def test_all_tools_name_the_same_gpus(converged: Run, node: str) -> None:
    listed = on(node, "nvidia-ctk", "cdi", "list").splitlines()
    assert sorted(
        line.partition("nvidia.com/gpu=")[2] for line in listed if line.startswith("nvidia.com/gpu=GPU-")
    ) == gpu_uuids(node)
    script = (
        "import pynvml as n; n.nvmlInit(); "
        "print(*(n.nvmlDeviceGetUUID(n.nvmlDeviceGetHandleByIndex(i)) for i in range(n.nvmlDeviceGetCount())))"
    )
    assert sorted(on(node, "env", "PYTHONPATH=/usr/local/lib/kubegpu", "python3", "-c", script).split()) == gpu_uuids(
        node
    )
    for uuid in gpu_uuids(node):
        assert f"k8s.device-plugin.nvidia.com/gpu={uuid}" in "\n".join(listed)


def test_the_report_says_what_each_host_has(converged: Run) -> None:
    assert converged.report["gpu-a"].startswith("gpu-a: 2x NVIDIA H100 80GB HBM3 | driver 580.178.04 | containerd 1.7")
    assert "| nvidia.com/gpu=2 |" in converged.report["gpu-a"]
    assert converged.report["gpu-b"].startswith("gpu-b: 1x Tesla T4 | driver 580.178.04 | containerd 1.7")
    assert "| nvidia.com/gpu=1 |" in converged.report["gpu-b"]


def test_a_host_without_gpu_is_passed_over(converged: Run) -> None:
    assert converged.report["cpu-a"] == "cpu-a: This host has no NVIDIA GPU."
    assert not [name for name in get("node", "cpu-a")["metadata"]["labels"] if "nvidia" in name or "kubegpu" in name]
    assert "nvidia" not in on("cpu-a", "dpkg-query", "-W")
    assert (
        on("cpu-a", "find", "/usr/local/lib", "/etc/containerd", "/etc/apt/sources.list.d", "-name", "*kubegpu*") == ""
    )


def test_a_pod_gets_what_kubelet_allocated(converged: Run) -> None:
    for node in ("gpu-a", "gpu-b"):
        with pod("one-gpu", gpus=1, node=node, arguments=("--hold", "60")) as name:
            until(lambda: phase("one-gpu") != "Pending", "pod one-gpu runs")
            seen = until(lambda: log_uuids("one-gpu"), "pod one-gpu prints its GPU", 15)
            assert seen == devices_of(node, name)["nvidia.com/gpu"]
            assert len(seen) == 1 and seen[0] in gpu_uuids(node)


def test_a_pod_completes_and_frees_its_gpus(converged: Run) -> None:
    for _ in range(2):
        with pod("all-gpus", gpus=2, node="gpu-a") as name:
            assert ended(name) == "Succeeded", kubectl("logs", name, check=False)
            assert log_uuids(name) == gpu_uuids("gpu-a")


def test_a_pod_that_asks_for_more_than_exists_stays_pending(converged: Run) -> None:
    with pod("too-many", gpus=3) as name:
        reason = until(
            lambda: [
                c["message"]
                for c in get("pod", name)["status"].get("conditions", [])
                if c.get("reason") == "Unschedulable"
            ],
            "the scheduler says why",
        )
        assert "Insufficient nvidia.com/gpu" in reason[0]
        assert phase(name) == "Pending"


@pytest.mark.parametrize("runtime_class", ["", "nvidia"])
@pytest.mark.parametrize("node", ["gpu-a", "gpu-b"])
def test_a_pod_without_a_request_sees_no_gpu(converged: Run, node: str, runtime_class: str) -> None:
    with pod("no-request", node=node, runtime_class=runtime_class, arguments=("--expect-none",)) as name:
        assert ended(name) == "Succeeded", kubectl("logs", name, check=False)


def test_the_next_run_changes_nothing(converged: Run, capsys: pytest.CaptureFixture[str]) -> None:
    generations = objects()
    run = site()
    assert run.code == 0, run.messages
    assert run.changed == []
    assert {host: totals["changed"] for host, totals in run.hosts.items()} == {"gpu-a": 0, "gpu-b": 0, "cpu-a": 0}
    assert all("unchanged" in run.report[host] for host in ("gpu-a", "gpu-b"))
    assert objects() == generations
    with capsys.disabled():
        print(f"\nmodule executions on each host without a difference: {run.executions}")
    assert all(0 < run.executions[host] <= EXECUTIONS for host in ("gpu-a", "gpu-b"))
    assert run.executions["cpu-a"] == 1


def test_check_mode_of_converged_hosts_finds_nothing(converged: Run) -> None:
    run = site("--check", "--diff")
    assert run.code == 0, run.messages
    assert run.changed == []
    assert run.diffs == []


@pytest.mark.parametrize(
    "tags",
    [
        "nvidia_driver",
        "nvidia_driver_verify",
        "nvidia_driver_configure,container_toolkit_configure",
        "container_toolkit",
        "device_plugin",
        "device_plugin_verify",
    ],
)
def test_a_part_by_its_tags(converged: Run, tags: str) -> None:
    run = site("--limit", "gpu-b", "--tags", tags)
    assert run.code == 0, run.messages
    assert run.changed == []


def objects() -> dict[str, str]:
    """resourceVersion of each object of ours."""
    listed = get(
        "namespace,runtimeclass,serviceaccount,daemonset", "-A", "-l", "app.kubernetes.io/managed-by=kubegpu.nvidia"
    )
    versions = {
        f"{item['kind']} {item['metadata']['name']}": item["metadata"]["resourceVersion"] for item in listed["items"]
    }
    assert len(versions) == 4
    return versions
