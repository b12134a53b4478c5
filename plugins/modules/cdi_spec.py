#!/usr/bin/python
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cdi_spec
short_description: Keep the CDI specification of a node's GPUs equal to what NVML says
version_added: 0.1.0
description:
  - Lets C(nvidia-ctk cdi generate) of the NVIDIA Container Toolkit describe the GPUs and MIG devices that NVML shows
    now, compares the outcome with the file that container runtimes read, byte for byte, and replaces the file when it
    differs.
  - The toolkit's own C(nvidia-cdi-refresh.service) runs when the driver is loaded or the toolkit changes, but not after
    a change of MIG instances. A pod that asks for a device of a stale specification fails with an unresolvable CDI
    device.
  - The settings of that service in C(/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env) hold here too, so that both
    write the same file.
extends_documentation_fragment:
  - kubegpu.nvidia._attributes
  - kubegpu.nvidia._attributes.node
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - Shows the names of the devices, not the whole file.
  idempotent:
    support: full
options:
  path:
    description:
      - The file, C(.yaml) or C(.json) in a directory that the container runtime reads.
      - The default is what E(NVIDIA_CTK_CDI_OUTPUT_FILE_PATH) in the service's settings says, otherwise
        V(/var/run/cdi/nvidia.yaml).
    type: path
notes:
  - Run it as root. An unprivileged user can read neither the MIG instances nor write the file.
requirements:
  - nvidia-container-toolkit-base 1.18.1 or later
seealso:
  - module: kubegpu.nvidia.mig_layout
  - name: CDI in the NVIDIA Container Toolkit
    description: NVIDIA's documentation of C(nvidia-ctk cdi generate).
    link: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html
author:
  - KubeGPU contributors (@kubegpu)
"""

EXAMPLES = r"""
- name: Bring the CDI specification up to date after a change of MIG instances
  kubegpu.nvidia.cdi_spec:
  become: true

- name: See whether it is up to date, without counting as a change
  kubegpu.nvidia.cdi_spec:
  become: true
  check_mode: true
  changed_when: false
  register: specification

- name: Say when it is not
  ansible.builtin.debug:
    msg: "NVML has {{ specification.devices | join(', ') }}, and the specification is another one."
  when: specification.stale
"""

RETURN = r"""
path:
  description: The file.
  returned: success
  type: str
  sample: /var/run/cdi/nvidia.yaml
stale:
  description: Whether the file differed from what NVML says now; it does no more, except in check mode.
  returned: success
  type: bool
  sample: false
devices_differ:
  description: Whether it described other devices, so that whoever took devices from it has to start anew.
  returned: success
  type: bool
  sample: false
devices:
  description: Names of the devices that it describes, or would describe in check mode, as C(nvidia.com/gpu=) has them.
  returned: success
  type: list
  elements: str
  sample: ["0:0", MIG-5e4eb1a4-5bcf-5c5c-8fd2-4e5b3d1c7a90, "1", GPU-4f5c8d2e-1b3a-5c7d-9e8f-0a1b2c3d4e5f, all]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nvidia.plugins.module_utils._cdi import bring_about
from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError


def main() -> None:
    module = AnsibleModule(argument_spec={"path": {"type": "path"}}, supports_check_mode=True)
    try:
        result = bring_about(module, module.params["path"])
    except KubegpuError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    if not module._diff:
        del result["diff"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
