# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How MIG devices get into containers: the kernel's capabilities, and what NVIDIA's container toolkit makes of them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from simulated_node import HERE, Node

pytest.importorskip("pynvml")

MINORS = "/proc/driver/nvidia-caps/mig-minors"
FILES = "/proc/driver/nvidia/capabilities"


@pytest.fixture
def mig(node: Node) -> Node:
    """The first GPU, which has two MIG devices, and one without MIG."""
    node.plug("h100-80", "t4")
    node.load()
    assert node.nvml("[set_mode(0, 1), create(0, '3g.40gb', 4), create(0, '1g.10gb', 0)]")
    return node


@pytest.fixture(scope="session")
def toolkit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """NVIDIA's nvidia-ctk."""
    done = subprocess.run([HERE.parent / "packages" / "build.sh"], stdout=subprocess.PIPE, text=True, check=True)
    (package,) = Path(done.stdout.strip()).glob("**/nvidia-container-toolkit-base_*.deb")
    root = tmp_path_factory.mktemp("toolkit")
    subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    return root / "usr" / "bin" / "nvidia-ctk"


def minors(node: Node) -> dict[str, int]:
    """What the kernel lists once and for all."""
    pairs = (line.split() for line in node.run("cat", MINORS).stdout.splitlines())
    return {capability: int(minor) for capability, minor in pairs}


def granted(node: Node) -> dict[str, int]:
    """The capabilities that exist now, without the mig/ in their paths, each checked for its device node."""
    found = {}
    for line in node.run("grep", "-r", "DeviceFileMinor", FILES).stdout.splitlines():
        file, _, minor = line.removeprefix(f"{FILES}/").partition(":DeviceFileMinor: ")
        found[file.replace("mig/", "", 1)] = int(minor)
    mode = {minor: "400" if file == "config" else "444" for file, minor in found.items()}
    nodes = node.run("sh", "-c", "stat -c '%n %a %T' /dev/nvidia-caps/*").stdout.split()
    expected = [(f"/dev/nvidia-caps/nvidia-cap{minor}", mode[minor], f"{minor:x}") for minor in found.values()]
    assert sorted(zip(nodes[::3], nodes[1::3], nodes[2::3])) == sorted(expected)
    return found


def test_list_of_numbers(mig: Node) -> None:
    """As the real kernel module gives them: 9 for a GPU instance, 15 GPU instances for a GPU."""
    listed = minors(mig)
    assert listed["config"] == 1 and listed["monitor"] == 2
    assert [listed[f"gpu0/gi0/{path}"] for path in ("access", "ci0/access", "ci7/access")] == [3, 4, 11]
    assert listed["gpu0/gi1/access"] == 12
    assert [listed["gpu0/gi14/ci7/access"], listed["gpu1/gi0/access"]] == [137, 138]
    assert len(set(listed.values())) == len(listed)


def test_capabilities_follow_the_instances(mig: Node) -> None:
    first, second = mig.nvml("[ids(0)[4], ids(0)[0]]")

    def expected(*files: str) -> dict[str, int]:
        return {file: minors(mig)[file] for file in ("config", "monitor", *files)}

    of_first = (f"gpu0/gi{first}/access", f"gpu0/gi{first}/ci0/access")
    of_second = (f"gpu0/gi{second}/access", f"gpu0/gi{second}/ci0/access")
    assert granted(mig) == expected(*of_first, *of_second)
    assert mig.nvml("nvmlComputeInstanceDestroy(compute_instances(instance(0, 0))[0])") == 0
    assert granted(mig) == expected(*of_first, of_second[0])
    assert mig.nvml("nvmlGpuInstanceDestroy(instance(0, 0))") == 0
    assert granted(mig) == expected(*of_first)
    mode = mig.run("cat", f"{FILES}/gpu0/mig/gi{first}/access").stdout
    assert mode == f"DeviceFileMinor: {minors(mig)[of_first[0]]}\nDeviceFileMode: 292\nDeviceFileModify: 1\n"
    assert mig.nvml("set_mode(0, 0)") == 0
    assert granted(mig) == expected()
    assert mig.run("simgpu", "unload").returncode == 0
    assert mig.run("ls", "/dev/nvidia-caps", MINORS, FILES).stdout == ""


def test_reset_and_reload_withdraw_them(mig: Node) -> None:
    assert mig.run("nvidia-smi", "-r", "-i", "0").returncode == 0
    assert set(granted(mig)) == {"config", "monitor"}
    assert mig.nvml("create(0, '1g.10gb', 0)") >= 0
    assert len(granted(mig)) == 4
    assert mig.run("simgpu", "unload").returncode == 0
    mig.load()
    assert set(granted(mig)) == {"config", "monitor"}


def test_container_sees_the_mig_device_whose_capabilities_it_has(mig: Node) -> None:
    gi = mig.nvml("ids(0)[4]")
    own, other = mig.nvml("mig_uuids(0)")
    listed = minors(mig)
    nodes = tuple(f"nvidia-caps/nvidia-cap{listed[f'gpu0/gi{gi}/{path}']}" for path in ("access", "ci0/access"))
    inside = mig.in_container(devices=("nvidia0", *nodes))
    assert mig.nvml("nvmlDeviceGetCount()", inside) == 1
    assert mig.nvml("mig_uuids(0)", inside) == [own]
    assert mig.nvml(f"nvmlDeviceGetHandleByUUID({other!r})", inside) == 6
    assert mig.nvml("mig_uuids(0)", mig.in_container(devices=("nvidia0", nodes[0]))) == []
    # Its work is seen from the node, with its place.
    hold = mig.in_container(str(mig.build / "simgpu"), "hold", own, "--", "sh", "-c", "echo holding; read end",
                            devices=("nvidia0", *nodes))  # fmt: skip
    work = mig.start(*hold)
    assert work.stdout and work.stdout.readline() == "holding\n"
    assert mig.nvml("[p.gpuInstanceId for p in nvmlDeviceGetComputeRunningProcesses(gpu(0))]") == [gi]
    work.communicate("end\n", timeout=10)


def test_nvidia_ctk_describes_mig_devices(mig: Node, toolkit: Path) -> None:
    done = mig.run(
        str(toolkit), "cdi", "generate", "--format=json", "--device-name-strategy=index", "--device-name-strategy=uuid",
        f"--library-search-path={mig.build}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    nodes = {
        device["name"]: [node["path"] for node in device["containerEdits"]["deviceNodes"]]
        for device in json.loads(done.stdout)["devices"]
    }
    listed = minors(mig)
    for index, (uuid, start) in enumerate(zip(mig.nvml("mig_uuids(0)"), (4, 0))):
        gi = mig.nvml(f"ids(0)[{start}]")
        numbers = [listed[f"gpu0/gi{gi}/{path}"] for path in ("access", "ci0/access")]
        assert nodes[uuid] == ["/dev/nvidia0", *(f"/dev/nvidia-caps/nvidia-cap{number}" for number in numbers)]
        assert nodes[f"0:{index}"] == nodes[uuid]
    # A GPU in MIG mode is no device of its own.
    assert sorted(name for name in nodes if re.fullmatch(r"\d+", name)) == ["1"]
