#!/usr/bin/python
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_state
short_description: Match hosts to the nodes of a Kubernetes cluster, change these and tell whether they are in service
version_added: 0.1.0
description:
  - Finds the node of each host by what identifies a machine, and brings labels, annotations, taints and the cordon of
    these nodes into the wanted state. What is not named stays as it is.
  - A node with another machine id or another system UUID than the host is never its node. Among the others, machine
    id, system UUID, internal address and at last the exact name are compared, until exactly one node is left. When
    several are left, or two hosts would share a node, the module fails and guesses nothing.
  - All nodes are read in one request, and one is sent for each node that differs. Nothing is written before every
    host has its node.
  - The server takes the taints of a node only as a whole. If somebody else has changed the node since it was read, it
    is read and written again, so that nobody's taint is lost.
  - The credentials must be allowed to C(list) nodes, to C(patch) them if they differ, to C(get) them
    if others change their taints at the same time, and with O(gather_states) to
    C(list) pods in all namespaces.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - kubegpu.nvidia._attributes
  - kubegpu.nvidia._k8s
attributes:
  check_mode:
    support: full
    details: The changes are sent to the server as a dry run, so the same permissions are needed.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  hosts:
    description:
      - The hosts, with what is known of them and what is wanted of their nodes. When nothing is, they are only matched.
    type: list
    elements: dict
    required: true
    suboptions:
      host:
        description: Name of the host in the inventory.
        type: str
        required: true
      node_name:
        description: Name of its node. When given, nothing else is compared.
        type: str
      machine_id:
        description: Content of C(/etc/machine-id).
        type: str
      system_uuid:
        description: The UUID in the firmware's tables, in upper or lower case.
        type: str
      addresses:
        description: IP addresses of the host.
        type: list
        elements: str
      labels:
        description:
          - Labels that the node shall have, by key; a label whose value is null shall be absent.
          - Labels that are not named stay as they are.
          - The booleans V(true) and V(false) are the texts C(true) and C(false).
        type: dict
      annotations:
        description:
          - Annotations that the node shall have, by key; an annotation whose value is null shall be absent.
          - Annotations that are not named stay as they are.
          - A value is text. A structure is refused; make it text with the filter P(ansible.builtin.to_json#filter).
        type: dict
      unschedulable:
        description:
          - With V(true) the node is cordoned, so that the scheduler sends no more pods there, and with V(false) it is
            not. When absent, that stays as it is.
          - Kubernetes keeps its own taint C(node.kubernetes.io/unschedulable) in step; do not name that in
            O(hosts[].taints).
        type: bool
      taints:
        description:
          - Taints that the node shall have or not. They are done in their order; others stay as they are.
        type: list
        elements: dict
        suboptions:
          key:
            description: Key of the taint.
            type: str
            required: true
          value:
            description:
              - Value that the taint shall have. A taint of this key and effect with another value is replaced.
              - It does not matter for one that shall be absent.
            type: str
          effect:
            description: Effect of the taint. One that shall be absent, and has no effect here, is so with any effect.
            type: str
            choices:
              - NoSchedule
              - PreferNoSchedule
              - NoExecute
          state:
            description: Whether the node shall have it. With V(present), O(hosts[].taints[].effect) is needed.
            type: str
            choices:
              - present
              - absent
            default: present
      required:
        description:
          - Whether the host has to have a node. With V(false), one that has none is passed over and named in
            RV(not_in_cluster), whatever O(missing) says, and O(minimum_kubelet) does not concern it. This is for hosts
            without a GPU, of which at most labels are taken back.
          - A host that could be several nodes is an error all the same.
        type: bool
        default: true
  missing:
    description:
      - What to do about a required host that is no node of the cluster. V(skip) leaves it out and names it in
        RV(not_in_cluster).
    type: str
    choices:
      - fail
      - skip
    default: fail
  minimum_kubelet:
    description:
      - The oldest version of the kubelet that the nodes of required hosts may have, such as V("1.31"). With an older
        one, or one of unknown version, the module fails before anything is written.
      - GPUs that are passed to the container runtime as CDI devices need V("1.31").
      - Must be text; without quotes YAML takes it for a number.
    type: raw
  gather_states:
    description:
      - Whether to return RV(states), which takes one more request for the pods that have not ended.
    type: bool
    default: false
seealso:
  - module: kubegpu.nvidia.node_resources
  - module: kubernetes.core.k8s
author:
  - KubeGPU contributors (@kubegpu)
"""

EXAMPLES = r"""
- name: Label the nodes of all hosts in this play
  kubegpu.nvidia.node_state:
    kubeconfig: ~/.kube/config
    hosts:
      - host: gpu-a
        machine_id: 0b4c7e3ad1f84b0c9a3a1f7be1a4c5d2
        addresses:
          - 192.0.2.11
        labels:
          nvidia.com/gpu.present: "true"
      - host: gpu-b
        node_name: ip-192-0-2-12.example.internal
        labels:
          nvidia.com/gpu.present:
        required: false
    minimum_kubelet: "1.31"
  delegate_to: localhost
  run_once: true

- name: Take a node out of service, remembering why, and keep everybody off who does not tolerate it
  kubegpu.nvidia.node_state:
    hosts:
      - host: gpu-a
        unschedulable: true
        annotations:
          example.com/reason: broken fan
        taints:
          - key: example.com/repair
            effect: NoExecute
  delegate_to: localhost

- name: Give it back
  kubegpu.nvidia.node_state:
    hosts:
      - host: gpu-a
        unschedulable: false
        annotations:
          example.com/reason:
        taints:
          - key: example.com/repair
            state: absent
  delegate_to: localhost

- name: Send the GPU clients of the collection away from a node
  kubegpu.nvidia.node_state:
    hosts:
      - host: gpu-a
        labels:
          kubegpu.io/gpu-clients: paused
  delegate_to: localhost

- name: Wait until the device plugin has let go of the GPUs of that node
  kubegpu.nvidia.node_resources:
    nodes:
      - name: gpu-a
        gpus: []
    namespace: kubegpu
    daemonset: nvidia-device-plugin
  delegate_to: localhost

- name: Refuse to disturb a node that is in service
  kubegpu.nvidia.node_state:
    hosts:
      - host: gpu-a
    gather_states: true
  delegate_to: localhost
  register: cluster
  failed_when: cluster is failed or cluster.states['gpu-a'].in_service

- name: See whether every host is a node of this cluster
  kubegpu.nvidia.node_state:
    hosts: "{{ hosts }}"
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
nodes:
  description: Name of the node of each host.
  returned: success
  type: dict
  sample:
    gpu-a: gpu-a
    gpu-b: ip-192-0-2-12.example.internal
not_in_cluster:
  description: Hosts that are no node of the cluster, when O(missing=skip) or the host is not required.
  returned: success
  type: list
  elements: str
  sample: []
changed_hosts:
  description: Hosts whose nodes were changed.
  returned: success
  type: list
  elements: str
  sample:
    - gpu-a
states:
  description:
    - What matters to somebody who wants to disturb the GPUs of a host, by host. Hosts without a node are left out.
    - Labels, annotations and the cordon are told as they are after this call, and in check mode as they would be.
  returned: when O(gather_states=true)
  type: dict
  contains:
    node:
      description: Name of the node.
      type: str
    schedulable:
      description: Whether the scheduler may place pods there, which it may not when the node is cordoned.
      type: bool
    cordoned:
      description: The opposite of RV(states.schedulable).
      type: bool
    in_service:
      description:
        - Whether work that uses the GPUs is on the node or may come at any time. The node is schedulable and offers
          resources of the GPU device plugin, or a pod that asks for such resources is on it and has not ended.
      type: bool
    reasons:
      description: Why it is in service. Empty when it is not.
      type: list
      elements: str
    gpu_pods:
      description: The pods of the node that ask for resources of the GPU device plugin and have not ended.
      type: list
      elements: str
    labels:
      description: Those labels of the node whose keys begin with C(nvidia.com/) or C(kubegpu.io/).
      type: dict
    annotations:
      description: Those annotations of the node whose keys begin with C(kubegpu.io/).
      type: dict
    allocatable:
      description: What the GPU device plugin has made of the node's GPUs.
      type: dict
  sample:
    gpu-a:
      node: gpu-a
      schedulable: true
      cordoned: false
      in_service: true
      reasons:
        - "schedulable with nvidia.com/gpu: 2"
        - runs GPU pods default/job-1, default/job-2
      gpu_pods:
        - default/job-1
        - default/job-2
      labels:
        kubegpu.io/gpu-clients: run
        nvidia.com/gpu.present: "true"
      annotations: {}
      allocatable:
        nvidia.com/gpu: 2
errors:
  description: What is wrong, by host.
  returned: when some hosts have no fitting node of their own or their node could not be changed
  type: dict
  sample:
    gpu-c: no node has its machine id, system UUID, one of its addresses or its name
"""

import typing as t

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.client import Api, api_module
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.node_state import bring_about

TAINT_OPTIONS: dict[str, t.Any] = {
    "key": {"type": "str", "required": True, "no_log": False},
    "value": {"type": "str"},
    "effect": {"type": "str", "choices": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
HOST_OPTIONS: dict[str, t.Any] = {
    "host": {"type": "str", "required": True},
    "node_name": {"type": "str"},
    "machine_id": {"type": "str"},
    "system_uuid": {"type": "str"},
    "addresses": {"type": "list", "elements": "str"},
    "labels": {"type": "dict"},
    "annotations": {"type": "dict"},
    "unschedulable": {"type": "bool"},
    "taints": {
        "type": "list",
        "elements": "dict",
        "options": TAINT_OPTIONS,
        "required_if": [("state", "present", ("effect",))],
    },
    "required": {"type": "bool", "default": True},
}


def main() -> None:
    module = api_module(
        {
            "hosts": {"type": "list", "elements": "dict", "required": True, "options": HOST_OPTIONS},
            "missing": {"type": "str", "choices": ["fail", "skip"], "default": "fail"},
            "minimum_kubelet": {"type": "raw"},
            "gather_states": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    try:
        result = bring_about(
            Api(module.params, dry_run=module.check_mode),
            module.params["hosts"],
            module.params["missing"],
            module.params["minimum_kubelet"],
            module.params["gather_states"],
        )
    except KubegpuError as error:
        module.fail_json(msg=str(error), **error.details)
    if not module._diff:
        del result["diff"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
