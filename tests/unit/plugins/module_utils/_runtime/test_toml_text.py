# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import sys
import types

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.module_utils._runtime.toml_text import (
    append_import,
    emit,
    parse,
    set_top_level,
)


@pytest.mark.parametrize(
    "data",
    [
        {"b": 1, "a": {"empty": {}, "d e": {"list": [1, 'quote " and \\', {"inline": True}], "float": 0.02}}},
        {"text": "tab\tline\nDEL\x7f ü \u2028", "empty": [], "nested": [[1], ["x"]]},
    ],
)
def test_what_is_written_reads_back(data: dict[str, object]) -> None:
    assert parse(emit(data), "file") == data


def test_tomli_is_the_reader_of_an_old_python(monkeypatch: pytest.MonkeyPatch) -> None:
    tomli = types.SimpleNamespace(loads=lambda text: {"read": text}, TOMLDecodeError=ValueError)
    monkeypatch.setitem(sys.modules, "tomllib", None)
    monkeypatch.setitem(sys.modules, "tomli", tomli)
    assert parse("a = 1", "file") == {"read": "a = 1"}


# the list of imports before, the same with one more
ARRAYS = [
    ('imports = ["a"] # why', 'imports = ["a", "new"] # why'),
    ('imports = [ "a", ]', 'imports = [ "a", "new" ]'),
    ("imports=['a','b#']", "imports=['a','b#', \"new\"]"),
    ('imports = [\n  "a", # x ]\n  "b" # y\n]', 'imports = [\n  "a", # x ]\n  "b", # y\n  "new",\n]'),
    ('imports = [\r\n\t"a",\r\n]', 'imports = [\r\n\t"a",\r\n\t"new",\r\n]'),
    ('imports = ["a",\n"b"]', 'imports = ["a",\n"b", "new"]'),
    ("imports = [\n]", 'imports = ["new"\n]'),
    ('"imports" = []', '"imports" = ["new"]'),
]


@pytest.mark.parametrize(("before", "after"), ARRAYS)
def test_a_list_is_extended_in_its_own_style(before: str, after: str) -> None:
    assert append_import(f"version = 2\n{before}\n[grpc]\n", "new", "file") == f"version = 2\n{after}\n[grpc]\n"


def test_text_that_only_looks_like_imports_is_not_edited() -> None:
    text = 'note = """\nimports = []\n"""\nversion = 2\nimports = ["a"]\n'
    with pytest.raises(KubegpuError, match="by hand"):
        append_import(text, "new", "file")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("key = true # why\r\n[t]\r\n", "key = false # why\r\n[t]\r\n"),
        ("key=false", "key=false"),
        ("a = 1\n# key = true\n\n[t]\nkey = true\n", "a = 1\n# key = true\nkey = false\n\n[t]\nkey = true\n"),
        ("#key = true", "#key = true\nkey = false"),
        ("[t]\nkey = true\n", "key = false\n[t]\nkey = true\n"),
        ("", "key = false\n"),
    ],
)
def test_one_line_is_set(before: str, after: str) -> None:
    assert set_top_level(before, "key", False, "file") == after
