# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what a run did as JSON to $RECORDER_FILE; kills the run when the task named $RECORDER_KILL_AT starts."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: recorder
type: aggregate
short_description: Test equipment, records what a run did
description:
  - Test equipment, records what a run did.
"""

# Actions that never execute a module on the target.
ON_CONTROLLER = {
    f"{prefix}{name}"
    for prefix in ("", "ansible.builtin.")
    for name in (
        "assert",
        "debug",
        "fail",
        "include_role",
        "include_tasks",
        "import_role",
        "import_tasks",
        "meta",
        "set_fact",
    )
} | {"ansible.builtin.validate_argument_spec", "validate_argument_spec"}


def shows_difference(diff):
    """Whether Ansible would print something for the diff of a result."""
    parts = diff if isinstance(diff, list) else [diff or {}]
    return any(part.get("prepared") or part.get("before") != part.get("after") for part in parts)


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "recorder"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self):
        super().__init__()
        self.executions = Counter()
        self.changed = []
        self.failed = []
        self.diffs = []
        self.lines = {}

    def _note(self, result):
        host, task = result._host.get_name(), result._task
        name = task.get_name().rpartition(" : ")[2]
        outcome = result._result
        delegated = task.delegate_to is not None
        if not delegated and task.action not in ON_CONTROLLER:
            self.executions[host] += len(outcome["results"]) if task.loop else 1
        if outcome.get("changed"):
            self.changed.append([host, name])
        if shows_difference(outcome.get("diff")):
            self.diffs.append([host, name, outcome["diff"]])
        if name == "Report":
            self.lines[host] = outcome["msg"]

    def v2_playbook_on_task_start(self, task, is_conditional):
        if task.get_name().rpartition(" : ")[2] == os.environ.get("RECORDER_KILL_AT"):
            os.killpg(os.getpgrp(), signal.SIGKILL)

    def v2_runner_on_ok(self, result):
        self._note(result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._note(result)
        self.failed.append([result._host.get_name(), result._task.get_name(), str(result._result.get("msg"))])

    def v2_runner_on_unreachable(self, result):
        self.failed.append([result._host.get_name(), result._task.get_name(), str(result._result.get("msg"))])

    def v2_playbook_on_stats(self, stats):
        record = {
            "hosts": {host: stats.summarize(host) for host in stats.processed},
            "executions": self.executions,
            "changed": self.changed,
            "failed": self.failed,
            "diffs": self.diffs,
            "report": self.lines,
        }
        with open(os.environ["RECORDER_FILE"], "w", encoding="utf-8") as file:
            json.dump(record, file, default=str)
