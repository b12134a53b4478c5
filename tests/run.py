# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All checks of the project, cheapest first, each with its time; the last line counts them: `N passed, N failed`.

Every step counts as one check, except those that run pytest: there each test counts.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "tests" / "output"
BIN = Path(sys.prefix) / "bin"


@dataclass(frozen=True)
class Step:
    """A command of one part; `junit` names the reports (a glob below tests/output) that count its tests."""

    part: str
    name: str
    command: str
    junit: str = ""
    testbed: bool = False


STEPS = [
    Step("lint", "ruff", "ruff check ."),
    Step("lint", "ruff format", "ruff format --check ."),
    Step("lint", "mypy", "tests/in_collections.sh mypy plugins"),
    Step("lint", "shellcheck", "sh -c 'git ls-files -z -co --exclude-standard \"*.sh\" .ci/run | xargs -0 shellcheck'"),
    Step("lint", "yamllint", "yamllint --strict ."),
    Step("lint", "ansible-lint", "tests/in_collections.sh ansible-lint --offline --strict"),
    Step("lint", "build and install", "tests/build_and_install.sh"),
    Step("sanity", "ansible-test sanity", "tests/ansible_test.sh sanity --python 3.11"),
    Step("unit", "ansible-test units", "tests/ansible_test.sh units --python 3.11", junit="junit/python3.11-*.xml"),
    Step(
        "testbed",
        "simulated GPU",
        "pytest -q -n 2 -p no:ansible tests/testbed --junitxml=tests/output/testbed.xml",
        junit="testbed.xml",
    ),
    Step(
        "simulated",
        "modules on simulated GPUs",
        "pytest -q -n 2 -p no:ansible tests/simulated --junitxml=tests/output/simulated.xml",
        junit="simulated.xml",
    ),
    Step("molecule", "testbed, from nothing", "make -s testbed-down testbed-up"),
    # The last one leaves what the parts after it begin with.
    Step("molecule", "scenario mig", "tests/molecule.sh mig", testbed=True),
    Step("molecule", "scenario site", "tests/molecule.sh site", testbed=True),
    Step("demo", "make demo", "make -s demo"),
    Step("e2e", "testbed", "make -s testbed-up"),
    Step(
        "e2e",
        "end to end",
        "pytest -v -rs -p no:ansible tests/e2e --junitxml=tests/output/e2e.xml",
        junit="e2e.xml",
        testbed=True,
    ),
]


def testbed_environment() -> dict[str, str]:
    """The `export NAME=value` lines of `make testbed-env`."""
    lines = subprocess.run(
        ["make", "-s", "testbed-env"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.splitlines()
    pairs = (shlex.split(line)[1].partition("=") for line in lines if line.startswith("export "))
    return {name: value for name, _, value in pairs}


def counts(pattern: str) -> tuple[int, int, int]:
    """Passed, failed and skipped tests of the JUnit reports that match."""
    passed = failed = skipped = 0
    for report in OUTPUT.glob(pattern):
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            bad = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            skip = int(suite.get("skipped", 0))
            passed += int(suite.get("tests", 0)) - bad - skip
            failed += bad
            skipped += skip
    return passed, failed, skipped


def run(step: Step) -> tuple[int, int, int]:
    for old in OUTPUT.glob(step.junit) if step.junit else ():
        old.unlink()
    environment = dict(os.environ, PATH=f"{BIN}:{os.environ['PATH']}", LC_ALL="C.UTF-8", PYTHONUNBUFFERED="1")
    if step.testbed:
        try:
            environment.update(testbed_environment())
        except subprocess.CalledProcessError:
            return 0, 1, 0
    code = subprocess.run(shlex.split(step.command), cwd=ROOT, env=environment).returncode
    passed, failed, skipped = counts(step.junit) if step.junit else (0, 0, 0)
    if code and not failed:
        failed = 1
    elif not code and not step.junit:
        passed = 1
    elif not code and not passed:
        print(f"{step.name} ended well but ran no test", flush=True)
        failed = 1
    return passed, failed, skipped


def main() -> int:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    parts = set(sys.argv[1:])
    steps = [step for step in STEPS if not parts or step.part in parts]
    if not steps:
        sys.exit(f"No such part: {' '.join(parts)}. Parts: {', '.join(dict.fromkeys(s.part for s in STEPS))}")
    total = [0, 0, 0]
    bad = []
    for number, step in enumerate(steps, 1):
        print(f"\n==> {number}/{len(steps)} {step.part}: {step.name}", flush=True)
        start = time.monotonic()
        result = run(step)
        print(f"<== {step.name}: {time.monotonic() - start:.0f} s, {result[0]} passed, {result[1]} failed", flush=True)
        total = [a + b for a, b in zip(total, result)]
        if result[1]:
            bad.append(step.name)
    print()
    if bad:
        print(f"Not well: {', '.join(bad)}")
    print(f"{total[0]} passed, {total[1]} failed" + (f", {total[2]} skipped" if total[2] else ""))
    return 1 if total[1] else 0


if __name__ == "__main__":
    sys.exit(main())
