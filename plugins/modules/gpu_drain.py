#!/usr/bin/python
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_drain
short_description: Evict the pods that use GPUs from nodes of a Kubernetes cluster
version_added: 0.1.0
description:
  - Evicts pods from many nodes in one call and waits until they are gone. Only the Eviction API is used, so that every
    PodDisruptionBudget holds. No pod is ever deleted instead.
  - A pod uses GPUs if one of its containers requests, or has a limit of, C(nvidia.com/gpu) or C(nvidia.com/mig-*), also
    with C(.shared) at the end; if it has any resource claim (Dynamic Resource Allocation), whatever device that is of;
    or if its RuntimeClass is C(nvidia), C(nvidia-cdi) or C(nvidia-legacy).
  - Pods of DaemonSets and static pods are left, since they would come back at once, and so are pods that have ended.
    M(kubegpu.nvidia.node_state) sends the GPU clients of this collection away by a label.
  - All pods are asked for in each round, every two seconds, until the time is over. So one that a budget keeps does not
    hold up the others, and goes as soon as its budget allows it. Other refusals, such as those of an admission webhook,
    are treated alike; only missing permissions end the module at once.
  - A pod is gone when its UID is. One of the same name that was made anew is another pod. A pod that was already ending
    is waited for, and one that is kept by a finalizer, too.
  - Only pods that were on the nodes at the beginning are evicted. Cordon the nodes before, or others come; for nodes
    that are not cordoned the module warns.
  - An evicted pod loses the content of its C(emptyDir) volumes.
  - The credentials must be allowed to C(list) nodes, to C(list) pods in all namespaces, and to C(create) the
    subresource C(pods/eviction) in those of the pods.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - kubegpu.nvidia._attributes
  - kubegpu.nvidia._k8s
attributes:
  check_mode:
    support: full
    details:
      - The evictions are sent to the server once, as a dry run, so the same permissions are needed. RV(evicted) are the
        pods that the server would evict now, and RV(remaining) those that it would refuse now, each on its own; this is
        no failure. Nothing is waited for.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  nodes:
    description: Names of the nodes, see M(kubegpu.nvidia.node_state).
    type: list
    elements: str
    required: true
  pods:
    description: Whether to evict the pods that use GPUs, or all.
    type: str
    choices:
      - gpu
      - all
    default: gpu
  timeout:
    description: Seconds until all pods have to be gone, at least 1.
    type: int
    default: 300
  grace_period:
    description: Seconds that a pod has to end by itself. By default that is up to the pod.
    type: int
  force:
    description:
      - Whether to evict pods, too, that no controller would make anew. Their work is lost.
      - With V(false), the module names such pods and fails before anything is evicted.
    type: bool
    default: false
seealso:
  - module: kubegpu.nvidia.node_state
  - module: kubernetes.core.k8s_drain
author:
  - KubeGPU contributors (@kubegpu)
"""

EXAMPLES = r"""
- name: Keep the scheduler from sending pods to two nodes
  kubegpu.nvidia.node_state:
    hosts:
      - host: gpu-a
        unschedulable: true
      - host: gpu-b
        unschedulable: true
  delegate_to: localhost
  register: cordoned

- name: Free the GPUs of both nodes
  kubegpu.nvidia.gpu_drain:
    nodes: "{{ cordoned.nodes.values() | list }}"
    timeout: 600
  delegate_to: localhost

- name: Empty a node that is about to be rebooted, also of pods that nobody would make anew
  kubegpu.nvidia.gpu_drain:
    nodes:
      - gpu-a
    pods: all
    force: true
  delegate_to: localhost
"""

RETURN = r"""
evicted:
  description: The pods that were evicted and are gone, by node.
  returned: when the nodes and their pods could be listed
  type: dict
  sample:
    gpu-a:
      - team-a/train-7d9c5b6f4-x2x8k
    gpu-b: []
remaining:
  description: The pods that should go and are still there, by node.
  returned: when the nodes and their pods could be listed
  type: dict
  contains:
    pod:
      description: Namespace and name.
      type: str
    owner:
      description: Kind and name of the controller that would make it anew, if there is one.
      type: str
    budget:
      description: Name of the PodDisruptionBudget that keeps it, if one does. It is in the namespace of the pod.
      type: str
    reason:
      description: Why it is still there.
      type: str
  sample:
    gpu-a: []
    gpu-b:
      - pod: team-b/serve-0
        owner: StatefulSet serve
        budget: serve
        reason: The disruption budget serve needs 1 healthy pods and has 1 currently.
"""

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.client import Api, api_module
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.drain import Drain


def main() -> None:
    module = api_module(
        {
            "nodes": {"type": "list", "elements": "str", "required": True},
            "pods": {"type": "str", "choices": ["gpu", "all"], "default": "gpu"},
            "timeout": {"type": "int", "default": 300},
            "grace_period": {"type": "int"},
            "force": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    options = module.params
    if options["timeout"] < 1:
        module.fail_json(msg=f"timeout is {options['timeout']}, but no pod is gone in less than a second.")
    if (options["grace_period"] or 0) < 0:
        module.fail_json(msg=f"grace_period is {options['grace_period']}; leave it out to use that of each pod.")
    try:
        api = Api(options, dry_run=module.check_mode)
        drain = Drain(api, options["nodes"], everything=options["pods"] == "all")
        if not options["force"]:
            drain.refuse_unmanaged()
        if module.check_mode:
            result = drain.try_out(options["grace_period"])
        else:
            for name in drain.open_nodes:
                module.warn(f"The node {name} is not cordoned: pods may come (back) to it.")
            result = drain.bring_about(options["timeout"], options["grace_period"])
    except KubegpuError as error:
        module.fail_json(msg=str(error), **error.details)
    if not module._diff:
        del result["diff"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
