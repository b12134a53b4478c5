# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.labels import (
    changes,
    wanted_annotations,
    wanted_labels,
)


@pytest.mark.parametrize(
    "current, wanted, expected",
    [
        ({}, {"a": "1"}, {"a": "1"}),
        ({"a": "1", "other": "x"}, {"a": "1"}, {}),
        ({"a": "0"}, {"a": "1"}, {"a": "1"}),
        ({"a": "1"}, {"a": None}, {"a": None}),
        ({"other": "x"}, {"a": None}, {}),
        ({"a": ""}, {"a": None}, {"a": None}),
        ({}, {"a": ""}, {"a": ""}),
        ({"b": "0"}, {"b": "1", "a": "1"}, {"a": "1", "b": "1"}),
    ],
)
def test_changes(current, wanted, expected):
    assert changes(current, wanted) == expected


@pytest.mark.parametrize(
    "given, text",
    [(True, "true"), (False, "false"), (8, "8"), ("", ""), (None, None), ("1.20", "1.20"), ("a" * 63, "a" * 63)],
)
def test_values(given, text):
    assert wanted_labels({"nvidia.com/gpu.present": given}) == {"nvidia.com/gpu.present": text}


@pytest.mark.parametrize(
    "key, value, text",
    [
        ("a", 1.2, "quotes"),
        ("a", "two words", "no value"),
        ("a", "-x", "no value"),
        ("a", "x" * 64, "no value"),
        ("a", "x\n", "no value"),
        ("", "x", "no label key"),
        ("/a", "x", "no label key"),
        ("a/", "x", "no label key"),
        ("a/b/c", "x", "no label key"),
        ("Example.com/a", "x", "no label key"),
        ("example..com/a", "x", "no label key"),
        ("a" * 64, "x", "no label key"),
    ],
)
def test_refused(key, value, text):
    with pytest.raises(KubegpuError, match=text):
        wanted_labels({key: value})


@pytest.mark.parametrize(
    "given, text", [("two words", "two words"), ('{"a": [1]}', '{"a": [1]}'), (True, "true"), (None, None)]
)
def test_annotations(given, text):
    assert wanted_annotations({"kubegpu.io/window": given}) == {"kubegpu.io/window": text}


@pytest.mark.parametrize(
    "key, value, text", [("two words", "x", "no annotation key"), ("a", {"x": 1}, "to_json"), ("a", 1.2, "quotes")]
)
def test_refused_annotations(key, value, text):
    with pytest.raises(KubegpuError, match=text):
        wanted_annotations({key: value})
