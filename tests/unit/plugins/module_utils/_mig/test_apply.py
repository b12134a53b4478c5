# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.apply import NotApplied, bring_about
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.model import Instance, layout_of
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._mig.boards import A100_80
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._mig.fake_gpu import FakeGpu

FIVE = (*(Instance("1g.10gb", start, (1,)) for start in range(4)), Instance("3g.40gb", 4, (3,)))
THREE = (Instance("2g.20gb", 0, (2,)), Instance("2g.20gb", 2, (2,)), Instance("3g.40gb", 4, (3,)))
UNKNOWN = 999


def test_what_fits_is_not_touched():
    gpu = FakeGpu(A100_80, *FIVE)
    assert bring_about(gpu, FIVE).empty
    assert gpu.calls == []


def test_everything_is_destroyed_before_anything_is_created():
    gpu = FakeGpu(A100_80, *FIVE)
    kept = next(each for each in gpu.instances() if each.profile == "3g.40gb")
    bring_about(gpu, THREE)
    assert gpu.calls == [
        *("destroy compute", "destroy 1g.10gb@0", "destroy compute", "destroy 1g.10gb@1"),
        *("destroy compute", "destroy 1g.10gb@2", "destroy compute", "destroy 1g.10gb@3"),
        *("create 2g.20gb@0", "create compute 2", "create 2g.20gb@2", "create compute 2"),
    ]
    assert layout_of(gpu.instances()) == THREE
    assert kept in gpu.instances()


def test_compute_instances_are_changed_inside_a_gpu_instance_that_stays():
    gpu = FakeGpu(A100_80, Instance("3g.40gb", 4, (3,)))
    bring_about(gpu, (Instance("3g.40gb", 4, (2, 1)),))
    assert gpu.calls == ["destroy compute", "create compute 2", "create compute 1"]


def test_a_gpu_instance_that_a_dead_run_left_empty_gets_its_compute_instance():
    gpu = FakeGpu(A100_80, Instance("2g.20gb", 0, ()), Instance("3g.40gb", 4, (3,)))
    bring_about(gpu, (Instance("2g.20gb", 0, (2,)), Instance("3g.40gb", 4, (3,))))
    assert gpu.calls == ["create compute 2"]


@pytest.mark.parametrize("step", range(1, 13))
def test_a_step_that_fails_brings_the_former_layout_back(step):
    gpu = FakeGpu(A100_80, *FIVE, refuse={step: UNKNOWN})
    with pytest.raises(NotApplied, match="The former layout was restored: 1g.10gb@0, .*3g.40gb@4") as raised:
        bring_about(gpu, THREE)
    assert raised.value.restored
    assert layout_of(gpu.instances()) == FIVE


def test_the_error_names_step_and_reason():
    gpu = FakeGpu(A100_80, *FIVE, refuse={9: 23})
    with pytest.raises(NotApplied, match=r"Creating 2g.20gb@0 failed: INSUFFICIENT_RESOURCES. No free placement"):
        bring_about(gpu, THREE)


def test_when_restoring_fails_too_the_error_says_what_is_there():
    gpu = FakeGpu(A100_80, *FIVE, refuse={9: UNKNOWN, 10: UNKNOWN})
    with pytest.raises(NotApplied, match="could not be restored: .* There is now 3g.40gb@4") as raised:
        bring_about(gpu, THREE)
    assert not raised.value.restored


def test_a_driver_that_says_yes_and_does_nothing_is_found_out():
    gpu = FakeGpu(A100_80, Instance("3g.40gb", 4, (3,)))
    gpu.create_compute = lambda *arguments: None
    with pytest.raises(
        NotApplied, match=r"NVML shows 2g.20gb@0 \(no compute instance\), 3g.40gb@4 instead of 2g.20gb@0"
    ):
        bring_about(gpu, (Instance("2g.20gb", 0, (2,)), Instance("3g.40gb", 4, (3,))))


def test_a_profile_that_this_gpu_does_not_have_changes_nothing_for_good():
    gpu = FakeGpu(A100_80, Instance("3g.40gb", 4, (3,)))
    with pytest.raises(NotApplied, match="this GPU offers only 1g.10gb, "):
        bring_about(gpu, (Instance("3g.20gb", 0, (3,)),))
    assert layout_of(gpu.instances()) == (Instance("3g.40gb", 4, (3,)),)


@pytest.mark.parametrize(
    ("profile", "before", "after"),
    [
        ("3g.40gb", (1, 1, 1), (2, 1)),
        ("7g.80gb", (1,) * 7, (4, 1)),
        ("7g.80gb", (7,), (3, 2, 2)),
        ("7g.80gb", (), (3, 2, 2)),
    ],
)
def test_compute_instances_are_made_anew_where_the_old_ones_are_in_the_wrong_place(profile, before, after):
    gpu = FakeGpu(A100_80, Instance(profile, 0, before))
    bring_about(gpu, (Instance(profile, 0, after),))
    assert layout_of(gpu.instances()) == (Instance(profile, 0, after),)
    assert "create " + profile + "@0" not in gpu.calls
