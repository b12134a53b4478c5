# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules that hold for every role: names of variables, and documentation that says the same as the defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

ROLES = sorted((Path(__file__).parents[2] / "roles").iterdir())
# Inputs that roles share; README.md lists them.
SHARED = {
    "kubegpu_api_host",
    "kubegpu_injection",
    "kubegpu_k8s_auth",
    "kubegpu_missing_nodes",
    "kubegpu_node_name",
    "kubegpu_package_mirror",
    "kubegpu_registry",
}


def load(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text()) or {} if path.exists() else {}


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_inputs_carry_the_name_of_their_role_or_are_shared(role: Path) -> None:
    stray = {name for name in load(role / "defaults/main.yml") if not name.startswith(f"{role.name}_")} - SHARED
    assert not stray


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_internal_variables_are_marked_as_such(role: Path) -> None:
    prefix = f"__{role.name.lstrip('_')}_"
    assert not [name for name in load(role / "vars/main.yml") if not name.startswith(prefix)]


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_input_is_documented_with_its_default(role: Path) -> None:
    options = load(role / "meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    defaults = load(role / "defaults/main.yml")
    required = {name for name, option in options.items() if option.get("required")}
    # A shared input may have its default in an internal role.
    assert set(options) - required - SHARED == set(defaults) - SHARED
    assert set(defaults) <= set(options)
    computed = {name for name, value in defaults.items() if "{{" in str(value)}
    documented = {name: option.get("default") for name, option in options.items() if name in set(defaults) - computed}
    assert documented == {name: value for name, value in defaults.items() if name not in computed}
