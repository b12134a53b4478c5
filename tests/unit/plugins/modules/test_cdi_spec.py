# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import stat
import typing as t

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubegpu.nvidia.plugins.module_utils import _cdi
from ansible_collections.kubegpu.nvidia.plugins.modules import cdi_spec

# Copies what NVML "says now" to the output, and keeps what it was told.
PROGRAM = """#!/bin/sh
echo "$NVIDIA_CTK_CDI_GENERATE_MODE" >{directory}/mode
/bin/echo 'level=info msg="Selecting /dev/nvidia0"' >&2
[ -e {directory}/now.yaml ] || {{ echo 'failed to get device: ERROR_GPU_IS_LOST' >&2; exit 1; }}
case $* in "cdi generate --output "*) /bin/cp {directory}/now.yaml "$4" ;; *) exit 2 ;; esac
[ ! -e {directory}/coherent ] || /bin/cp {directory}/coherent "${{4%.yaml}}.coherent.yaml"
"""


def specification(*names: str) -> str:
    return "---\nkind: nvidia.com/gpu\ndevices:\n" + "".join(f'    - name: "{name}"\n' for name in names)


class Host:
    def __init__(self, directory: t.Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self.directory = directory
        self.capfd = capfd
        self.now = directory / "now.yaml"
        self.path = directory / "run" / "cdi" / "nvidia.yaml"
        self.settings = directory / "refresh.env"
        self.program = directory / "nvidia-ctk"
        self.program.write_text(PROGRAM.format(directory=directory))
        self.program.chmod(0o755)
        monkeypatch.setattr(_cdi, "SEARCH_PATH", str(directory))
        monkeypatch.setattr(_cdi, "SETTINGS", str(self.settings))
        monkeypatch.setattr(_cdi, "PATH", str(self.path))

    def run(self, **arguments: t.Any) -> dict[str, t.Any]:
        internal = {"_ansible_remote_tmp": str(self.directory), "_ansible_keep_remote_files": False}
        with patch_module_args({"_ansible_diff": True, **internal, **arguments}), pytest.raises(SystemExit):
            cdi_spec.main()
        return t.cast("dict[str, t.Any]", json.loads(self.capfd.readouterr().out))


@pytest.fixture
def host(tmp_path: t.Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Host:
    return Host(tmp_path, monkeypatch, capfd)


def test_check_real_and_again(host: Host) -> None:
    host.now.write_text(specification("0", "all"))
    predicted = host.run(_ansible_check_mode=True)
    assert predicted["changed"] and predicted["stale"] and predicted["devices"] == ["0", "all"]
    assert not host.path.exists()

    done = host.run()
    assert {key: done[key] for key in predicted} == predicted
    assert host.path.read_text() == host.now.read_text()
    assert stat.S_IMODE(os.stat(host.path).st_mode) == 0o644
    assert os.listdir(host.path.parent) == ["nvidia.yaml"]

    again = host.run()
    assert not again["changed"] and not again["stale"]
    assert again["devices"] == ["0", "all"] and again["path"] == str(host.path)
    assert again["diff"]["before"] == again["diff"]["after"]


def test_new_mig_devices_replace_the_gpu(host: Host) -> None:
    host.now.write_text(specification("0", "all"))
    host.run()
    host.now.write_text(specification("0:0", "0:1", "all"))
    result = host.run()
    assert result["changed"]
    assert (result["diff"]["before"], result["diff"]["after"]) == ("0\nall\n", "0:0\n0:1\nall\n")
    assert host.path.read_text() == host.now.read_text()


def test_the_same_names_with_other_device_files_are_a_difference(host: Host) -> None:
    host.now.write_text(specification("0:0"))
    host.run()
    host.now.write_text(specification("0:0") + "      containerEdits: {}\n")
    result = host.run()
    assert result["changed"] and result["diff"]["after"] == "0:0\n(the same devices, described anew)\n"


def test_a_specification_that_others_cannot_read_is_made_readable(host: Host) -> None:
    host.now.write_text(specification("0"))
    host.run()
    host.path.chmod(0o600)
    assert host.run(_ansible_check_mode=True)["changed"]
    assert host.run()["changed"] and stat.S_IMODE(os.stat(host.path).st_mode) == 0o644
    assert not host.run()["changed"]


def test_boards_with_coherent_memory_get_a_second_file(host: Host) -> None:
    host.now.write_text(specification("0"))
    (host.directory / "coherent").write_text("kind: nvidia.com/gpu.coherent\n")
    host.run()
    second = host.path.parent / "nvidia.coherent.yaml"
    assert second.read_text() == "kind: nvidia.com/gpu.coherent\n"
    second.unlink()
    assert host.run()["changed"] and second.exists()


def test_the_settings_of_the_refresh_service_hold(host: Host) -> None:
    other = host.directory / "etc" / "cdi" / "gpus.yaml"
    host.settings.write_text(f"NVIDIA_CTK_CDI_OUTPUT_FILE_PATH={other}\nNVIDIA_CTK_CDI_GENERATE_MODE=nvml\n")
    host.now.write_text(specification("0"))
    assert host.run()["path"] == str(other)
    assert other.exists() and not host.path.exists()
    assert (host.directory / "mode").read_text() == "nvml\n"
    assert host.run(path=str(host.path))["changed"] and host.path.exists()


def test_a_failure_says_what_the_tool_said_and_leaves_the_file(host: Host) -> None:
    host.now.write_text(specification("0"))
    host.run()
    host.now.unlink()
    result = host.run()
    assert result["failed"] and "ended with 1" in result["msg"] and "ERROR_GPU_IS_LOST" in result["msg"]
    assert host.path.read_text() == specification("0")


def test_without_the_toolkit(host: Host) -> None:
    host.program.unlink()
    result = host.run()
    assert result["failed"] and "no nvidia-ctk on this host" in result["msg"] and "container_toolkit" in result["msg"]


def test_a_file_that_no_runtime_reads_is_refused(host: Host) -> None:
    host.now.write_text(specification("0"))
    assert "only *.yaml and *.json" in host.run(path=str(host.directory / "nvidia"))["msg"]


def test_without_a_diff_there_is_none(host: Host) -> None:
    host.now.write_text(specification("0"))
    assert "diff" not in host.run(_ansible_diff=False)
