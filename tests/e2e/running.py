# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running our playbooks, and asking nodes and cluster independently of them."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Run:
    """What one run of a playbook did; changed and failed tasks by host, in their order."""

    code: int
    output: str
    hosts: dict[str, dict[str, int]] = field(default_factory=dict)
    executions: dict[str, int] = field(default_factory=dict)
    changed: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, str, str]] = field(default_factory=list)
    diffs: list[tuple[str, str, Any]] = field(default_factory=list)
    report: dict[str, str] = field(default_factory=dict)

    @property
    def changed_tasks(self) -> set[str]:
        return {task for _, task in self.changed}

    @property
    def messages(self) -> str:
        return "\n".join(message for _, _, message in self.failed)


def site(*arguments: str, kill_at: str = "", **variables: Any) -> Run:
    """Run site.yml as a user would; keyword arguments become extra variables."""
    return play("site.yml", *arguments, kill_at=kill_at, **variables)


def play(playbook: str, *arguments: str, kill_at: str = "", **variables: Any) -> Run:
    with tempfile.TemporaryDirectory() as scratch:
        record = Path(scratch) / "record.json"
        environment = dict(
            os.environ,
            ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"),
            ANSIBLE_CALLBACK_PLUGINS=str(Path(__file__).parent / "callback_plugins"),
            ANSIBLE_CALLBACKS_ENABLED="recorder",
            ANSIBLE_NOCOLOR="1",
            RECORDER_FILE=str(record),
            RECORDER_KILL_AT=kill_at,
        )
        command = ["ansible-playbook", playbook, *arguments]
        if variables:
            command += ["-e", json.dumps(variables)]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
            start_new_session=True,
        )
        data = json.loads(record.read_text()) if record.exists() else {}
    print(done.stdout[-6000:])
    for key in ("changed", "failed", "diffs"):
        data[key] = [tuple(item) for item in data.get(key, [])]
    return Run(done.returncode, done.stdout, **data)


def on(node: str, *command: str, check: bool = True) -> str:
    """Output of a command on a node, past Ansible."""
    done = subprocess.run(
        ["podman", "exec", node, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if check and done.returncode:
        raise AssertionError(f"{node}: {' '.join(command)} ended with {done.returncode}: {done.stdout}")
    return done.stdout


def kubectl(*arguments: str, stdin: str | None = None, check: bool = True) -> str:
    done = subprocess.run(
        ["kubectl", *arguments], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if check and done.returncode:
        raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stdout}")
    return done.stdout


def get(*arguments: str) -> dict[str, Any]:
    return json.loads(kubectl("get", "-o", "json", *arguments))


def allocatable(node: str) -> dict[str, str]:
    """What the node advertises of NVIDIA's resources; names at zero are gone for a scheduler and left out."""
    resources = get("node", node)["status"]["allocatable"]
    return {name: value for name, value in resources.items() if name.startswith("nvidia.com/") and value != "0"}


def until(condition: Callable[[], Any], what: str, timeout: float = 60) -> Any:
    """The first true answer of a condition that is asked once a second."""
    deadline = time.monotonic() + timeout
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:.0f} s: {what}")
        time.sleep(1)


def gpu_uuids(node: str) -> list[str]:
    """UUIDs of the node's GPUs as nvidia-smi prints them, sorted."""
    lines = on(node, "nvidia-smi", "-L").splitlines()
    return sorted(line.split("UUID: ")[1].rstrip(")") for line in lines)
