# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`containerd config dump` of 1.7 without containerd: an imported CRI section replaces the one before as a whole."""

from __future__ import annotations

import copy
import typing as t

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.module_utils._runtime.containerd import CRI
from ansible_collections.kubegpu.nvidia.plugins.module_utils._runtime.imports import load
from ansible_collections.kubegpu.nvidia.plugins.module_utils._runtime.toml_text import emit

DEFAULTS = {
    "sandbox_image": "registry.k8s.io/pause:3.8",
    "restrict_oom_score_adj": False,
    "enable_cdi": False,
    "cdi_spec_dirs": ["/etc/cdi", "/var/run/cdi"],
    "cni": {"bin_dir": "/opt/cni/bin"},
    "containerd": {
        "default_runtime_name": "runc",
        "snapshotter": "overlayfs",
        "runtimes": {"runc": {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": False}}},
    },
    "registry": {"config_path": "", "configs": {}, "mirrors": {}},
}
# Tables that containerd keeps as maps: naming one entry drops the built-in ones.
MAPS = ("runtimes", "configs", "mirrors")


def run_command(argv: list[str], **_options: t.Any) -> tuple[int, str, str]:
    assert argv[1] == "--config" and argv[3:] == ["config", "dump"], argv
    merged: dict[str, t.Any] = {"version": 2, "plugins": {}, "disabled_plugins": []}
    try:
        files = load(argv[2], {})
    except KubegpuError as exc:
        return 1, "", f"containerd: failed to load TOML: {exc}\n"
    for table in files.values():
        plugins = {**merged["plugins"], **table.get("plugins", {})}
        disabled = [*merged["disabled_plugins"], *table.get("disabled_plugins", [])]
        merged = {**merged, **table, "plugins": plugins, "disabled_plugins": disabled}
    if CRI not in merged["disabled_plugins"]:
        merged["plugins"][CRI] = _overlaid(DEFAULTS, merged["plugins"].get(CRI, {}))
    return 0, emit({**merged, "imports": list(files)}), ""


def _overlaid(defaults: dict[str, t.Any], section: dict[str, t.Any]) -> dict[str, t.Any]:
    result = copy.deepcopy(defaults)
    for key, value in section.items():
        whole = key in MAPS or not isinstance(value, dict)
        result[key] = value if whole else _overlaid(result.get(key, {}), value)
    return result
