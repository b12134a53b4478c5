# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.mig_parted import entries
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.wanted import WishError, wishes
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._mig.fake_targets import (
    A100_40,
    GIVEN_AWAY,
    LOST,
    T4,
    address,
    target,
)


def config(*listed, **others):
    return {"version": "v1", "mig-configs": {"mine": list(listed), **others}}


def entry(devices="all", profiles=None, enabled=True, **more):
    return {
        "devices": devices,
        "mig-enabled": enabled,
        **({} if profiles is None else {"mig-devices": profiles}),
        **more,
    }


OFF = entry(enabled=False)
THREES = {"3g.20gb": 2}
ONES = {"1g.10gb": 3}


def profiles_of(listed, targets, unmatched="keep"):
    """What is wanted by GPU number: profile counts, None for no MIG."""
    found = wishes(None, config(*listed), None, unmatched, targets)
    assert found.failed == {}
    return {
        number: {each.profile: each.count for each in wish.instances} if wish.mode == "enabled" else None
        for number, wish in ((number, found.by_address.get(address(number))) for number in range(8))
        if wish
    }


A100S = [target(0, **A100_40), target(1, **A100_40)]


@pytest.mark.parametrize(
    "listed, wanted",
    [
        ([entry("all", THREES)], {0: THREES, 1: THREES}),
        ([entry([0], THREES), entry([1], enabled=False)], {0: THREES, 1: None}),
        ([entry(["1"], THREES)], {1: THREES}),  # argument specs convert nothing, so numbers may be text
        ([entry([], THREES)], {}),
        ([entry("all", {"3g.20gb": "2", "1g.5gb": 0})], {0: THREES, 1: THREES}),
        ([entry("all", THREES, "yes")], {0: THREES, 1: THREES}),
        ([entry("all", enabled="False")], {0: None, 1: None}),
        ([entry("all", {}, enabled=False)], {0: None, 1: None}),
        ([entry("all", {})], {0: {}, 1: {}}),
        # M3: a GPU that no entry matches is left alone, and a filter that matches nothing is fine.
        ([entry([1], ONES)], {1: ONES}),
        ([entry("all", THREES, **{"device-filter": "0x233010DE"})], {}),
        ([entry("all", THREES, **{"device-filter": ["0x233010DE", "0x20b010de"]})], {0: THREES, 1: THREES}),
        ([entry("all", THREES, **{"device-filter": "0x20B010DE:0x134F10DE"})], {0: THREES, 1: THREES}),
        ([entry("all", THREES, **{"device-filter": "0x20B010DE:0x144E10DE"})], {}),
        ([entry("all", THREES, **{"device-filter": "0x20B01002"})], {}),
        ([entry([0], THREES, **{"device-filter": "0x233010DE"})], {}),
        # Entries that agree do not disturb each other.
        ([entry("all", THREES), entry([0], {"3g.20gb": 2, "1g.5gb": 0})], {0: THREES, 1: THREES}),
    ],
)
def test_which_gpus_an_entry_is_about(listed, wanted):
    assert profiles_of(listed, A100S) == wanted


def test_unmatched_gpus_can_be_wanted_without_mig():
    assert profiles_of([entry([1], ONES)], A100S, "disabled") == {0: None, 1: ONES}


def test_indices_count_in_pci_order_and_count_no_gpu_that_is_given_away():
    late = target(3, pci_address="0001:01:00.0")
    targets = [late, target(2), target(1, **GIVEN_AWAY), target(0)]
    found = wishes(None, config(entry([0], ONES), entry([2], THREES)), None, "keep", targets)
    assert {address: [each.profile for each in wish.instances] for address, wish in found.by_address.items()} == {
        address(0): ["1g.10gb"],
        "0001:01:00.0": ["3g.20gb"],
    }


def test_gpus_that_are_given_away_are_passed_over():
    listed = [entry("all", ONES), entry("all", THREES, **{"device-filter": "0x20B010DE"})]
    targets = [target(0), target(1, **GIVEN_AWAY, device=0x20B0)]
    found = wishes(None, config(*listed), None, "keep", targets)
    assert list(found.by_address) == [address(0)]
    assert found.skipped == {address(1): "bound to vfio-pci"}


def test_the_index_of_a_lost_gpu_stays_its_own():
    # mig-parted would take GPU 2 for GPU 1.
    found = wishes(
        None, config(entry([1], ONES), entry([2], THREES)), None, "keep", [target(0), target(1, **LOST), target(2)]
    )
    assert {address: wish.instances[0].profile for address, wish in found.by_address.items()} == {address(2): "3g.20gb"}
    assert found.failed == {address(1): "mine[0] is about it, but nothing can be done with it: fell off the bus"}


