#!/usr/bin/python
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_resources
short_description: Wait until nodes of a Kubernetes cluster advertise their GPUs
version_added: 0.1.0
description:
  - Computes from what NVML reported which resources of NVIDIA's GPU device plugin a node should offer, and waits until
    those among the node's allocatable resources are exactly these.
  - The device plugin's resources are C(nvidia.com/gpu) and C(nvidia.com/mig-*), each also with C(.shared) at the end.
    Others, such as C(nvidia.com/hostdev) of NVIDIA's Network Operator, are neither compared nor returned.
  - These may still be those of a device plugin that is being replaced. With O(daemonset), the pod of that DaemonSet on
    the node must also be ready and of the DaemonSet's current revision. A node whose GPUs offer nothing, because MIG
    is on and no instance is there, needs no pod, and one that is there need not be ready, since the device plugin does
    not start on such a node.
  - A look takes four requests (without O(daemonset) one), whatever the number of nodes up to 500, and what lacks is
    then watched. When the node did not report to the API since its plugin was started, up to 15 seconds are waited for
    that.
  - The first look fails at once when the API server gives no answer, or one of 429, 500, 502, 503 and 504. After it,
    such a server is asked again until the time is over.
  - When the time is over, the module fails and says for each node what was wanted, what was found, and what the node,
    the device plugin's pod, its events and its log say about it. It fails at once when there is no such DaemonSet.
  - A GPU that NVML cannot use is not expected, and named in a warning.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - kubegpu.nvidia._attributes
  - kubegpu.nvidia._k8s
attributes:
  check_mode:
    support: full
    details: Changes nothing. In check mode it looks once, and does not fail when a node is not ready or
      there is no such DaemonSet yet.
  diff_mode:
    support: N/A
    details: This module changes nothing.
  idempotent:
    support: full
    details: This module changes nothing.
options:
  nodes:
    description: The nodes to wait for.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the node, see M(kubegpu.nvidia.node_state).
        type: str
        required: true
      gpus:
        description:
          - Its GPUs, as RV(kubegpu.nvidia.gpu_facts#module:ansible_facts.nvidia_gpu.gpus) has them.
          - With an empty list the node must advertise none, and with O(daemonset) no pod of that DaemonSet may be left
            on it. This is how to wait until the device plugin has let go of the GPUs of a node.
        type: list
        elements: dict
        required: true
  strategy:
    description:
      - The MIG strategy of the device plugin. With V(none), a GPU in MIG mode is one C(nvidia.com/gpu) like any other.
      - With V(mixed), a GPU in MIG mode is C(nvidia.com/mig-*), one for each MIG device. The C(+) of a profile is a
        C(.) in the name, as in C(nvidia.com/mig-1g.10gb.me) of C(1g.10gb+me).
      - With V(single), C(nvidia.com/gpu) is either a GPU or a MIG device, the same on all GPUs of a node.
      - The module fails at once for a node on which the device plugin would not start. With V(single), that is one with
        different MIG devices, or with MIG on some of its GPUs only, or on one without a MIG device. With V(mixed), it
        is one with a compute instance that is not all of its GPU instance, such as C(1c.3g.40gb).
    type: str
    choices:
      - none
      - single
      - mixed
    default: mixed
  timeout:
    description: Seconds to wait.
    type: int
    default: 300
  namespace:
    description: Namespace of the device plugin's DaemonSet. Needs O(daemonset).
    type: str
  daemonset:
    description: Name of the device plugin's DaemonSet. Needs O(namespace).
    type: str
seealso:
  - module: kubegpu.nvidia.gpu_facts
  - module: kubegpu.nvidia.node_state
author:
  - KubeGPU contributors (@kubegpu)
"""

EXAMPLES = r"""
- name: Wait for the GPUs of two nodes
  kubegpu.nvidia.node_resources:
    nodes:
      - name: gpu-a
        gpus: "{{ hostvars['gpu-a'].ansible_facts.nvidia_gpu.gpus }}"
      - name: gpu-b
        gpus: "{{ hostvars['gpu-b'].ansible_facts.nvidia_gpu.gpus }}"
    namespace: nvidia
    daemonset: nvidia-device-plugin
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
nodes:
  description:
    - By node, C(expected) are the resources it should offer, C(allocatable) those of the GPU device plugin in its
      C(status.allocatable), and C(ready) says whether they agree and, with O(daemonset), come from its current pod.
  returned: when the API server was reached
  type: dict
  sample:
    gpu-a:
      expected:
        nvidia.com/gpu: 2
      allocatable:
        nvidia.com/gpu: 2
      ready: true
elapsed:
  description: Seconds that were waited.
  returned: when the API server was reached
  type: float
  sample: 1.3
reasons:
  description: What was found about the nodes that are not ready, by node.
  returned: when nodes are not ready
  type: dict
  sample:
    gpu-b:
      - No pod of the device plugin is on the node.
"""

import typing as t

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.client import Api, api_module
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.node_resources import (
    await_resources,
    expected_of,
    failure,
)
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.resources import unusable_gpus

NODE_OPTIONS: dict[str, t.Any] = {
    "name": {"type": "str", "required": True},
    "gpus": {"type": "list", "elements": "dict", "required": True},
}


def main() -> None:
    module = api_module(
        {
            "nodes": {"type": "list", "elements": "dict", "required": True, "options": NODE_OPTIONS},
            "strategy": {"type": "str", "choices": ["none", "single", "mixed"], "default": "mixed"},
            "timeout": {"type": "int", "default": 300},
            "namespace": {"type": "str"},
            "daemonset": {"type": "str"},
        },
        required_together=[("namespace", "daemonset")],
        supports_check_mode=True,
    )
    options = module.params
    daemonset = (options["namespace"], options["daemonset"]) if options["daemonset"] else None
    for node in options["nodes"]:
        for gpu in unusable_gpus(node["gpus"]):
            module.warn(f"{node['name']}: not counted is {gpu}")
    try:
        api = Api(options)
        timeout = 0 if module.check_mode else options["timeout"]
        expected, hopeless = expected_of(options["nodes"], options["strategy"])
        result, cluster = await_resources(api, expected, daemonset, timeout)
        reasons = [f"{name}: {reason}" for name, reason in hopeless.items()]
        if module.check_mode:
            # The change that is predicted for the host may be what mends it.
            for reason in reasons:
                module.warn(reason)
        elif not all(node["ready"] for node in result["nodes"].values()):
            error = failure(api, expected, result, cluster, daemonset)
            raise KubegpuError("\n".join([*reasons, str(error)]), **error.details)
        elif reasons:
            raise KubegpuError("\n".join(reasons), **result)
    except KubegpuError as error:
        module.fail_json(msg=str(error), **error.details)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
