# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils import _packages, _toolkit

DPKG = """installed\tlibnvidia-ml1\t580.178.04-1
config-files\tnvidia-kernel-dkms\t550.163.01-2
unpacked\tnvidia-kernel-open-dkms\t580.178.04-1
not-installed\tnvidia-driver\t
garbage
"""


def test_packages_whose_files_are_on_the_disk():
    assert _packages.parse(DPKG) == {"libnvidia-ml1": "580.178.04-1", "nvidia-kernel-open-dkms": "580.178.04-1"}


@pytest.fixture
def databases(monkeypatch, tmp_path):
    """Two databases of which those that were added exist."""
    monkeypatch.setattr(_packages, "DATABASES", tuple((str(tmp_path / name), ["-q"]) for name in ("dpkg", "rpm")))
    return lambda name: (tmp_path / name).touch()


def test_one_process_for_each_database(databases, tmp_path):
    databases("dpkg")
    commands = []

    def run_command(command, **kwargs):
        commands.append(command)
        return 1, DPKG, "dpkg-query: no packages found matching cuda-drivers*"

    assert set(_packages.installed(run_command, ["nvidia*", "cuda-drivers*"])) == {
        "libnvidia-ml1",
        "nvidia-kernel-open-dkms",
    }
    assert commands == [[str(tmp_path / "dpkg"), "-q", "nvidia*", "cuda-drivers*"]]


def test_a_host_with_both_databases(databases):
    databases("dpkg")
    databases("rpm")
    answers = iter([(1, "", ""), (0, "installed\tnvidia-open\t3:580.178.04-1.el9\n", "")])
    assert _packages.installed(lambda command, **kwargs: next(answers), []) == {"nvidia-open": "3:580.178.04-1.el9"}


def test_nobody_knows(databases):
    def fail(command, **kwargs):
        raise OSError("exec format error")

    assert _packages.installed(fail, []) is None, "no database at all"
    databases("rpm")
    assert _packages.installed(fail, []) is None
    assert _packages.installed(lambda command, **kwargs: (2, "", "database is locked"), []) is None


def test_the_toolkit(tmp_path):
    program = tmp_path / "nvidia-ctk"
    program.touch(mode=0o755)
    packages = {"nvidia-container-toolkit-base": "1.20.2-1", "nvidia-open": "580.178.04-1"}
    assert _toolkit.facts(packages, str(tmp_path)) == {
        "version": "1.20.2",
        "packages": {"nvidia-container-toolkit-base": "1.20.2-1"},
        "binaries": {"nvidia-ctk": str(program)},
    }


def test_no_toolkit(tmp_path):
    assert _toolkit.facts({}, str(tmp_path)) == {"version": None, "packages": {}, "binaries": {}}
