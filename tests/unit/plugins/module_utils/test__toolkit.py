# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.kubegpu.nvidia.plugins.module_utils import _toolkit


def test_the_toolkit(tmp_path):
    program = tmp_path / "nvidia-ctk"
    program.touch(mode=0o755)
    packages = {"nvidia-container-toolkit-base": "1.20.2-1", "nvidia-open": "580.178.04-1"}
    assert _toolkit.facts(packages, str(tmp_path), []) == {
        "version": "1.20.2",
        "packages": {"nvidia-container-toolkit-base": "1.20.2-1"},
        "binaries": {"nvidia-ctk": str(program)},
        "cdi_specifications": [],
    }


def test_no_toolkit(tmp_path):
    assert _toolkit.facts({}, str(tmp_path), [str(tmp_path / "missing")]) == {
        "version": None,
        "packages": {},
        "binaries": {},
        "cdi_specifications": [],
    }


def test_cdi_specifications_each_once(tmp_path):
    for name in (
        "run/cdi/nvidia.yaml",
        "run/cdi/nvidia.yaml.tmp",
        "etc/cdi/b.json",
        "etc/cdi/a.yaml",
        "etc/cdi/README",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "etc/cdi/old.yaml").mkdir()
    (tmp_path / "var").mkdir()
    (tmp_path / "var/run").symlink_to("../run")
    directories = [str(tmp_path / name) for name in ("etc/cdi", "var/run/cdi", "run/cdi")]
    found = _toolkit.facts({}, str(tmp_path), directories)["cdi_specifications"]
    assert found == [str(tmp_path / name) for name in ("etc/cdi/a.yaml", "etc/cdi/b.json", "var/run/cdi/nvidia.yaml")]
