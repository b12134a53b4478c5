# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.intent import intents
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.model import ComputeInstance, GpuInstance
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.wish import Wish, WishedInstance
from ansible_collections.kubegpu.nvidia.plugins.module_utils._nvml import Failure, Gpu
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._mig.boards import A100_80, H100_80

A = "0000:1a:00.0"
OFF = Wish("disabled")
ON = Wish("enabled")


def wish(**counts):
    return Wish(
        "enabled", tuple(WishedInstance(name.lstrip("_").replace("_", "."), count=n) for name, n in counts.items())
    )


def gpu(current="disabled", pending=None, instances=None, generation="hopper", **others):
    return Gpu(
        0,
        uuid="GPU-a",
        pci_address=A,
        name="NVIDIA H100 80GB HBM3",
        generation=generation,
        mig_current=current,
        mig_pending=pending or current,
        mig_instances=instances,
        **others,
    )


def there(profile, start, number, in_use=False):
    return GpuInstance(number, profile, start, (ComputeInstance(0, int(profile[0]), in_use=in_use),))


def intent(wished, found, offered=H100_80):
    (only,) = intents({A: wished}, [found], {A: offered})
    return only


def test_mig_comes_with_its_instances():
    found = intent(wish(_1g_10gb=2), gpu())
    assert found.changed and found.changes_mode and not found.resets
    assert found.disruption() == [f"NVIDIA H100 80GB HBM3 at {A}: MIG mode becomes enabled"]
    assert found.outcome()["after"] == {
        "mode": "enabled",
        "instances": [
            {"profile": "1g.10gb", "start": 0, "compute_instances": ["1g.10gb"]},
            {"profile": "1g.10gb", "start": 1, "compute_instances": ["1g.10gb"]},
        ],
    }


@pytest.mark.parametrize(
    ("generation", "resets"), [("ampere", True), ("hopper", False), ("blackwell", False), (None, True)]
)
def test_who_is_reset_by_a_change_of_the_mode(generation, resets):
    assert intent(ON, gpu(generation=generation)).resets is resets
    assert not intent(OFF, gpu(generation=generation)).resets


def test_nothing_to_do_is_nothing():
    found = intent(wish(_3g_40gb=1), gpu("enabled", instances=(there("3g.40gb", 0, 2),)))
    assert not found.changed
    assert found.disruption() == []
    assert [each["profile"] for each in found.outcome()["kept"]] == ["3g.40gb"]


@pytest.mark.parametrize(("current", "wished"), [("disabled", OFF), ("enabled", ON)])
def test_a_pending_mode_that_nobody_wants_is_taken_back_without_a_reset(current, wished):
    other = "enabled" if current == "disabled" else "disabled"
    found = intent(wished, gpu(current, other, instances=() if current == "enabled" else None, generation="ampere"))
    assert found.sets_mode and found.changed
    assert not found.changes_mode and not found.resets
    assert found.disruption() == []


def test_a_mode_that_a_dead_run_left_pending_still_has_to_come():
    found = intent(ON, gpu("disabled", "enabled", generation="ampere"))
    assert found.sets_mode and found.changes_mode and found.resets


def test_more_instances_disturb_nobody():
    found = intent(wish(_3g_40gb=1, _1g_10gb=1), gpu("enabled", instances=(there("3g.40gb", 4, 2, in_use=True),)))
    assert found.disruption() == [] and found.busy == ()
    assert [each["start"] for each in found.outcome()["created"]] == [0]


def test_instances_that_go_are_named():
    found = intent(wish(_7g_80gb=1), gpu("enabled", instances=(there("1g.10gb", 6, 13), there("3g.40gb", 0, 2))))
    assert found.disruption() == [f"NVIDIA H100 80GB HBM3 at {A}: destroys 3g.40gb@0, 1g.10gb@6"]


def test_work_in_the_way_is_known_together_with_what_would_be_done():
    busy = there("3g.40gb", 0, 2, in_use=True)
    found = intent(wish(_7g_80gb=1), gpu("enabled", instances=(busy,)))
    assert found.busy == (busy,)
    assert [each["profile"] for each in found.outcome()["created"]] == ["7g.80gb"]


def test_switching_off_destroys_what_is_there():
    found = intent(OFF, gpu("enabled", instances=(there("3g.40gb", 0, 2),)))
    assert found.disruption() == [
        f"NVIDIA H100 80GB HBM3 at {A}: MIG mode becomes disabled",
        f"NVIDIA H100 80GB HBM3 at {A}: destroys 3g.40gb@0",
    ]
    assert found.outcome()["after"] == {"mode": "disabled", "instances": []}


def test_switching_off_needs_no_list_of_profiles():
    assert intent(OFF, gpu("enabled", instances=(there("3g.40gb", 0, 2),)), offered=()).changed


def test_a_driver_that_lists_no_profiles_while_mig_is_off():
    with pytest.raises(KubegpuError, match=f"{A}: its driver cannot list MIG profiles while MIG is off.*mode: enabled"):
        intent(wish(_3g_40gb=1), gpu(), offered=())
    assert intent(ON, gpu(), offered=()).changed


def test_without_root_nobody_knows_what_is_there():
    with pytest.raises(KubegpuError, match="needs root. Run the task with become"):
        intent(wish(_3g_40gb=1), gpu("enabled", instances=None))


def test_all_that_cannot_be_had_is_said_at_once():
    other = gpu()
    other.pci_address = "0000:1c:00.0"
    wishes = {A: wish(_3g_40gb=3), other.pci_address: wish(_9g_90gb=1)}
    with pytest.raises(KubegpuError) as raised:
        intents(wishes, [gpu(), other], {A: H100_80, other.pci_address: A100_80})
    first, second = str(raised.value).split("\n", 1)
    assert A in first and "3g.40gb" in first
    assert other.pci_address in second and "9g.90gb" in second


def test_gpus_without_a_wish_and_broken_ones_are_left_out():
    broken = gpu(error=Failure("GPU_IS_LOST", 15, "The GPU has fallen off the bus."))
    assert intents({}, [gpu()], {A: H100_80}) == []
    assert intents({A: ON}, [broken], {A: ()}) == []
