# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""The processes that /proc shows: those of this node, of pods, and of nodes in containers (kind, say)."""

from __future__ import annotations

import os
import typing as t

from ._files import content, first_line, link

# Linux cuts a process's own name after this many characters.
COMM_LENGTH = 15


class Process(t.NamedTuple):
    pid: int
    command: str


def running(names: frozenset[str], root: str = "/proc") -> bool:
    """Whether a process of one of these names runs on this node."""
    return any(first_line(f"{root}/{pid}/comm") in names for pid in own(root))


def own(root: str = "/proc") -> list[int]:
    """The processes in this node's own process namespace: a node in a container (kind, say) has others."""
    namespace = link(f"{root}/self/ns/pid")
    return [pid for pid in _pids(root) if link(f"{root}/{pid}/ns/pid") == namespace]


def holding(device: str, root: str = "/proc") -> dict[Process, frozenset[str]] | None:
    """Processes with open files whose path starts with device, and these paths; None when /proc does not tell.

    Pods are included.
    """
    try:
        found = {pid: _opened(f"{root}/{pid}/fd", device) for pid in _pids(root)}
    except PermissionError:
        return None
    return {Process(pid, command_of(pid, root)): paths for pid, paths in found.items() if paths}


def command_of(pid: int, root: str = "/proc") -> str:
    """The name that ps shows; in full where the kernel cut it and the command line still has it."""
    comm = first_line(f"{root}/{pid}/comm") or ""
    if len(comm) == COMM_LENGTH:
        program = os.path.basename((content(f"{root}/{pid}/cmdline") or "").split("\0")[0])
        if program.startswith(comm):
            return program
    return comm


def _opened(directory: str, device: str) -> frozenset[str]:
    try:
        paths = [link(f"{directory}/{name}") for name in os.listdir(directory)]
    except (FileNotFoundError, ProcessLookupError):  # the process ended
        return frozenset()
    return frozenset(path for path in paths if path.startswith(device))


def _pids(root: str) -> list[int]:
    try:
        return sorted(int(name) for name in os.listdir(root) if name.isdigit())
    except OSError:
        return []
