# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Reads a file of mig-parted on the host. Hosts need not have PyYAML, so JSON, which is YAML too, goes without."""

from __future__ import annotations

import json
import typing as t

from .._errors import KubegpuError


def load(path: str) -> t.Any:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as exc:
        raise KubegpuError(f"config_file cannot be read: {exc}") from exc
    try:
        config = json.loads(text)
    except ValueError:
        config = _yaml(path, text)
    if config is None:
        raise KubegpuError(f"{path} is empty; a file of mig-parted has version and mig-configs.")
    return config


def _yaml(path: str, text: str) -> t.Any:
    try:
        import yaml
    except ImportError:
        raise KubegpuError(
            f"{path} is no JSON, and this host's Python has no PyYAML to read it as YAML. Read it on the controller:"
            " config: \"{{ lookup('ansible.builtin.file', path) | from_yaml }}\""
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise KubegpuError(f"{path} is no YAML: {exc}") from exc
