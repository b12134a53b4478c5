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


def sliced(index, *gpu_instances):
    """A GPU in MIG mode; each GPU instance is its profile, or a profile with the compute instances that it has."""
    instances = [each if isinstance(each, tuple) else (each, [each]) for each in gpu_instances]
    facts = [
        {"profile": profile, "compute_instances": [{"profile": name} for name in compute]}
        for profile, compute in instances
    ]
    return gpu(index, mig={"current": "enabled", "pending": "enabled", "instances": facts})


OFF = {"current": "disabled", "pending": "enabled", "instances": None}
ANY = ("none", "single", "mixed")
SEVEN = ["1g.10gb"] * 7


@pytest.mark.parametrize("strategy", ANY)
@pytest.mark.parametrize(
    "gpus, expected",
    [
        ([], {}),
        ([gpu()], {"nvidia.com/gpu": 1}),
        ([gpu(0), gpu(1, mig=OFF)], {"nvidia.com/gpu": 2}),
        ([gpu(0), gpu(1, error=LOST)], {"nvidia.com/gpu": 1}),
        ([gpu(0, error=LOST)], {}),
        ([gpu(0, mig={"current": None, "pending": None, "instances": None})], {"nvidia.com/gpu": 1}),
    ],
)
def test_whole_gpus(gpus, strategy, expected):
    assert expected_resources(gpus, strategy) == expected


@pytest.mark.parametrize(
    "gpus, none, single, mixed",
    [
        ([sliced(0, *SEVEN)], 1, 7, {"mig-1g.10gb": 7}),
        ([sliced(0, *SEVEN), sliced(1, *SEVEN)], 2, 14, {"mig-1g.10gb": 14}),
        ([sliced(0, *SEVEN), gpu(1, error=LOST)], 1, 7, {"mig-1g.10gb": 7}),
        ([gpu(0, error=LOST), sliced(1, "1g.10gb+me")], 1, 1, {"mig-1g.10gb.me": 1}),
        ([sliced(0, "1g.24gb-me", "1g.24gb-me")], 1, 2, {"mig-1g.24gb-me": 2}),
        ([sliced(0, "1g.24gb+me.all")], 1, 1, {"mig-1g.24gb.me.all": 1}),
        ([sliced(0, *SEVEN), gpu(1)], 2, "GPU GPU-0", {"gpu": 1, "mig-1g.10gb": 7}),
        ([sliced(0, "3g.40gb", *SEVEN[:4])], 1, "1g.10gb, 3g.40gb", {"mig-3g.40gb": 1, "mig-1g.10gb": 4}),
        ([sliced(0, "7g.80gb"), sliced(1, "1g.10gb+me")], 2, "1g.10gb+me, 7g", {"mig-7g.80gb": 1, "mig-1g.10gb.me": 1}),
        (
            [sliced(0, "7g.80gb"), sliced(1)],
            2,
            "GPU GPU-1 (0000:01:00.0) is in MIG mode and has no",
            {"mig-7g.80gb": 1},
        ),
        ([sliced(0)], 1, "has no MIG device", {}),
        ([sliced(0, ("3g.40gb", [])), gpu(1)], 2, "others of this node are not", {"gpu": 1}),
        ([sliced(0, ("3g.40gb", ["1c.3g.40gb"] * 3))], 1, 3, "a compute instance 1c.3g.40gb"),
        (
            [sliced(0, ("3g.40gb", ["1c.3g.40gb", "2c.3g.40gb"]))],
            1,
            "different profiles",
            "1c.3g.40gb, which is not all",
        ),
        (
            [
                gpu(0),
                sliced(1, "3g.40gb", "3g.40gb"),
                sliced(2, "1g.10gb+me", ("2g.20gb", [])),
                sliced(3),
                gpu(4, error=LOST),
            ],
            4,
            "others of this node are not",
            {"gpu": 1, "mig-3g.40gb": 2, "mig-1g.10gb.me": 1},
        ),
    ],
)
def test_gpus_in_mig_mode(gpus, none, single, mixed):
    """A text is part of the error."""
    for strategy, expected in (("none", none), ("single", single), ("mixed", mixed)):
        if isinstance(expected, str):
            with pytest.raises(KubegpuError) as error:
                expected_resources(gpus, strategy)
            assert expected in str(error.value)
            assert f"MIG strategy {strategy}" in str(error.value)
        else:
            named = expected if isinstance(expected, dict) else {"gpu": expected}
            assert expected_resources(gpus, strategy) == {f"nvidia.com/{name}": count for name, count in named.items()}


@pytest.mark.parametrize("mig", [{"current": "enabled", "instances": None}, {"current": "enabled"}])
def test_mig_instances_that_nobody_knows(mig):
    for strategy in ("single", "mixed"):
        with pytest.raises(KubegpuError, match=r"GPU GPU-1 \(0000:01:00.0\) is in MIG mode, but its facts do not tell"):
            expected_resources([gpu(0), gpu(1, mig=mig)], strategy)
    assert expected_resources([gpu(0), gpu(1, mig=mig)], "none") == {"nvidia.com/gpu": 2}


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
