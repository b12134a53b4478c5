# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.boot import Entry, as_text, read, write
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.model import Instance

LAYOUT = (Instance("1g.10gb+me", 0, (1,)), Instance("2g.20gb", 2, ()), Instance("3g.40gb", 4, (2, 1)))
ENTRIES = [
    Entry("GPU-a", "0000:1a:00.0", "enabled", LAYOUT),
    Entry("GPU-b", "0000:1c:00.0", "disabled", ()),
]


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "etc" / "mig.json"
    write(str(path), as_text(ENTRIES))
    assert read(str(path)) == ENTRIES
    assert path.stat().st_mode & 0o777 == 0o644
    assert [each.name for each in path.parent.iterdir()] == ["mig.json"]


def test_the_file_says_what_the_design_says():
    assert json.loads(as_text(ENTRIES[:1])) == {
        "version": 1,
        "gpus": [
            {
                "uuid": "GPU-a",
                "pci_address": "0000:1a:00.0",
                "mode": "enabled",
                "instances": [
                    {"profile": "1g.10gb+me", "start": 0, "compute_instances": ["1g.10gb+me"]},
                    {"profile": "2g.20gb", "start": 2, "compute_instances": []},
                    {"profile": "3g.40gb", "start": 4, "compute_instances": ["2c.3g.40gb", "1c.3g.40gb"]},
                ],
            }
        ],
    }


def test_the_order_of_the_gpus_does_not_make_another_file():
    assert as_text(reversed(ENTRIES)) == as_text(ENTRIES)


def test_no_file_has_no_entries(tmp_path):
    assert read(str(tmp_path / "mig.json")) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no layout that this program wrote"),
        ("[]", "no layout that this program wrote"),
        ('{"version": 1}', "no layout that this program wrote"),
        ('{"version": 2, "gpus": []}', "version 2; this program reads version 1"),
        ('{"version": 1, "gpus": [{"uuid": "GPU-a"}]}', "apply the layout again"),
        ('{"version": 1, "gpus": [{"uuid": "GPU-a", "mode": null, "instances": []}]}', "apply the layout again"),
    ],
)
def test_a_file_that_is_not_ours(tmp_path, text, reason):
    (tmp_path / "mig.json").write_text(text)
    with pytest.raises(KubegpuError, match=reason):
        read(str(tmp_path / "mig.json"))


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "mig.json"
    path.write_text("old")

    def fail(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(KubegpuError, match="cannot be noted for the next boot in .*: disk full"):
        write(str(path), "new")
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["mig.json"]
