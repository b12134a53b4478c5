# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from host import ROOT, Host, checkout

VERSION = "580.178.04"


@pytest.fixture(scope="session")
def build() -> Path:
    command = [ROOT / "tests/testbed/simgpu/build.sh", VERSION]
    return Path(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip())


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkout(tmp_path_factory.mktemp("tree"))


@pytest.fixture
def host(build: Path, tree: Path) -> Iterator[Callable[..., Host]]:
    """Makes hosts with the named boards."""
    made: list[Host] = []

    def make(*boards: str) -> Host:
        made.append(Host(build, tree, *boards))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="mount namespaces and device nodes need root"))
