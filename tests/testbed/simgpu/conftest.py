# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from simulated_node import HERE, VERSION, Node


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() != 0:
        for item in items:
            if HERE in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="mount namespaces and device nodes need root"))


@pytest.fixture(scope="session")
def build() -> Path:
    done = subprocess.run([HERE / "build.sh", VERSION], stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.strip())


@pytest.fixture
def node(build: Path) -> Iterator[Node]:
    node = Node(build)
    yield node
    node.stop()