# M3 (a), (a2)
@pytest.mark.parametrize(
    "listed, gpus, places",
    [
        ([OFF, entry([0], ONES)], [0], "mine[0] and mine[1]"),
        ([entry("all", ONES), entry("all", THREES)], [0, 1], "mine[0] and mine[1]"),
        ([entry("all", ONES), entry([1], ONES), entry([1], {})], [1], "mine[0] and mine[1] and mine[2]"),
        (
            [
                entry("all", ONES, **{"device-filter": "0x20B010DE"}),
                entry("all", THREES, **{"device-filter": "0x20B010DE:0x134F10DE"}),
            ],
            [0, 1],
            "mine[0] and mine[1]",
        ),
    ],
)
def test_two_layouts_for_one_gpu_are_refused(listed, gpus, places):
    with pytest.raises(WishError) as caught:
        wishes(None, config(*listed), None, "keep", A100S)
    assert [problem.split(" different")[0] for problem in caught.value.details["problems"]] == [
        f"{places} give {A100S[gpu]}" for gpu in gpus
    ]


# M3 (c)
def test_indices_that_do_not_exist_are_all_named():
    with pytest.raises(WishError) as caught:
        wishes(None, config(entry([0, 4, 2], ONES), entry([7], ONES)), None, "keep", A100S)
    host = f"but this host's GPUs are: 0 is {A100S[0]}; 1 is {A100S[1]}."
    assert caught.value.details["problems"] == [f"mine[0]: devices has 4, 2, {host}", f"mine[1]: devices has 7, {host}"]


def test_a_host_without_gpus():
    assert profiles_of([entry("all", ONES)], []) == {}
    with pytest.raises(WishError, match=r"^mine\[0\]: devices has 0, but this host's GPUs are: none\.$"):
        wishes(None, config(entry([0], ONES)), None, "keep", [])


def test_a_board_without_mig_is_refused_only_when_an_index_wants_it_to_have_mig():
    t4, a100 = target(0, **T4), target(1)
    assert profiles_of([entry("all", ONES), entry([0], enabled=False)], [t4]) == {}
    for first in (entry("all", ONES), entry([0], enabled=False)):
        with pytest.raises(WishError) as caught:
            wishes(None, config(first, entry([0], ONES)), None, "keep", [t4, a100])
        (problem,) = caught.value.details["problems"]
        assert problem.startswith("mine[1] wants MIG on GPU 0000:1a:00.0 (index 0, GPU-0a, Tesla T4), but this board")


@pytest.mark.parametrize(
    "given, selected, name",
    [
        (config(OFF), None, "mine[0]"),
        (config(OFF), "mine", "mine[0]"),
        (config(OFF, other=[OFF]), "other", "other[0]"),
        # Only what is selected counts: another part of the file is another node's matter.
        (config(OFF, broken=[{"devices": 7}]), "mine", "mine[0]"),
        ({"version": "v1", "mig-configs": {1: [OFF]}}, "1", "1[0]"),
    ],
)
def test_which_configuration_is_selected(given, selected, name):
    assert [each.where for each in entries(given, selected)] == [name]


@pytest.mark.parametrize(
    "given, selected, problems",
    [
        (config(OFF, b=[OFF]), None, ["selected is missing; its configurations are b, mine."]),
        (config(OFF), "c", ["selected is c, which config does not have; its configurations are mine."]),
        (config(OFF, b=[OFF]), "c", ["selected is c, which config does not have; its configurations are b, mine."]),
        ("data", None, ["config is 'data'; it must be a mapping with version, mig-configs."]),
        ({**config(OFF), "version": "v2"}, None, ["config: version is 'v2'; it must be v1."]),
        ({"mig-configs": {"mine": [OFF]}}, None, ["config: version is None; it must be v1."]),
        (
            {"version": "v1", "mig_configs": {"mine": [OFF]}, "extra": 1},
            None,
            [
                "config has the unknown key mig_configs; it is spelled mig-configs.",
                "config has the unknown key extra; the keys are version, mig-configs.",
            ],
        ),
        (
            {"version": "v1", "mig-configs": {}},
            None,
            ["config: mig-configs must be a mapping of at least one name to a list of entries."],
        ),
        (
            {"version": "v1", "mig-configs": [OFF]},
            None,
            ["config: mig-configs must be a mapping of at least one name to a list of entries."],
        ),
        (
            {"version": "v1", "mig-configs": {"mine": OFF}},
            None,
            ["config: mine must be a list of at least one entry."],
        ),
        (config(), None, ["config: mine must be a list of at least one entry."]),
        # What somebody gets who reads the ConfigMap of the GPU Operator.
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "data": {"config.yaml": "version: v1"}},
            None,
            ["config is a Kubernetes ConfigMap; give what it has under data, in config.yaml: version, mig-configs."],
        ),
    ],
)
def test_what_is_wrong_with_the_file(given, selected, problems):
    with pytest.raises(WishError) as caught:
        entries(given, selected)
    assert caught.value.details["problems"] == problems


