# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils import _services
from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError

UNITS = ["nvidia-persistenced.service", "nvidia-dcgm.service", "nvsm.service"]


class Systemd:
    def __init__(self, *running: str, broken: str = "") -> None:
        self.running = set(running)
        self.broken = broken
        self.calls: list[tuple[str, ...]] = []

    def __call__(self, command, **_options):
        verb, units = command[1], command[2:]
        if verb == "is-active":
            states = ["active" if unit in self.running else "inactive" for unit in units]
            return (0 if "active" in states else 3), "\n".join(states) + "\n", ""
        self.calls.append((verb, *units))
        if verb == self.broken:
            return 1, "", f"Failed to {verb}: access denied"
        self.running = self.running | set(units) if verb == "start" else self.running - set(units)
        return 0, "", ""


def test_only_what_runs_is_stopped_and_it_is_started_again(tmp_path):
    systemd, record = Systemd(UNITS[0], UNITS[2]), str(tmp_path / "run" / "stopped")
    with _services.stopped(systemd, UNITS, record):
        assert systemd.running == set()
    assert systemd.calls == [("stop", UNITS[0], UNITS[2]), ("start", UNITS[0], UNITS[2])]
    assert _services.start_again(systemd, record) == []


def test_nothing_runs_nothing_is_done(tmp_path):
    systemd = Systemd()
    with _services.stopped(systemd, UNITS, str(tmp_path / "stopped")), _services.stopped(systemd, [], "/nonexistent/x"):
        pass
    assert systemd.calls == []


def test_an_error_between_does_not_leave_them_stopped(tmp_path):
    systemd = Systemd(UNITS[1])
    with pytest.raises(RuntimeError), _services.stopped(systemd, UNITS, str(tmp_path / "stopped")):
        raise RuntimeError
    assert systemd.running == {UNITS[1]}


def test_a_run_that_was_killed_is_made_good_by_the_next(tmp_path):
    systemd, record = Systemd(UNITS[1]), str(tmp_path / "stopped")
    killed = _services.stopped(systemd, UNITS, record)
    killed.__enter__()
    assert systemd.running == set()
    assert _services.left_stopped(record) == [UNITS[1]]
    assert _services.start_again(systemd, record) == [UNITS[1]]
    assert systemd.running == {UNITS[1]}
    assert _services.start_again(systemd, record) == []
    killed.gen = None  # it never gets to its end


def test_a_run_that_was_killed_while_it_took_its_note_had_stopped_nothing(tmp_path):
    (tmp_path / "stopped").write_text('["nvidia-per')
    systemd = Systemd()
    assert _services.start_again(systemd, str(tmp_path / "stopped")) == []
    assert systemd.calls == []


def test_a_service_that_cannot_be_stopped_is_an_error_and_the_others_are_started(tmp_path):
    systemd = Systemd(UNITS[0], broken="stop")
    with (
        pytest.raises(KubegpuError, match="systemctl stop nvidia-persistenced.service failed: Failed to stop"),
        _services.stopped(systemd, UNITS, str(tmp_path / "stopped")),
    ):
        pytest.fail("not reached")
    assert systemd.calls[-1] == ("start", UNITS[0])
