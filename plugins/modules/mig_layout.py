#!/usr/bin/python
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: mig_layout
short_description: Bring the MIG layout of a host's GPUs to a declared state
version_added: 0.1.0
description:
  - Gives each GPU exactly the GPU instances and compute instances that are declared. Instances that already fit stay,
    and their work runs on; of all ways to the wanted layout the one is taken that destroys the fewest instances.
  - Everything is decided before anything is changed. An unknown profile, a sum that does not fit, a GPU that is not
    there or is in use, a reset that is not allowed - for all of these the module fails and has changed nothing.
  - GPUs are changed one by one and read back. When a step fails, that GPU gets its former layout back as far as the
    hardware allows, and the message says what is where.
  - Profiles are read from the GPU; where its driver cannot list them while MIG is off, the plan is made from a table. A
    name of another board revision or driver fits the only
    profile with the same slices and suffix whose memory differs by at most 1 GB or 2 %.
  - Nobody's process is ever ended. Two runs on one host at the same time are kept apart.
extends_documentation_fragment:
  - kubegpu.nvidia._attributes
  - kubegpu.nvidia._attributes.node
attributes:
  check_mode:
    support: full
    details:
      - Processes that only have a GPU's device file open, as monitors and the device plugin do, are not counted,
        because they are stopped before a change of the mode.
  diff_mode:
    support: full
  idempotent:
    support: full
