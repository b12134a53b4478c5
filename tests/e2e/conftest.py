# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from running import Run, site


@pytest.fixture(scope="session")
def converged() -> Run:
    """The default nodes after a run of the site playbook."""
    run = site()
    assert run.code == 0, run.messages
    return run
