# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import typing as t

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._runtime.daemons import find_daemons

BINARY = "/nowhere/bin/containerd"
VERSION = "containerd github.com/containerd/containerd 1.7.24~ds1 1.7.24~ds1-6+deb13u1\n"
STARTED = "Mon 2026-11-30 17:49:01.250000 UTC"


def commands(show: str | None) -> t.Callable[..., tuple[int, str, str]]:
    def run_command(argv: list[str], **_options: t.Any) -> tuple[int, str, str]:
        if argv[0] == "systemctl":
            if show is None:
                raise FileNotFoundError(argv[0])
            return 0, show, ""
        return 0, VERSION, ""

    return run_command


class Proc:
    def __init__(self, directory: t.Any) -> None:
        self.directory = directory
        (directory / "stat").write_text("cpu 1\nbtime 1796000000\n")
        self.process("self", "/usr/bin/python3", ["python3"])

    def process(self, pid: str, exe: str, argv: list[str], *, cgroup: str = "", namespace: str = "pid:[1]") -> None:
        directory = self.directory / pid
        (directory / "ns").mkdir(parents=True)
        os.symlink(exe, directory / "exe")
        os.symlink(namespace, directory / "ns" / "pid")
        (directory / "cmdline").write_text("\0".join(argv) + "\0")
        (directory / "cgroup").write_text(cgroup)
        ticks = 100 * os.sysconf("SC_CLK_TCK")
        (directory / "stat").write_text(f"{pid} (contain er) S " + "0 " * 18 + f"{ticks} 0\n")

    def find(self, show: str | None = "", binaries: t.Sequence[str] = (BINARY,)) -> list[dict[str, t.Any]]:
        daemons = find_daemons(commands(show), proc=str(self.directory), binaries=binaries)
        return [{**daemon.facts(), "unit": daemon.unit} for daemon in daemons]


@pytest.fixture
def proc(tmp_path: t.Any) -> Proc:
    return Proc(tmp_path)


def test_the_distributions_daemon(proc: Proc) -> None:
    proc.process("77", BINARY, [BINARY], cgroup="0::/system.slice/containerd.service\n")
    assert proc.find(f"MainPID=77\nExecMainStartTimestamp={STARTED}\nExecStart={{ path=x ; argv[]=x ; }}\n") == [
        {
            "name": "containerd",
            "running": True,
            "version": "1.7.24",
            "socket": "/run/containerd/containerd.sock",
            "pid": 77,
            "started": 1796060941.25,
            "config_path": "/etc/containerd/config.toml",
            "unit": "containerd.service",
        }
    ]


@pytest.mark.parametrize(
    "arguments", [["--config", "/x.toml", "-a", "/x.sock"], ["-c=/x.toml", "--address=/x.sock", "--log-level", "info"]]
)
def test_arguments_say_which_files(proc: Proc, arguments: list[str]) -> None:
    proc.process("77", BINARY, [BINARY, *arguments], cgroup="3:cpu:/\n1:name=systemd:/system.slice/own.service\n")
    (daemon,) = proc.find()
    assert (daemon["config_path"], daemon["socket"], daemon["unit"]) == ("/x.toml", "/x.sock", "own.service")


@pytest.mark.parametrize("show", [None, "", "MainPID=78\nExecMainStartTimestamp=" + STARTED])
def test_start_without_systemds_word_for_this_process(proc: Proc, show: str | None) -> None:
    proc.process("77", BINARY, [BINARY])
    assert proc.find(show)[0]["started"] == 1796000100


def test_an_upgraded_binary_is_still_found(proc: Proc) -> None:
    proc.process("77", BINARY + " (deleted)", [BINARY])
    assert proc.find()[0]["pid"] == 77


def test_a_daemon_whose_binary_is_gone_has_no_version(proc: Proc) -> None:
    def run_command(argv: list[str], *, handle_exceptions: bool = True, **_options: t.Any) -> tuple[int, str, str]:
        assert not handle_exceptions, "run_command would end the module"
        raise FileNotFoundError(argv[0])

    proc.process("77", BINARY + " (deleted)", [BINARY])
    (daemon,) = find_daemons(run_command, proc=str(proc.directory), binaries=[BINARY])
    assert (daemon.running, daemon.pid, daemon.version) == (True, 77, None)


def test_a_node_without_proc(tmp_path: t.Any) -> None:
    assert find_daemons(commands(""), proc=str(tmp_path / "missing"), binaries=[]) == []


def test_what_is_not_the_nodes_containerd(proc: Proc) -> None:
    proc.process("5", "/var/lib/rancher/k3s/data/x/bin/containerd", ["containerd"])
    proc.process("6", BINARY, [BINARY], namespace="pid:[2]")
    proc.process("7", BINARY, [BINARY, "--config", "/var/run/docker/containerd/containerd.toml"])
    proc.process("8", BINARY + "-shim-runc-v2", ["shim"])
    assert proc.find() == []


def test_a_stopped_one_is_known_by_its_unit(proc: Proc, tmp_path: t.Any) -> None:
    binary = tmp_path / "containerd"
    binary.touch(mode=0o755)
    (daemon,) = proc.find("ExecStart={ path=/c ; argv[]=/c --config /x.toml ; ignore_errors=no ; }", [str(binary)])
    assert (daemon["running"], daemon["config_path"], daemon["started"]) == (False, "/x.toml", None)
