# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.wanted import (
    Wish,
    WishedInstance,
    WishError,
    wishes,
)
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils._mig.fake_targets import (
    A100_40,
    T4,
    address,
    target,
)

ONES = {"1g.10gb": 7}
HOST = (target(0), target(1), target(2, **A100_40))
# As argument specs give it: what is not there is None.
NOTHING = dict.fromkeys(("gpus", "models", "profiles", "instances", "mode"))


def decide(layouts, targets=HOST, unmatched="keep"):
    return wishes(layouts, None, None, unmatched, targets)


def deciding(layouts, targets=HOST, unmatched="keep"):
    """By GPU number, the mode or the first profile that is wanted."""
    found = decide(layouts, targets, unmatched)
    wanted = {each: found.by_address.get(address(each)) for each in range(len(targets))}
    return {
        number: wish.instances[0].profile if wish.instances else wish.mode for number, wish in wanted.items() if wish
    }


def problems(layouts, targets=HOST):
    with pytest.raises(WishError) as caught:
        decide(layouts, targets)
    assert str(caught.value).splitlines() == caught.value.details["problems"]
    return caught.value.details["problems"]


@pytest.mark.parametrize(
    "name, numbers",
    [
        ("GPU-1a", [1]),
        ("gpu-1A", [1]),
        ("0000:1b:00.0", [1]),
        ("00000000:1B:00.0", [1]),
        ("1b:00.0", [1]),
        ("0000:1B:00.0", [1]),
        ("1", [1]),
        ("all", [0, 1, 2]),
    ],
)
def test_names_of_gpus(name, numbers):
    assert deciding([{"gpus": [name], "profiles": ONES}]) == dict.fromkeys(numbers, "1g.10gb")


# N1
@pytest.mark.parametrize("name", ["0000000A:1B:00.0", "000a:1b:00.0", "000A:1B:00.0"])
def test_addresses_in_a_pci_domain(name):
    far = target(3, pci_address="000a:1b:00.0")
    assert list(decide([{"gpus": [name], "mode": "disabled"}], [*HOST, far]).by_address) == ["000a:1b:00.0"]


@pytest.mark.parametrize(
    "globs, numbers",
    [
        (["NVIDIA A100*"], [0, 1, 2]),
        (["NVIDIA A100-SXM4-40GB"], [2]),
        (["*80GB", "*H100*"], [0, 1]),
        (["NVIDIA A100"], []),
        (["nvidia a100*"], []),
        (["NVIDIA H100*"], []),
    ],
)
def test_models(globs, numbers):
    assert deciding([{"models": globs, "mode": "enabled"}]) == dict.fromkeys(numbers, "enabled")


@pytest.mark.parametrize(
    "layouts, unmatched, wanted",
    [
        ([], "keep", {}),
        (None, "disabled", {0: "disabled", 1: "disabled", 2: "disabled"}),
        ([], "disabled", {0: "disabled", 1: "disabled", 2: "disabled"}),
        ([{"gpus": ["1"], "profiles": ONES}], "disabled", {0: "disabled", 1: "1g.10gb", 2: "disabled"}),
        # The first entry that matches decides, in whatever way the GPU is named.
        (
            [{"gpus": ["GPU-1a"], "profiles": ONES}, {"models": ["*80GB"], "mode": "enabled"}]
            + [{"gpus": ["all"], "mode": "disabled"}],
            "keep",
            {0: "enabled", 1: "1g.10gb", 2: "disabled"},
        ),
        (
            [{"gpus": ["all"], "mode": "disabled"}, {"gpus": ["0"], "profiles": ONES}],
            "keep",
            dict.fromkeys(range(3), "disabled"),
        ),
        ([{"gpus": ["0", "0000:1a:00.0", "GPU-0a"], "profiles": ONES}], "keep", {0: "1g.10gb"}),
    ],
)
def test_which_entry_decides(layouts, unmatched, wanted):
    assert deciding(layouts, unmatched=unmatched) == wanted
    assert deciding([{**NOTHING, **layout} for layout in layouts or ()], unmatched=unmatched) == wanted


@pytest.mark.parametrize(
    "layout, wish",
    [
        ({"mode": "disabled"}, Wish("disabled")),
        ({"mode": "enabled"}, Wish("enabled")),
        (
            # Argument specs convert nothing here, so counts may be text.
            {"mode": "enabled", "profiles": {"1g.10gb": "4", "3g.40gb": 1, "2g.20gb": 0, "1g.20gb": 64}},
            Wish(
                "enabled",
                (WishedInstance("3g.40gb"), WishedInstance("1g.20gb", count=64), WishedInstance("1g.10gb", count=4)),
            ),
        ),
        (
            {
                "instances": [
                    {"profile": "3g.40gb", "start": 4, "compute_instances": ["1c.3g.40gb", "2c.3g.40gb"]},
                    {"profile": "1g.10gb+me", "start": "0", "compute_instances": None},
                    {"profile": "1g.10gb", "compute_instances": []},
                ]
            },
            Wish(
                "enabled",
                (
                    WishedInstance("3g.40gb", 4, ("1c.3g.40gb", "2c.3g.40gb")),
                    WishedInstance("1g.10gb+me", 0),
                    WishedInstance("1g.10gb", None, ()),
                ),
            ),
        ),
    ],
)
def test_what_an_entry_wants(layout, wish):
    assert decide([{"gpus": ["0"], **layout}]).by_address == {address(0): wish}


