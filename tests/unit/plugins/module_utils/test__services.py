# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils import _services
from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError

UNITS = ["nvidia-persistenced.service", "nvidia-dcgm.service", "nvsm.service"]


class Systemd:
    def __init__(self, *running: str, broken: tuple[str, ...] = ()) -> None:
        self.running = set(running)
        self.broken = broken
        self.calls: list[tuple[str, ...]] = []

    def __call__(self, command, **_options):
        _systemctl, verb, unit = command
        if verb == "is-active":
            return (0, "active\n", "") if unit in self.running else (3, "inactive\n", "")
        self.calls.append((verb, unit))
        if (verb, unit) in self.broken:
            return 1, "", f"Failed to {verb} {unit}: access denied"
        self.running = self.running | {unit} if verb == "start" else self.running - {unit}
        return 0, "", ""


@pytest.fixture
def record(tmp_path):
    return str(tmp_path / "run" / "stopped")


def test_only_what_runs_is_stopped_and_it_is_started_again(record):
    systemd, problems = Systemd(UNITS[0], UNITS[2]), []
    with _services.stopped(systemd, UNITS, problems, record):
        assert systemd.running == set()
    assert systemd.calls == [("stop", UNITS[0]), ("stop", UNITS[2]), ("start", UNITS[0]), ("start", UNITS[2])]
    assert problems == []
    assert _services.start_again(systemd, record) == ([], [])


def test_nothing_runs_nothing_is_done(record):
    systemd = Systemd()
    with _services.stopped(systemd, UNITS, [], record), _services.stopped(systemd, [], [], "/nonexistent/x"):
        pass
    assert systemd.calls == []


def test_a_host_without_systemd_has_no_services(record):
    def missing(command, **_options):
        raise FileNotFoundError

    with _services.stopped(missing, UNITS, [], record):
        pass


def test_an_error_between_does_not_leave_them_stopped(record):
    systemd = Systemd(UNITS[1])
    with pytest.raises(RuntimeError), _services.stopped(systemd, UNITS, [], record):
        raise RuntimeError
    assert systemd.running == {UNITS[1]}


def test_a_run_that_was_killed_is_made_good_by_the_next(record):
    systemd = Systemd(UNITS[1])
    killed = _services.stopped(systemd, UNITS, [], record)
    killed.__enter__()
    assert systemd.running == set()
    assert _services.left_stopped(record) == [UNITS[1]]
    assert _services.start_again(systemd, record) == ([UNITS[1]], [])
    assert systemd.running == {UNITS[1]}
    assert _services.start_again(systemd, record) == ([], [])
    killed.gen = None  # it never gets to its end


def test_a_run_that_was_killed_while_it_took_its_note_had_stopped_nothing(tmp_path):
    (tmp_path / "stopped").write_text('["nvidia-per')
    systemd = Systemd()
    assert _services.start_again(systemd, str(tmp_path / "stopped")) == ([], [])
    assert systemd.calls == []


def test_a_service_that_cannot_be_stopped_is_an_error_and_the_others_are_started(record):
    systemd = Systemd(UNITS[0], UNITS[1], broken=(("stop", UNITS[1]),))
    with (
        pytest.raises(KubegpuError, match="nvidia-dcgm.service has to be .* Failed to stop .* Nothing was changed"),
        _services.stopped(systemd, UNITS, [], record),
    ):
        pytest.fail("not reached")
    assert systemd.running == {UNITS[0], UNITS[1]}


def test_a_service_that_does_not_start_again_is_told_and_tried_by_the_next_run(record):
    systemd, problems = Systemd(UNITS[0], UNITS[1], broken=(("start", UNITS[0]),)), []
    with _services.stopped(systemd, UNITS, problems, record):
        pass
    assert systemd.running == {UNITS[1]}
    (problem,) = problems
    assert problem.startswith(
        f"{UNITS[0]} was stopped for a change of the MIG mode and does not start: Failed to start"
    )
    systemd.broken = ()
    assert _services.start_again(systemd, record) == ([UNITS[0]], [])
