# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role mig repeats of the module's code has to stay the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from ansible_collections.kubegpu.nvidia.plugins.modules import mig_layout

ROOT = Path(__file__).parents[2]
ROLE = ROOT / "roles" / "mig"


def test_the_boot_program_has_all_that_it_imports_and_nothing_else(tmp_path: Path) -> None:
    files = yaml.safe_load((ROLE / "vars/main.yml").read_text())["__mig_boot_files"]
    for name in files:
        (tmp_path / "kubegpu_boot" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "plugins/module_utils" / name, tmp_path / "kubegpu_boot" / name)
    program = """
import sys, kubegpu_boot._mig.replay
for name, module in sys.modules.items():
    if name.startswith("kubegpu_boot.") and module.__file__:
        print(name.partition(".")[2].replace(".", "/") + ".py")
"""
    done = subprocess.run(
        [sys.executable, "-B", "-c", program],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert sorted(done.stdout.split()) == sorted(files)


def test_the_services_that_may_be_stopped_are_those_of_the_module() -> None:
    assert yaml.safe_load((ROLE / "defaults/main.yml").read_text())["mig_stop_services"] == mig_layout.STOP_SERVICES


def test_what_it_repeats_of_the_role_device_plugin() -> None:
    """Roles share documented variables only, so the label, the DaemonSet and the default strategy stand in both."""
    plugin = ROOT / "roles" / "device_plugin"
    ours = yaml.safe_load((ROLE / "vars/main.yml").read_text())
    theirs = yaml.safe_load((plugin / "defaults/main.yml").read_text())
    assert (
        ours["__mig_clients_label"] in yaml.safe_load((plugin / "vars/main.yml").read_text())["__device_plugin_labels"]
    )
    pause = (ROLE / "tasks/pause.yml").read_text()
    assert f"default('{theirs['device_plugin_namespace']}')" in pause
    assert "name: nvidia-device-plugin\n" in (plugin / "templates/daemon-set.yml.j2").read_text()
    assert "daemonset: nvidia-device-plugin\n" in pause
    assert theirs["device_plugin_configs"]["default"]["flags"] == {"migStrategy": "mixed"}
    assert "default({'default': {'flags': {'migStrategy': 'mixed'}}})" in ours["__mig_plugin_configs"]
    assert theirs["device_plugin_config_name"] == "default"