PROFILES = {"gpus": ["0"], "profiles": ONES}
INSTANCE = {"profile": "3g.40gb", "start": 4}


@pytest.mark.parametrize(
    "layout, told",
    [
        ("all", ["layouts[0] is 'all'; it must be a mapping with gpus, models, profiles, instances, mode."]),
        (
            {"mode": "disabled"},
            ["layouts[0] must say which GPUs it is about: with either gpus or models."],
        ),
        (
            {**PROFILES, "models": ["*"]},
            ["layouts[0] must say which GPUs it is about: with either gpus or models."],
        ),
        ({"gpus": ["0"]}, ["layouts[0] does not say what is wanted: give profiles, instances or mode."]),
        ({**PROFILES, "gpus": []}, ["layouts[0]: gpus is []; it must be a list with at least one item."]),
        ({**PROFILES, "gpus": "all"}, ["layouts[0]: gpus is 'all'; it must be a list with at least one item."]),
        ({"models": [], "mode": "enabled"}, ["layouts[0]: models is []; it must be a list with at least one item."]),
        (
            {**PROFILES, "instances": [INSTANCE]},
            ["layouts[0] has profiles and instances; give one of them."],
        ),
        ({**PROFILES, "mode": "disabled"}, ["layouts[0] has profiles, although its mode is disabled."]),
        # YAML's off, if it is no text.
        ({**PROFILES, "mode": False}, ["layouts[0]: mode is False; it must be enabled or disabled."]),
        (
            {**PROFILES, "profiles": {}},
            ["layouts[0]: profiles is empty; for MIG mode without instances give only mode: enabled."],
        ),
        (
            {"gpus": ["0"], "instances": []},
            ["layouts[0]: instances is empty; for MIG mode without instances give only mode: enabled."],
        ),
        (
            {**PROFILES, "profiles": {"1g.10gb": 0, "2g.20gb": "0"}},
            ["layouts[0].profiles asks for no instance at all: every count is 0."],
        ),
        (
            {**PROFILES, "profiles": {"1g.10gb": -1, "2g.20gb": "many", "3g.40gb": 65}},
            [
                "layouts[0].profiles: the count of 1g.10gb is -1; it must be from 0 to 64.",
                "layouts[0].profiles: the count of 2g.20gb is 'many'; it must be from 0 to 64.",
                "layouts[0].profiles: the count of 3g.40gb is 65; it must be from 0 to 64.",
            ],
        ),
        (
            {**PROFILES, "profile": ONES},
            ["layouts[0] has the unknown key profile; the keys are gpus, models, profiles, instances, mode."],
        ),
        (
            {"gpus": ["0"], "instances": {"3g.40gb": 4}},
            [
                "layouts[0].instances is {'3g.40gb': 4}; it must be a list of mappings with"
                " profile, start, compute_instances."
            ],
        ),
        (
            {"gpus": ["0"], "instances": ["3g.40gb"]},
            ["layouts[0].instances[0] is '3g.40gb'; it must be a mapping with profile, start, compute_instances."],
        ),
        (
            {"gpus": ["0"], "instances": [{**INSTANCE, "profile": "1c.3g.40gb"}]},
            ["layouts[0].instances[0]: 1c.3g.40gb is a compute instance; profile must be that of a GPU instance."],
        ),
        (
            {"gpus": ["0"], "instances": [{**INSTANCE, "start": True}, {**INSTANCE, "start": -1}]},
            [
                "layouts[0].instances[0]: start is True; it must be a memory slice, a number from 0.",
                "layouts[0].instances[1]: start is -1; it must be a memory slice, a number from 0.",
            ],
        ),
        (
            {"gpus": ["0"], "instances": [{**INSTANCE, "compute_instances": "1c.3g.40gb"}]},
            ["layouts[0].instances[0]: compute_instances is '1c.3g.40gb'; it must be a list such as [1c.3g.40gb]."],
        ),
        (
            {"gpus": ["0"], "instances": [{"profile": "3g.40gb", "compute-instances": ["1c.3g.40gb"]}]},
            ["layouts[0].instances[0] has the unknown key compute-instances; it is spelled compute_instances."],
        ),
    ],
)
def test_what_is_wrong_with_an_entry(layout, told):
    assert problems([layout]) == told