requirements:
  - root on the host
  - nvidia-ml-py on the host; the role P(kubegpu.nvidia._nvml#role) delivers it
options:
  layouts:
    description: What GPUs shall look like. The first entry that matches a GPU decides.
    type: list
    elements: dict
    suboptions:
      gpus:
        description:
          - UUIDs, PCI addresses in any usual spelling, indices as text, or V(all). Indices may change with a reboot.
          - Put everything in quotes. YAML reads an unquoted PCI address as a number, so numbers are refused.
        type: list
        elements: raw
      models:
        description: Names of GPUs as NVML prints them, with the wildcards of the shell, instead of O(layouts[].gpus).
        type: list
        elements: str
      mode:
        description:
          - V(disabled) switches MIG off. V(enabled) alone is MIG without instances. Instances imply V(enabled).
        type: str
        choices:
          - enabled
          - disabled
      profiles:
        description:
          - How many GPU instances of which profile, each with one compute instance of full size.
          - Names are as NVML prints them, with V(+me), V(-me), V(+me.all) and V(+gfx). V(1c.3g.40gb) is a compute
            instance; as many as fit share a GPU instance.
        type: dict
      instances:
        description: GPU instances one by one, instead of O(layouts[].profiles).
        type: list
        elements: dict
        suboptions:
          profile:
            description: Name of the GPU instance's profile.
            type: str
            required: true
          start:
            description: The memory slice at which it begins. Without it the module chooses.
            type: int
          compute_instances:
            description: Profiles of its compute instances; one of full size if left out.
            type: list
            elements: str
  config:
    description: The content of a configuration file of NVIDIA's mig-parted, instead of O(layouts).
    type: dict
  config_file:
    description:
      - The path of such a file on the host. In YAML it takes PyYAML there, in JSON it does not.
    type: path
  selected:
    description: Name of the configuration in O(config) or O(config_file).
    type: str
  unmatched:
    description: What to do with GPUs that nothing names. V(keep) leaves them, V(disabled) switches MIG off.
    type: str
    choices:
      - keep
      - disabled
    default: keep
  allow_reset:
    description:
      - Whether this run may reset a GPU. GPUs of the Ampere generation are reset by the driver when their MIG mode
        changes; later ones are not. Without leave the module fails before it changes anything.
      - With NVSwitches the driver may insist that all GPUs of the host are reset together. They all have to be idle
        then, and get their instances back.
    type: bool
    default: false
  allow_disruption:
    description:
      - Whether this run may do what RV(disruptive) says. With V(false) it fails instead, before it changes anything.
        This is for those who planned in check mode and would not do more than was planned.
    type: bool
    default: true
  busy_timeout:
    description: Seconds to wait for work that is in the way to end.
    type: float
    default: 0
  stop_services:
    description:
      - Services that have GPUs open and may be stopped while a MIG mode changes. Those that run are stopped and started
        again, whatever happens between; after a run that was killed, by the next one. One that computes on a GPU is in
        the way all the same.
    type: list
    elements: str
    default:
      - nvidia-persistenced.service
      - nvidia-dcgm.service
      - dcgm.service
      - dcgm-exporter.service
      - nvidia-dcgm-exporter.service
      - nvsm.service
      - nvsm-mqtt.service
      - nvsm-core.service
      - nvsm-api-gateway.service
      - nvsm-notifier.service
  strategy:
    description:
      - The MIG strategy of the device plugin that serves this host. A layout that it could not advertise is refused,
        for example two profiles with V(single), or parts of GPU instances with V(mixed). Without it nothing is refused.
    type: str
    choices:
      - none
      - single
      - mixed
  plugin_mps:
    description: Whether the device plugin shares this host's GPUs by MPS, which excludes MIG.
    type: bool
    default: false
  boot_file:
    description:
      - Where to note the layout for the next boot, because instances are lost with every reboot. It is written when all
        is as wanted and was read back. The role P(kubegpu.nvidia.mig#role) installs a unit that replays it.
    type: path
seealso:
  - module: kubegpu.nvidia.gpu_facts
  - name: MIG User Guide
    description: Which board has which profiles, and where they can be placed.
    link: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
author:
  - KubeGPU contributors (@kubegpu)
"""

EXAMPLES = r"""
- name: Seven small instances on one GPU, MIG off on all others
  kubegpu.nvidia.mig_layout:
    layouts:
      - gpus: ["0000:1a:00.0"]
        profiles:
          1g.10gb: 7
      - gpus: [all]
        mode: disabled
  become: true

- name: A layout by model, for a whole fleet
  kubegpu.nvidia.mig_layout:
    layouts:
      - models: ["NVIDIA A100*80GB*", "NVIDIA H100 80GB*"]
        profiles:
          3g.40gb: 1
          1g.10gb: 4
    allow_reset: true
    busy_timeout: 600
  become: true

- name: Exact places, and two compute instances that share one GPU instance
  kubegpu.nvidia.mig_layout:
    layouts:
      - gpus: ["GPU-8f6d1c50-34c8-4a2b-9d67-6d0c7ae9a1b2"]
        instances:
          - profile: 3g.40gb
            start: 4
            compute_instances: [1c.3g.40gb, 2c.3g.40gb]
  become: true

- name: A configuration of NVIDIA's mig-parted as it is
  kubegpu.nvidia.mig_layout:
    config: "{{ lookup('ansible.builtin.file', 'mig-parted-config.yaml') | from_yaml }}"
    selected: all-balanced
  become: true
"""

RETURN = r"""
gpus:
  description: The GPUs that something was declared for.
  returned: success, and on failure as far as known
  type: list
  elements: dict
  contains:
    uuid:
      description: UUID of the GPU.
      type: str
      sample: GPU-8f6d1c50-34c8-4a2b-9d67-6d0c7ae9a1b2
    pci_address:
      description: PCI address of the GPU.
      type: str
      sample: 0000:1a:00.0
    name:
      description: Name of the GPU.
      type: str
      sample: NVIDIA H100 80GB HBM3
    before:
      description: MIG mode and instances before.
      type: dict
      sample: {mode: disabled, instances: []}
    after:
      description: MIG mode and instances now; in check mode, as they would be.
      type: dict
      sample:
        mode: enabled
        instances:
          - {profile: 3g.40gb, start: 0, compute_instances: [3g.40gb]}
    kept:
      description: GPU instances that stayed, each as in RV(gpus[].after).
      type: list
      elements: dict
      sample: []
    destroyed:
      description: GPU instances that are gone.
      type: list
      elements: dict
      sample: []
    created:
      description: GPU instances that are new. One that was made anew in the same place has its old UUID.
      type: list
      elements: dict
      sample:
        - {profile: 3g.40gb, start: 0, compute_instances: [3g.40gb]}
    mode_changed:
      description: Whether the MIG mode changed.
      type: bool
      sample: true
    reset:
      description: Whether the GPU was reset.
      type: bool
      sample: false
    reset_with:
      description: PCI addresses of the GPUs that were reset with it, because they are behind the same NVSwitches.
      type: list
      elements: str
      sample: []
    reboot_required:
      description: Whether the mode stays pending until a reboot.
      type: bool
      sample: false
disruptive:
  description: Whether the change destroys an instance, changes a MIG mode or resets a GPU.
  returned: success, and on failure as far as known
  type: bool
  sample: true
layout_changed:
  description: Whether a GPU changes; V(changed) is true for the boot file and services that are started again, too.
  returned: success, and on failure as far as known
  type: bool
  sample: true
disruption:
  description: The same in sentences.
  returned: success, and on failure as far as known
  type: list
  elements: str
  sample: ["NVIDIA H100 80GB HBM3 at 0000:1a:00.0: MIG mode becomes enabled"]
reboot_required:
  description: Whether a reboot is all that is missing. The module fails then.
  returned: success, and on failure as far as known
  type: bool
  sample: false
passed_over:
  description: GPUs that were passed over, by PCI address, with the reason.
  returned: success, and on failure as far as known
  type: dict
  sample: {"0000:3b:00.0": bound to vfio-pci}
holders:
  description: Who is in the way.
  returned: when work is in the way
  type: list
  elements: dict
  sample:
    - {pid: 4711, command: python3, computes: true, gpu_instance: 9, compute_instance: 0, pod: team-a/train-0}
boot_file_changed:
  description: Whether O(boot_file) was written.
  returned: success, and on failure as far as known
  type: bool
  sample: true
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.config_file import load
from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.node import Options, bring_about, planned
from ansible_collections.kubegpu.nvidia.plugins.module_utils._nvml import load_binding

STOP_SERVICES = [
    f"{name}.service"
    for name in (
        "nvidia-persistenced",
        "nvidia-dcgm",
        "dcgm",
        "dcgm-exporter",
        "nvidia-dcgm-exporter",
        "nvsm",
        "nvsm-mqtt",
        "nvsm-core",
        "nvsm-api-gateway",
        "nvsm-notifier",
    )
]
INSTANCE_OPTIONS: dict[str, t.Any] = {
    "profile": {"type": "str", "required": True},
    "start": {"type": "int"},
    "compute_instances": {"type": "list", "elements": "str"},
}
LAYOUT_OPTIONS: dict[str, t.Any] = {
    "gpus": {"type": "list", "elements": "raw"},
    "models": {"type": "list", "elements": "str"},
    "mode": {"type": "str", "choices": ["enabled", "disabled"]},
    "profiles": {"type": "dict"},
    "instances": {"type": "list", "elements": "dict", "options": INSTANCE_OPTIONS},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "layouts": {"type": "list", "elements": "dict", "options": LAYOUT_OPTIONS},
            "config": {"type": "dict"},
            "config_file": {"type": "path"},
            "selected": {"type": "str"},
            "unmatched": {"type": "str", "choices": ["keep", "disabled"], "default": "keep"},
            "allow_reset": {"type": "bool", "default": False},
            "allow_disruption": {"type": "bool", "default": True},
            "busy_timeout": {"type": "float", "default": 0},
            "stop_services": {"type": "list", "elements": "str", "default": STOP_SERVICES},
            "strategy": {"type": "str", "choices": ["none", "single", "mixed"]},
            "plugin_mps": {"type": "bool", "default": False},
            "boot_file": {"type": "path"},
        },
        mutually_exclusive=[["layouts", "config", "config_file"]],
        required_by={"config": ["selected"], "config_file": ["selected"]},
        supports_check_mode=True,
    )
    given = dict(module.params)
    config_file = given.pop("config_file")
    try:
        if config_file:
            given["config"] = load(config_file)
        options = Options(**given)
        binding = load_binding()
        result = planned(options, binding) if module.check_mode else bring_about(options, binding, module.run_command)
    except KubegpuError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    if not module._diff:
        del result["diff"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
