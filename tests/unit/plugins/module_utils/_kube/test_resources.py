# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.resources import (
    advertised_resources,
    describe,
    expected_resources,
    is_as_expected,
    unusable_gpus,
)

LOST = {"error": "GPU_IS_LOST", "code": 15, "message": "it has fallen off the bus"}


def gpu(index=0, mig=None, error=None):
    return {"uuid": f"GPU-{index}", "pci_address": f"0000:{index:02x}:00.0", "mig": mig, "error": error}


@pytest.mark.parametrize(
    "gpus, expected",
    [
        ([], {}),
        ([gpu()], {"nvidia.com/gpu": 1}),
        ([gpu(0), gpu(1, mig={"current": "disabled", "pending": "enabled"})], {"nvidia.com/gpu": 2}),
        ([gpu(0), gpu(1, error=LOST)], {"nvidia.com/gpu": 1}),
        ([gpu(0, error=LOST)], {}),
        ([gpu(0, mig={"current": None, "pending": None})], {"nvidia.com/gpu": 1}),
    ],
)
def test_expected(gpus, expected):
    assert expected_resources(gpus) == expected


def test_mig_is_refused():
    with pytest.raises(KubegpuError, match=r"GPU GPU-1 \(0000:01:00.0\) is in MIG mode"):
        expected_resources([gpu(0), gpu(1, mig={"current": "enabled", "pending": "enabled"})])


def test_unusable_gpus_are_named():
    assert unusable_gpus([gpu(0), gpu(1, error=LOST)]) == ["GPU GPU-1 (0000:01:00.0): it has fallen off the bus"]


@pytest.mark.parametrize(
    "allocatable, expected, agree",
    [
        ({"cpu": "2"}, {}, True),
        ({"nvidia.com/gpu": "0"}, {}, True),
        ({"nvidia.com/gpu": "2", "cpu": "2"}, {"nvidia.com/gpu": 2}, True),
        ({"nvidia.com/gpu": "2", "nvidia.com/mig-1g.10gb": "0"}, {"nvidia.com/gpu": 2}, True),
        ({"nvidia.com/gpu": "2", "nvidia.com/mig-1g.10gb": "7"}, {"nvidia.com/gpu": 2}, False),
        ({"nvidia.com/gpu.shared": "20"}, {"nvidia.com/gpu": 2}, False),
        ({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": 2}, False),
        ({"nvidia.com/gpu": "1k"}, {"nvidia.com/gpu": 2}, False),
        ({}, {"nvidia.com/gpu": 2}, False),
        ({"example.com/gpu": "2"}, {}, True),
        ({"nvidia.com/gpu": "2", "nvidia.com/hostdev": "8"}, {"nvidia.com/gpu": 2}, True),
        ({"nvidia.com/GH100_H100_SXM5_80GB": "4"}, {}, True),
    ],
)
def test_advertised(allocatable, expected, agree):
    assert is_as_expected(expected, advertised_resources({"status": {"allocatable": allocatable}})) is agree


@pytest.mark.parametrize("name", ["gpu", "gpu.shared", "mig-1g.10gb", "mig-1g.10gb.me", "mig-3g.40gb.shared"])
def test_a_resource_of_the_device_plugin(name):
    node = {"status": {"allocatable": {f"nvidia.com/{name}": "2"}}}
    assert advertised_resources(node) == {f"nvidia.com/{name}": 2}


@pytest.mark.parametrize("name", ["hostdev", "GH100_H100_SXM5_80GB", "gpu-foreign", "gpu.sharedx", "pgpu", "mig"])
def test_a_resource_of_somebody_else(name):
    node = {"status": {"allocatable": {f"nvidia.com/{name}": "2"}}}
    assert advertised_resources(node) == {}


def test_nothing_is_described_as_what_was_looked_for():
    assert describe({}) == "no nvidia.com/gpu or nvidia.com/mig-*"


def test_capacity_does_not_count():
    node = {"status": {"capacity": {"nvidia.com/gpu": "2"}}}
    assert advertised_resources(node) == {}
