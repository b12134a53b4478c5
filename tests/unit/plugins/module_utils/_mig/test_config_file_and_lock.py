# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig import config_file
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.lock import exclusive

CONFIG = {"version": "v1", "mig-configs": {"all-disabled": [{"devices": "all", "mig-enabled": False}]}}
YAML = """
version: v1
mig-configs:
  all-disabled:
    - devices: all
      mig-enabled: false
"""


@pytest.mark.parametrize("text", [YAML, json.dumps(CONFIG)])
def test_both_notations(tmp_path, text):
    (tmp_path / "config").write_text(text)
    assert config_file.load(str(tmp_path / "config")) == CONFIG


def test_a_host_without_pyyaml_reads_json_and_explains_yaml(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "config.yaml").write_text(YAML)
    assert config_file.load(str(tmp_path / "config.json")) == CONFIG
    with pytest.raises(KubegpuError, match="no PyYAML .* from_yaml"):
        config_file.load(str(tmp_path / "config.yaml"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"a: [", "no YAML"),
        (b"# nothing yet\n", "is empty"),
        (b"null", "is empty"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path, content, reason):
    if content is not None:
        (tmp_path / "config").write_bytes(content)
    with pytest.raises(KubegpuError, match=reason):
        config_file.load(str(tmp_path / "config"))


def test_a_second_run_is_told_who_the_first_is(tmp_path):
    path = str(tmp_path / "lock" / "mig")
    program = (
        f"import fcntl, os; file = open({path!r}, 'a+'); fcntl.flock(file, fcntl.LOCK_EX);"
        " print(os.getpid(), file=file, flush=True); print(); input()"
    )
    with exclusive(path):
        pass
    first = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        first.stdout.readline()
        with (
            pytest.raises(KubegpuError, match="Another run changes the MIG layout .* Nothing was changed"),
            exclusive(path),
        ):
            pytest.fail("two runs at once")
    finally:
        first.communicate("\n")
    with exclusive(path):
        pass


def test_the_lock_names_its_holder_and_is_free_afterwards(tmp_path):
    path = tmp_path / "mig"
    with exclusive(str(path)):
        assert path.read_text().strip().isdigit()
        with pytest.raises(KubegpuError, match=rf"\(pid {path.read_text().strip()}\)"), exclusive(str(path)):
            pytest.fail("two runs at once")
    with exclusive(str(path)):
        pass


def test_whoever_waits_gets_the_lock_when_it_is_free(tmp_path):
    path = str(tmp_path / "mig")
    program = (
        f"import fcntl, time; file = open({path!r}, 'a+'); fcntl.flock(file, fcntl.LOCK_EX);"
        " print(flush=True); time.sleep(1)"
    )
    first = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    first.stdout.readline()
    with exclusive(path, patience=30):
        assert first.wait() == 0


def test_nobody_else_can_hold_it(tmp_path):
    with exclusive(str(tmp_path / "run" / "mig")):
        assert (tmp_path / "run" / "mig").stat().st_mode & 0o077 == 0


def test_a_lock_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(KubegpuError, match="run the task with become"), exclusive(str(tmp_path / "file" / "mig")):
        pytest.fail("not reached")
