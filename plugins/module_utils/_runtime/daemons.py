# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Which container runtime daemons this node has, found in /proc and asked of systemd."""

from __future__ import annotations

import dataclasses
import datetime
import os
import re
import typing as t

from .._commands import RunCommand, output
from .._files import content, link
from .._processes import own

# Only the containerd of the distribution (or of Docker's and upstream's packages): k3s, RKE2, k0s and MicroK8s start a
# containerd of their own from other directories and write its configuration themselves.
BINARIES = ("/usr/bin/containerd", "/usr/local/bin/containerd")
DEFAULT_CONFIG = "/etc/containerd/config.toml"
DEFAULT_SOCKET = "/run/containerd/containerd.sock"
DEFAULT_UNIT = "containerd.service"


@dataclasses.dataclass(frozen=True)
class Daemon:
    name: str
    binary: str
    unit: str
    config_path: str
    socket: str
    version: str | None
    running: bool
    pid: int | None
    started: float | None  # seconds since the epoch

    def facts(self) -> dict[str, t.Any]:
        """The part that gpu_facts publishes."""
        return {
            "name": self.name,
            "running": self.running,
            "version": self.version,
            "socket": self.socket,
            "pid": self.pid,
            "started": self.started,
            "config_path": self.config_path,
        }


def find_daemons(run_command: RunCommand, *, proc: str = "/proc", binaries: t.Sequence[str] = BINARIES) -> list[Daemon]:
    """Every containerd that runs on this node; else the one that is installed; else nothing."""
    running = [_running(run_command, proc, pid, binary) for pid, binary in _processes(proc, binaries)]
    # dockerd may start a private containerd, which serves no kubelet.
    running = [daemon for daemon in running if not re.match(r"(/var)?/run/docker/", daemon.config_path)]
    if running:
        return running
    return [_stopped(run_command, binary) for binary in binaries if os.access(binary, os.X_OK)][:1]


def _running(run_command: RunCommand, proc: str, pid: int, binary: str) -> Daemon:
    argv = (content(f"{proc}/{pid}/cmdline") or "").rstrip("\0").split("\0")
    units = re.findall(r"/([^/\n]+\.service)$", content(f"{proc}/{pid}/cgroup") or "", re.MULTILINE)
    unit = units[0] if units else DEFAULT_UNIT
    shown = _systemctl_show(run_command, unit)
    started = _timestamp(shown.get("ExecMainStartTimestamp", "")) if shown.get("MainPID") == str(pid) else None
    return Daemon(
        name="containerd",
        binary=binary,
        unit=unit,
        config_path=_option(argv, "--config", "-c") or DEFAULT_CONFIG,
        socket=_option(argv, "--address", "-a") or DEFAULT_SOCKET,
        version=_version(run_command, binary),
        running=True,
        pid=pid,
        started=_started_by_proc(proc, pid) if started is None else started,
    )


def _stopped(run_command: RunCommand, binary: str) -> Daemon:
    command_line = re.search(r"argv\[\]=(.*?) ;", _systemctl_show(run_command, DEFAULT_UNIT).get("ExecStart", ""))
    argv = command_line.group(1).split() if command_line else []
    return Daemon(
        name="containerd",
        binary=binary,
        unit=DEFAULT_UNIT,
        config_path=_option(argv, "--config", "-c") or DEFAULT_CONFIG,
        socket=_option(argv, "--address", "-a") or DEFAULT_SOCKET,
        version=_version(run_command, binary),
        running=False,
        pid=None,
        started=None,
    )


def _processes(proc: str, binaries: t.Sequence[str]) -> t.Iterator[tuple[int, str]]:
    for pid in own(proc):
        # The link of a program that an upgrade replaced ends in " (deleted)".
        binary = link(f"{proc}/{pid}/exe").replace(" (deleted)", "")
        if binary in binaries:
            yield pid, binary


def _systemctl_show(run_command: RunCommand, unit: str) -> dict[str, str]:
    properties = "--property=MainPID,ExecMainStartTimestamp,ExecStart"
    shown = output(run_command, ["systemctl", "show", "--timestamp=us+utc", properties, unit])
    return dict(line.split("=", 1) for line in (shown or "").splitlines() if "=" in line)


def _timestamp(text: str) -> float | None:
    """Reads systemd's "Mon 2026-11-30 17:49:01.123456 UTC"."""
    match = re.search(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(\.\d+)? UTC$", text)
    if not match:
        return None
    seconds = datetime.datetime.strptime(f"{match.group(1)} +0000", "%Y-%m-%d %H:%M:%S %z").timestamp()
    return seconds + float(match.group(2) or 0)


def _started_by_proc(proc: str, pid: int) -> float | None:
    """Without systemd: boot time plus the ticks at which the process started. The boot time is in whole seconds."""
    boot = re.search(r"^btime (\d+)$", content(f"{proc}/stat") or "", re.MULTILINE)
    fields = (content(f"{proc}/{pid}/stat") or "").rpartition(")")[2].split()
    if not boot or len(fields) < 20:
        return None
    return int(boot.group(1)) + int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _version(run_command: RunCommand, binary: str) -> str | None:
    # "containerd github.com/containerd/containerd 1.7.24~ds1 1.7.24~ds1-6": the first word that begins like a version.
    match = re.search(r"\sv?(\d+\.\d+\.\d+)", output(run_command, [binary, "--version"]) or "")
    return match.group(1) if match else None


def _option(argv: t.Sequence[str], long: str, short: str) -> str | None:
    for index, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name in (long, short):
            return value if equals else next(iter(argv[index + 1 :]), None)
    return None


__all__ = ("BINARIES", "Daemon", "find_daemons")
