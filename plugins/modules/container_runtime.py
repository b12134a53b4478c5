#!/usr/bin/python
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: container_runtime
short_description: Give a node's container runtime the handler of the NVIDIA container toolkit
version_added: 0.1.0
description:
  - Brings containerd to a runtime handler V(nvidia) that starts O(binary), with CDI enabled. The default runtime stays
    what it is (it becomes V(runc) where V(nvidia) was the default).
  - The effective configuration of the CRI plugin after the change is the one before plus the handler. containerd 1.x
    takes the whole CRI section from the last file that has one, so the module writes a drop-in that repeats the section
    in force. Run it again after a change in C(config.toml) and the drop-in follows.
  - The main file keeps every byte; it gets one import. New files are read by containerd's own parser before they are
    put in place.
  - Sets C(accept-nvidia-visible-devices-envvar-when-unprivileged = false) in O(toolkit_config), so that an unprivileged
    pod does not see all GPUs because its image sets E(NVIDIA_VISIBLE_DEVICES).
  - Restarts nothing. RV(restart_required) is computed from the state of the node, so a restart that an earlier run did
    not reach is asked for again.
extends_documentation_fragment:
  - kubegpu.nvidia._attributes
  - kubegpu.nvidia._attributes.node
attributes:
  check_mode:
    support: full
    details:
      - Where the toolkit is not installed yet, the change of its configuration is predicted.
  diff_mode:
    support: full
    details:
      - Passwords of registries are masked.
  idempotent:
    support: full
options:
  binary:
    description: The runtime that the handler starts. It must exist, except in check mode.
    type: path
    default: /usr/bin/nvidia-container-runtime
  cdi:
    description: Enable CDI. It needs containerd 1.7.16 or later; an older one is refused.
    type: bool
    default: true
  toolkit_config:
    description: Configuration file of the toolkit. It must exist, except in check mode.
    type: path
    default: /etc/nvidia-container-runtime/config.toml
notes:
  - Handles containerd 1.6 and 1.7 with a main file that says C(version = 2), or without one. Other dialects are
    refused.
requirements:
  - tomli on nodes with a Python below 3.11, which has no TOML reader of its own. Most distributions have it as the
    package C(python3-tomli). No role of this collection installs it; the module says so where it is missing.
author:
  - KubeGPU contributors (@kubegpu)
"""

EXAMPLES = r"""
- name: Configure the container runtime
  kubegpu.nvidia.container_runtime:
  register: runtime

- name: Restart containerd where its configuration is newer than the daemon
  ansible.builtin.systemd_service:
    name: "{{ item.unit }}"
    state: restarted
  loop: "{{ runtime.runtimes | selectattr('restart_required') }}"
"""

RETURN = r"""
restart_required:
  description: Whether any runtime has to be restarted (or started) so that what is on disk is in force.
  returned: success
  type: bool
  sample: true
runtimes:
  description: The runtimes that were configured.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the runtime.
      type: str
      sample: containerd
    unit:
      description: The systemd unit that runs it.
      type: str
      sample: containerd.service
    version:
      description: Its version, if it can be read.
      type: str
      sample: 1.7.24
    dialect:
      description: Dialect of its configuration, the C(version) in its main file.
      type: int
      sample: 2
    config_path:
      description: Its main file.
      type: str
      sample: /etc/containerd/config.toml
    drop_in:
      description: The file that holds the handler.
      type: str
      sample: /etc/containerd/conf.d/99-nvidia.toml
    restart_required:
      description: Whether it has to be restarted.
      type: bool
      sample: true
    restart_reason:
      description: Why, empty if it need not be.
      type: str
      sample: containerd is not running
    verified:
      description: Whether the daemon itself confirmed that it runs with the configuration on disk.
      type: bool
      sample: false
    verify_reason:
      description: What it was asked and what it said.
      type: str
      sample: "crictl info: containerd has the handler 'nvidia'"
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.module_utils._runtime.configure import choose, configure
from ansible_collections.kubegpu.nvidia.plugins.module_utils._runtime.containerd import Wanted
from ansible_collections.kubegpu.nvidia.plugins.module_utils._runtime.daemons import find_daemons


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "binary": {"type": "path", "default": "/usr/bin/nvidia-container-runtime"},
            "cdi": {"type": "bool", "default": True},
            "toolkit_config": {"type": "path", "default": "/etc/nvidia-container-runtime/config.toml"},
        },
        supports_check_mode=True,
    )
    module.run_command_environ_update = {"LANGUAGE": "C", "LC_ALL": "C"}
    wanted = Wanted(binary=module.params["binary"], cdi=module.params["cdi"])
    try:
        result = configure(module, choose(find_daemons(module.run_command)), wanted, module.params["toolkit_config"])
    except KubegpuError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    if not module._diff:
        del result["diff"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
