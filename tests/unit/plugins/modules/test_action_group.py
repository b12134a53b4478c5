# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import yaml

COLLECTION = Path(__file__).parents[4]


# A module that is not in the group would silently ignore its module_defaults, and talk to another cluster.
def test_every_module_with_connection_options_is_in_the_group():
    group = yaml.safe_load((COLLECTION / "meta" / "runtime.yml").read_text())["action_groups"]["k8s"]
    members = {member for member in group if isinstance(member, str)}
    modules = {
        path.stem
        for path in (COLLECTION / "plugins" / "modules").glob("*.py")
        if "kubernetes.core.k8s_auth_options" in path.read_text()
    }
    assert members == modules
    assert {"metadata": {"extend_group": ["kubernetes.core.k8s"]}} in group