@pytest.mark.parametrize(
    "layout, place",
    [
        ({"profiles": {"3g40gb": 1}}, "layouts[0].profiles: '3g40gb'"),
        ({"instances": [{"start": 4}]}, "layouts[0].instances[0]: 'None'"),
        ({"instances": [{"profile": "3g40gb"}]}, "layouts[0].instances[0]: '3g40gb'"),
        (
            {"instances": [{"profile": "3g.40gb", "compute_instances": ["1c"]}]},
            "layouts[0].instances[0].compute_instances: '1c'",
        ),
    ],
)
def test_names_that_are_no_profile_are_refused_with_examples(layout, place):
    (problem,) = problems([{"gpus": ["0"], **layout}])
    assert problem.startswith(f"{place} is not the name of a MIG profile; write it as NVML prints it: 3g.40gb, ")


# YAML makes 1020.0 of an unquoted 0000:17:00.0, and Ansible may have made text of that.
@pytest.mark.parametrize("number", [0, 1020.0])
def test_numbers_are_refused_as_names_of_gpus(number):
    assert problems([{"gpus": [number], "profiles": ONES}]) == [
        f"layouts[0]: gpus has {number}; put it in quotes, because YAML takes an unquoted PCI address for a number."
    ]


@pytest.mark.parametrize("name", ["1020.0", "0000:1a:00", "MIG-0a", "A100", "", "-1", "ALL"])
def test_what_is_no_name_of_a_gpu(name):
    assert problems([{"gpus": [name], "profiles": ONES}]) == [
        f'layouts[0].gpus has {name!r}, which is no UUID (GPU-...), PCI address ("0000:1a:00.0"), index ("0") or all.'
        " An address needs quotes, because YAML may take it for a number."
    ]


def test_gpus_that_are_not_there_are_told_with_those_that_are():
    layouts = [{"gpus": ["GPU-9a", "0", "7"], "profiles": ONES}, {"gpus": ["0000:ff:00.0"], "mode": "disabled"}]
    assert problems(layouts) == [
        "This host has no such GPU: GPU-9a (layouts[0].gpus), 7 (layouts[0].gpus), 0000:ff:00.0 (layouts[1].gpus)."
        " Its GPUs are: GPU 0000:1a:00.0 (index 0, GPU-0a, NVIDIA A100-SXM4-80GB);"
        " GPU 0000:1b:00.0 (index 1, GPU-1a, NVIDIA A100-SXM4-80GB);"
        " GPU 0000:1c:00.0 (index 2, GPU-2a, NVIDIA A100-SXM4-40GB)."
    ]


def test_a_host_without_gpus():
    assert problems([PROFILES], []) == ["This host has no such GPU: 0 (layouts[0].gpus). Its GPUs are: none."]


def test_all_problems_are_told_at_once():
    layouts = [
        {"gpus": ["GPU-9a", 3], "profiles": {"1g10gb": 1, "2g.20gb": -1}},
        {"models": ["*"], "mode": "disabled", "instances": [INSTANCE]},
        {"gpus": ["3"], "profiles": ONES},
    ]
    told = problems(layouts, [*HOST, target(3, **T4)])
    assert [re.split(r"[ :]", problem)[0] for problem in told] == [
        "layouts[0].profiles",
        "layouts[0].profiles",
        "layouts[0]",
        "layouts[1]",
        "This",
    ]
    # The second entry takes the T4 before the third.
    assert [problem for problem in told if "Tesla T4), but" in problem] == []


@pytest.mark.parametrize("selection", [{"gpus": ["all"]}, {"gpus": ["3"]}, {"models": ["Tesla*"]}])
@pytest.mark.parametrize("wanted", [{"profiles": ONES}, {"mode": "enabled"}, {"instances": [INSTANCE]}])
def test_mig_on_a_board_that_has_none_is_refused(selection, wanted):
    (problem,) = problems([{**selection, **wanted}], [*HOST, target(3, **T4)])
    assert problem.startswith(
        "layouts[0] wants MIG on GPU 0000:1d:00.0 (index 3, GPU-3a, Tesla T4), but this board has"
    )


@pytest.mark.parametrize(
    "layouts, unmatched",
    [
        ([{"gpus": ["0"], "mode": "disabled"}], "keep"),
        ([{"gpus": ["all"], "mode": "disabled"}], "keep"),
        ([{"models": ["Tesla*"], "mode": "disabled"}], "keep"),
        ([], "disabled"),
    ],
)
def test_a_board_without_mig_needs_nothing_to_have_no_mig(layouts, unmatched):
    # N4 B: no MIG call may be made on it.
    found = decide(layouts, [target(0, **T4)], unmatched)
    assert found.by_address == {}
    assert found.skipped == {address(0): "this board has no MIG"}