@pytest.mark.parametrize(
    "given, problems",
    [
        ("all", ["mine[0] is 'all'; it must be a mapping with device-filter, devices, mig-enabled, mig-devices."]),
        ({}, ["mine[0]: devices is missing.", "mine[0]: mig-enabled is missing."]),
        # M3 (e)
        (
            {"devices": "all", "migenabled": True, "migdevices": ONES},
            [
                "mine[0] has the unknown key migenabled; it is spelled mig-enabled.",
                "mine[0] has the unknown key migdevices; it is spelled mig-devices.",
            ],
        ),
        (
            entry("all", ONES, gpus=[0]),
            ["mine[0] has the unknown key gpus; the keys are device-filter, devices, mig-enabled, mig-devices."],
        ),
        # M3 (d)
        (entry(7, ONES), ["mine[0]: devices is 7; write all, or a list such as [7]."]),
        (entry("7", ONES), ["mine[0]: devices is '7'; write all, or a list such as [7]."]),
        (entry("0,1", ONES), ["mine[0]: devices is '0,1'; write all, or a list such as [0, 1]."]),
        (entry([0, -1, True], ONES), ["mine[0]: devices is [0, -1, True]; write all, or a list such as [0, 1]."]),
        (
            entry("all", ONES, "maybe"),
            ["mine[0]: mig-enabled is 'maybe'; it must be true or false."],
        ),
        (entry("all", enabled=1), ["mine[0]: mig-enabled is 1; it must be true or false."]),
        (entry(), ["mine[0]: mig-devices is missing; write {} for MIG mode without instances."]),
        (entry("all", ONES, False), ["mine[0] has mig-devices, although mig-enabled is false."]),
        (
            entry("all", {"1g.5gb": 0, "2g.10gb": "0"}),
            ["mine[0].mig-devices asks for no instance at all: every count is 0."],
        ),
        (
            entry("all", {"1g.5gb": -1, "2g.10gb": 1.0, "3g.20gb": True}),
            [
                "mine[0].mig-devices: the count of 1g.5gb is -1; it must be from 0 to 64.",
                "mine[0].mig-devices: the count of 2g.10gb is 1.0; it must be from 0 to 64.",
                "mine[0].mig-devices: the count of 3g.20gb is True; it must be from 0 to 64.",
            ],
        ),
        (
            entry("all", ["1g.5gb"]),
            ["mine[0].mig-devices is ['1g.5gb']; it must be a mapping such as {3g.40gb: 1, 1g.10gb: 4}."],
        ),
        (
            entry("all", {"1g5gb": 7}),
            [
                "mine[0].mig-devices: '1g5gb' is not the name of a MIG profile; write it as NVML prints it:"
                " 3g.40gb, 1g.10gb+me, 1g.24gb-me; 1c.3g.40gb for a compute instance."
            ],
        ),
        # Unquoted, YAML makes a number of it; mig-parted ignores what it cannot read, which then matches nothing.
        *(
            (
                entry("all", ONES, **{"device-filter": [wrong]}),
                [f'mine[0]: device-filter {wrong!r} is not "0xDDDDVVVV" or "0xDDDDVVVV:0xSSSSVVVV", with the quotes.'],
            )
            for wrong in (0x20B010DE, "20B010DE", "A100-SXM4-40GB", "0x20B010DE:", "0x20B010DE:0x1:0x2")
        ),
    ],
)
def test_what_is_wrong_with_an_entry(given, problems):
    with pytest.raises(WishError) as caught:
        entries(config(given), None)
    assert caught.value.details["problems"] == problems


def test_the_problems_of_all_entries_are_told_at_once():
    with pytest.raises(WishError) as caught:
        entries({**config(entry(7, ONES), {"devices": "all"}), "version": "v2"}, None)
    assert str(caught.value).splitlines() == [
        "config: version is 'v2'; it must be v1.",
        "mine[0]: devices is 7; write all, or a list such as [7].",
        "mine[1]: mig-enabled is missing.",
    ]
