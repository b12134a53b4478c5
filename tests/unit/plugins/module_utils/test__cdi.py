# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils import _cdi

# As nvidia-ctk 1.20 writes it; what is left out here is more of the same.
YAML = b"""---
cdiVersion: 0.7.0
kind: nvidia.com/gpu
devices:
    - name: "0:0"
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia0
            - path: /dev/nvidia-caps/nvidia-cap3
        hooks:
            - hookName: createContainer
              path: /usr/bin/nvidia-cdi-hook
              args: [nvidia-cdi-hook, create-symlinks, --link, ../card1::/dev/dri/by-path/pci-0000:1a:00.0-card]
    - name: MIG-5e4eb1a4-5bcf-5c5c-8fd2-4e5b3d1c7a90
      containerEdits: {}
    - name: all
      containerEdits: {}
containerEdits:
    env: [NVIDIA_VISIBLE_DEVICES=void]
    hooks:
        - hookName: createContainer
          path: /usr/bin/nvidia-cdi-hook
"""
JSON = b"""{"cdiVersion":"0.7.0","kind":"nvidia.com/gpu","devices":[{"name":"0:0","containerEdits":{"hooks":[
{"hookName":"createContainer"}]}},{"name":"MIG-5e4eb1a4-5bcf-5c5c-8fd2-4e5b3d1c7a90","containerEdits":{}},{"name":"all"}]}"""
# Up to 1.17, by another library.
OLD_YAML = b"""---
cdiVersion: 0.5.0
devices:
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
  name: "0:0"
- name: MIG-5e4eb1a4-5bcf-5c5c-8fd2-4e5b3d1c7a90
- name: all
kind: nvidia.com/gpu
"""


@pytest.mark.parametrize("text", [YAML, JSON, OLD_YAML], ids=["yaml", "json", "older yaml"])
def test_the_devices_of_a_specification(text: bytes) -> None:
    assert _cdi.devices(text) == ["0:0", "MIG-5e4eb1a4-5bcf-5c5c-8fd2-4e5b3d1c7a90", "all"]


@pytest.mark.parametrize("text", [None, b"", b"\xff\xfe", b"devices: []\n"])
def test_no_devices(text: bytes | None) -> None:
    assert _cdi.devices(text) == []


def test_the_settings_of_the_refresh_service(tmp_path: t.Any) -> None:
    file = tmp_path / "refresh.env"
    file.write_text(
        "# NVIDIA_CTK_DEBUG=true\n; other\n\n  NVIDIA_CTK_CDI_OUTPUT_FILE_PATH = /etc/cdi/nvidia.yaml  \n"
        "NVIDIA_CTK_CDI_GENERATE_DEVICE_NAME_STRATEGIES=\"uuid\"\nA='x=y'\nno value\n"
    )
    assert _cdi.settings(str(file)) == {
        "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH": "/etc/cdi/nvidia.yaml",
        "NVIDIA_CTK_CDI_GENERATE_DEVICE_NAME_STRATEGIES": "uuid",
        "A": "x=y",
    }
    assert _cdi.settings(str(tmp_path / "missing")) == {}
