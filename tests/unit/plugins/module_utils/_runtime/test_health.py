# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import typing as t

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._runtime import health
from ansible_collections.kubegpu.nvidia.plugins.module_utils._runtime.daemons import Daemon

CTR = "TYPE ID PLATFORMS STATUS\nio.containerd.snapshotter.v1 zfs linux/amd64 skip\n"


def daemon(**fields: t.Any) -> Daemon:
    known: dict[str, t.Any] = {
        "name": "containerd",
        "binary": "/usr/bin/containerd",
        "unit": "containerd.service",
        "config_path": "/etc/containerd/config.toml",
        "socket": "/run/containerd/containerd.sock",
        "version": "1.7.24",
        "running": True,
        "pid": 77,
        "started": 1.0,
    }
    return Daemon(**{**known, **fields})


def test_restart_is_due_by_the_last_change_of_any_path(tmp_path: t.Any) -> None:
    file = tmp_path / "config.toml"
    file.touch()
    os.utime(file, (1, 1))  # a file that was moved into place keeps its old time of modification
    changed = os.stat(file).st_ctime
    paths = [str(file), str(tmp_path / "vanished.toml")]
    assert health.restart_reason(daemon(started=changed + 1), paths) == ""
    assert str(file) in health.restart_reason(daemon(started=changed - 1), paths)
    assert "not running" in health.restart_reason(daemon(running=False, started=None), paths)
    assert "cannot be told" in health.restart_reason(daemon(started=None), paths)


def test_a_drop_in_that_vanished_is_a_change_of_its_folder(tmp_path: t.Any) -> None:
    file = tmp_path / "99-nvidia.toml"
    file.touch()
    started = os.stat(tmp_path).st_ctime + 0.001
    while os.stat(tmp_path).st_ctime <= started:
        file.unlink(missing_ok=True)
        file.touch()
    assert str(tmp_path) in health.restart_reason(daemon(started=started), [str(tmp_path)])


@pytest.mark.parametrize(
    ("crictl", "ctr", "verified", "words"),
    [
        ((0, json.dumps({"config": {"containerd": {"runtimes": {"nvidia": {}}}}}), ""), None, True, "handler 'nvidia'"),
        ((0, json.dumps({"config": {"containerd": {"runtimes": {"runc": {}}}}}), ""), None, False, "only runc"),
        ((1, "", "server is not initialized yet\n"), None, False, "not initialized"),
        (None, (0, CTR + "io.containerd.grpc.v1    cri    linux/amd64    ok    \n", ""), True, "CRI plugin"),
        (None, (0, CTR + "io.containerd.grpc.v1    cri    linux/amd64    error \n", ""), False, "state: error"),
        (None, (0, CTR, ""), False, "state: missing"),
        (None, (1, "", "connection refused"), False, "connection refused"),
        (None, None, True, "neither crictl nor ctr"),
    ],
)
def test_what_the_daemon_says(
    crictl: tuple[int, str, str] | None, ctr: tuple[int, str, str] | None, verified: bool, words: str
) -> None:
    answers = {"crictl": crictl, "ctr": ctr}

    def run_command(argv: list[str], **_options: t.Any) -> tuple[int, str, str]:
        answer = answers[argv[0]]
        if answer is None:
            raise FileNotFoundError(argv[0])
        return answer

    answer = health.verify(run_command, daemon(), "nvidia")
    assert answer[0] is verified and words in answer[1]


def test_a_young_daemon_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(health.time, "time", lambda: now[0])
    monkeypatch.setattr(health.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    ready = json.dumps({"config": {"containerd": {"runtimes": {"nvidia": {}}}}})
    answers = [(1, "", "not yet"), (1, "", "not yet"), (0, ready, "")]
    assert health.verify(lambda *_args, **_options: answers.pop(0), daemon(started=99.0), "nvidia")[0]
