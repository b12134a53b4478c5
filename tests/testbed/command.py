# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running programs, waiting, and telling the person in front of the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO


class TestbedError(Exception):
    """The testbed cannot go on; the text is for the person who started it."""

    __test__ = False  # not a test, whatever pytest makes of the name


def say(text: str) -> None:
    print(f"\033[1m==> {text}\033[0m", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Command:
    """A program with its arguments and environment."""

    argv: list[str]
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def call(self, stdin: IO[bytes] | None = None) -> subprocess.CompletedProcess[str]:
        """Runs it to its end, whatever that is."""
        return subprocess.run(
            self.argv,
            env=self.environment,
            stdin=stdin or subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def output(self, stdin: IO[bytes] | None = None) -> str:
        """What it prints; it has to succeed."""
        done = self.call(stdin)
        if done.returncode != 0:
            raise TestbedError(f"`{' '.join(self.argv)}` ended with {done.returncode}:\n{done.stderr or done.stdout}")
        return done.stdout


def run(*argv: str | Path) -> str:
    return Command([str(word) for word in argv]).output()


def built(script: Path, *arguments: str) -> Path:
    """The directory that a build script prints; its progress goes to the terminal."""
    done = subprocess.run([str(script), *arguments], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise TestbedError(f"{script} failed (see above)")
    return Path(done.stdout.strip())


def wait_for(what: str, seconds: float, ready: Callable[[], bool], hint: str = "") -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise TestbedError(f"waited {seconds:.0f} s in vain for {what}. {hint}".rstrip())
        time.sleep(0.5)
