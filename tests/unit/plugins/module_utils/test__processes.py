# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils import _processes


@pytest.fixture
def proc(tmp_path):
    def add(pid, comm, *, cmdline="", namespace=None):
        (tmp_path / str(pid) / "ns").mkdir(parents=True)
        (tmp_path / str(pid) / "comm").write_text(f"{comm}\n")
        (tmp_path / str(pid) / "cmdline").write_text(cmdline)
        if namespace:
            (tmp_path / str(pid) / "ns" / "pid").symlink_to(namespace)

    add("self", "python3", namespace="pid:[1]")
    return add


def test_a_kubelet_of_this_node(proc, tmp_path):
    proc(7, "kubelet", namespace="pid:[1]")
    assert _processes.running(frozenset({"kubelet"}), str(tmp_path))


def test_the_kubelet_of_a_node_in_a_container_is_not_ours(proc, tmp_path):
    proc(7, "kubelet", namespace="pid:[2]")
    assert not _processes.running(frozenset({"kubelet"}), str(tmp_path))


@pytest.mark.parametrize(
    ("comm", "cmdline", "expected"),
    [
        ("python3", "/usr/bin/python3\0train.py\0", "python3"),
        ("nvidia-persiste", "/usr/bin/nvidia-persistenced\0--user\0", "nvidia-persistenced"),
        ("nvidia-cuda-mps", "", "nvidia-cuda-mps"),  # a kernel thread has no command line
        ("exactly15charsx", "something else\0", "exactly15charsx"),
    ],
)
def test_names_of_programs(proc, tmp_path, comm, cmdline, expected):
    proc(7, comm, cmdline=cmdline)
    assert _processes.command_of(7, str(tmp_path)) == expected


def test_a_process_that_has_ended(tmp_path):
    assert _processes.command_of(7, str(tmp_path)) == ""


def test_a_process_that_ends_while_its_files_are_listed(proc, tmp_path):
    proc(7, "python3")
    assert _processes.holding("/dev/nvidia", str(tmp_path)) == {}


def test_unknown_is_not_nobody(monkeypatch, proc, tmp_path):
    proc(7, "python3")

    def refuse(path):
        raise PermissionError

    monkeypatch.setattr(_processes, "_opened", lambda directory, device: refuse(directory))
    assert _processes.holding("/dev/nvidia", str(tmp_path)) is None
