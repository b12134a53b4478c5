# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pynvml
import pytest
from ansible.errors import AnsibleError
from ansible.plugins.loader import lookup_loader


@pytest.fixture
def lookup():
    return lookup_loader.get("kubegpu.nvidia.python_module")


def test_the_file_that_the_controller_imports(lookup):
    assert lookup.run(["pynvml"]) == [pynvml.__file__]


def test_a_missing_module_names_what_to_install(lookup):
    with pytest.raises(AnsibleError, match="pip install some-distribution"):
        lookup.run(["no_such_module"], distribution="some-distribution")


@pytest.mark.parametrize("module", ["sys", "_socket", "email"])
def test_only_one_file_can_be_handed_on(lookup, module):
    with pytest.raises(AnsibleError, match="single"):
        lookup.run([module])
