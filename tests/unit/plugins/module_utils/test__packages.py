# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils import _packages

DPKG = """installed\tlibnvidia-ml1\t580.178.04-1
config-files\tnvidia-kernel-dkms\t550.163.01-2
not-installed\tnvidia-driver\t
garbage
"""


@pytest.fixture
def host(monkeypatch, tmp_path):
    """Asks the databases that the host has, by what they print, the code that they exit with, or an exception."""
    monkeypatch.setattr(_packages, "DPKG_JOURNAL", str(tmp_path / "updates"))

    def build(**answers):
        commands = []

        def run_command(command, *, handle_exceptions, **kwargs):
            commands.append(command)
            answer = answers[command[0].rpartition("/")[2]]
            if isinstance(answer, Exception):
                assert not handle_exceptions, "run_command would end the module"
                raise answer
            return (answer, "", "database is locked") if isinstance(answer, int) else (0, answer, "")

        for name in ("dpkg", "rpm"):
            monkeypatch.setattr(_packages, name.upper(), [str(tmp_path / name), "-q"])
            if name in answers:
                (tmp_path / name).touch()
        found = _packages.read(run_command)
        assert len(commands) == len(answers), "one process for each database"
        return found

    return build


def test_a_host_with_dpkg(host):
    assert host(dpkg=DPKG) == ({"libnvidia-ml1": "580.178.04-1"}, False)


@pytest.mark.parametrize(
    "state", ["half-installed", "unpacked", "half-configured", "triggers-awaited", "triggers-pending"]
)
def test_a_package_that_was_left_half_way(host, state):
    """It is not installed, and dpkg was interrupted, whichever package it is."""
    assert host(dpkg=f"{DPKG}{state}\tman-db\t2.13.1-1\n") == ({"libnvidia-ml1": "580.178.04-1"}, True)


def test_changes_that_dpkg_has_not_written_to_its_database(host, tmp_path):
    (tmp_path / "updates").mkdir()
    (tmp_path / "updates" / "tmp.i").touch()
    assert host(dpkg=DPKG).interrupted is False
    (tmp_path / "updates" / "0003").touch()
    assert host(dpkg=DPKG).interrupted is True


RPM = "installed\tnvidia-open\t3:580.178.04-1.el9\n"


@pytest.mark.parametrize("answers", [{"rpm": RPM}, {"rpm": RPM, "dpkg": ""}, {"rpm": RPM, "dpkg": 2}])
def test_a_host_with_rpm(host, answers):
    assert host(**answers) == ({"nvidia-open": "3:580.178.04-1.el9"}, None)


def test_a_host_with_both_databases(host):
    assert host(dpkg=DPKG, rpm=RPM).installed == {
        "libnvidia-ml1": "580.178.04-1",
        "nvidia-open": "3:580.178.04-1.el9",
    }


@pytest.mark.parametrize("answers", [{}, {"rpm": OSError("exec format error")}, {"rpm": 2}, {"dpkg": ""}])
def test_nobody_knows(host, answers):
    assert host(**answers) == (None, None)
