# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that the roles refuse before a change: of kinds that the testbed does not have."""

from __future__ import annotations

import copy
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

H100 = {
    "address": "0000:1a:00.0",
    "kind": "gpu",
    "usable": True,
    "generation": "hopper",
    "supports_open_modules": True,
    "driver": None,
}
HOST: dict[str, Any] = {
    "present": True,
    "reason": "",
    "missing": [],
    "host": {
        "os": {"id": "debian", "id_like": [], "major": "13", "name": "Debian GNU/Linux 13"},
        "architecture": "x86_64",
        "kernel": "6.12.57+deb13-amd64",
        "machine_id": "0" * 32,
        "system_uuid": None,
        "addresses": [],
    },
    "pci": [H100],
    "driver": {"loaded": None, "packages": {}},
    "gpus": [],
    "runtimes": [{"name": "containerd", "version": "1.7.24"}],
}
PACKAGES = {"nvidia-driver-cuda": "580.178.04-1", "nvidia-kernel-open-dkms": "580.178.04-1"}
CONTAINERD_2 = {"name": "containerd", "version": "2.2.1"}


def host(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(HOST), **changes}


def loaded(version: str, flavour: str, packages: dict[str, str]) -> dict[str, Any]:
    return host(driver={"loaded": {"version": version, "flavour": flavour}, "packages": packages})


def check(role: str, described: dict[str, Any], checks: str = "preflight", **variables: Any) -> tuple[int, str]:
    given = {"role": role, "described": described, "checks": checks, **variables}
    done = subprocess.run(
        ["ansible-playbook", "-i", "localhost,", str(Path(__file__).parent / "preflight.yml"), "-e", json.dumps(given)],
        env=dict(os.environ, ANSIBLE_CALLBACK_RESULT_FORMAT="json", ANSIBLE_NOCOLOR="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(done.stdout)
    return done.returncode, done.stdout


UBUNTU = host(
    host={**HOST["host"], "os": {"id": "ubuntu", "id_like": ["debian"], "major": "24", "name": "Ubuntu 24.04"}}
)


@pytest.mark.parametrize(
    ("role", "described", "says"),
    [
        pytest.param("nvidia_driver", UBUNTU, "does not support Ubuntu 24.04", id="distribution"),
        pytest.param(
            "nvidia_driver",
            host(host={**HOST["host"], "architecture": "ppc64le"}),
            "on ppc64le. Supported: debian13 on x86_64",
            id="architecture",
        ),
        pytest.param(
            "nvidia_driver",
            host(pci=[{**H100, "supports_open_modules": False}]),
            "0000:1a:00.0",
            id="needs proprietary",
        ),
        pytest.param(
            "nvidia_driver",
            host(pci=[H100, {**H100, "kind": "nvswitch", "usable": False}]),
            "Fabric Manager",
            id="NVSwitch",
        ),
        pytest.param(
            "nvidia_driver", host(pci=[{**H100, "driver": "nouveau"}]), "nouveau holds the GPUs", id="nouveau"
        ),
        pytest.param("nvidia_driver", loaded("570.211.01", "open", PACKAGES), "Driver 570.211.01", id="other branch"),
        pytest.param(
            "nvidia_driver",
            loaded("580.178.04", "proprietary", PACKAGES),
            "(proprietary kernel modules)",
            id="other flavour",
        ),
        pytest.param("nvidia_driver", loaded("580.178.04", "open", {}), "from the packages", id="not from packages"),
        pytest.param(
            "nvidia_driver",
            host(pci=[], present=False, reason="The PCI bus cannot be read (Permission denied: /sys)."),
            "cannot be read (Permission denied",
            id="PCI bus unreadable",
        ),
        pytest.param("container_toolkit", UBUNTU, "does not support Ubuntu 24.04", id="toolkit: distribution"),
        pytest.param(
            "container_toolkit", host(runtimes=[CONTAINERD_2]), "This host has containerd 2.2.1", id="containerd 2"
        ),
        pytest.param("container_toolkit", host(runtimes=[]), "no container runtime", id="no runtime"),
        pytest.param(
            "container_toolkit",
            host(runtimes=[*HOST["runtimes"], CONTAINERD_2]),
            "containerd 1.7.24, containerd 2.2.1",
            id="two runtimes",
        ),
    ],
)
def test_a_host_that_cannot_work_is_refused(role: str, described: dict[str, Any], says: str) -> None:
    code, output = check(role, described)
    assert code != 0
    assert says in output


MIXED = {"version": "v1", "flags": {"migStrategy": "mixed"}}


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        pytest.param(
            {"device_plugin_config_name": "x"},
            "device_plugin_config_name is x, and device_plugin_configs has only default.",
            id="name",
        ),
        pytest.param({"device_plugin_configs": {"default": {"flags": {"migStrategy": "mixd"}}}}, "mixd", id="strategy"),
        pytest.param({"device_plugin_configs": {"default": "version: v1"}}, "not as text", id="text"),
        pytest.param(
            {"device_plugin_configs": {"default": MIXED, "other": {**MIXED, "sharing": {"timeSlicing": {}}}}},
            "sharing (time-slicing or MPS)",
            id="sharing",
        ),
    ],
)
def test_a_configuration_of_the_device_plugin_that_cannot_be_used(variables: dict[str, Any], says: str) -> None:
    code, output = check("device_plugin", HOST, checks="check_configs", **variables)
    assert code != 0
    assert says in output


@pytest.mark.parametrize(
    "config", [{}, MIXED, {"version": "v1"}, {"flags": None}, {"sharing": {}}, {"flags": {"migStrategy": "none"}}]
)
def test_a_configuration_of_the_device_plugin_that_can_be_used(config: dict[str, Any]) -> None:
    assert check("device_plugin", HOST, checks="check_configs", device_plugin_configs={"default": config})[0] == 0


@pytest.mark.parametrize("role", ["container_toolkit", "device_plugin"])
def test_an_injection_that_is_not_there_is_refused_before_a_change(role: str) -> None:
    code, output = check(role, HOST, kubegpu_injection="runtime")
    assert code != 0
    assert "value of kubegpu_injection must be one of: cdi" in output


@pytest.mark.parametrize(
    "described",
    [
        pytest.param(HOST, id="bare"),
        pytest.param(loaded("580.178.04", "open", PACKAGES), id="driver that is wanted"),
        pytest.param(host(pci=[], present=False, reason="This host has no NVIDIA GPU."), id="no GPU"),
        pytest.param(
            host(
                pci=[{**H100, "usable": False, "driver": "vfio-pci"}], host={**HOST["host"], "architecture": "ppc64le"}
            ),
            id="GPUs of virtual machines",
        ),
    ],
)
def test_a_host_that_can_work_passes(described: dict[str, Any]) -> None:
    assert check("nvidia_driver", described)[0] == 0
