# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubegpu.nvidia.plugins.module_utils import _facts
from ansible_collections.kubegpu.nvidia.plugins.modules import gpu_facts


@pytest.fixture
def run(monkeypatch, capfd):
    """Runs the module over a host that returns the parts it was asked for."""
    monkeypatch.setattr(gpu_facts, "gather", lambda run_command, parts: {"present": False, "parts": list(parts)})

    def run(**arguments):
        with patch_module_args(arguments), pytest.raises(SystemExit):
            gpu_facts.main()
        return json.loads(capfd.readouterr().out)

    return run


@pytest.mark.parametrize("gather", [{}, {"gather": "all"}, {"gather": ["host", "all"]}])
def test_everything(run, gather):
    result = run(**gather)
    assert result["ansible_facts"]["nvidia_gpu"]["parts"] == list(_facts.PARTS)
    assert result["changed"] is False


def test_parts_and_check_mode(run):
    result = run(gather=["driver", "nvml"], _ansible_check_mode=True)
    assert result["ansible_facts"]["nvidia_gpu"]["parts"] == ["driver", "nvml"]


def test_an_unknown_part(run):
    assert "value of gather must be one or more of" in run(gather=["gpus"])["msg"]


def test_the_documented_choices_are_the_modules():
    documented = yaml.safe_load(gpu_facts.DOCUMENTATION)["options"]["gather"]["choices"]
    assert documented == ["all", *_facts.PARTS]


def test_this_machine_whatever_it_is():
    """The real reading side, with no process started: no machine makes it fail."""
    facts = _facts.gather(lambda command, **kwargs: (1, "", ""), _facts.PARTS)
    documented = yaml.safe_load(gpu_facts.RETURN)["ansible_facts"]["contains"]["nvidia_gpu"]["contains"]
    assert set(facts) == set(documented)
    for part in ("host", "driver", "nvml", "toolkit"):
        assert set(facts[part]) == set(documented[part]["contains"])
    json.dumps(facts)
