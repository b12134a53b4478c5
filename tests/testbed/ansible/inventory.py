# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes as an Ansible inventory."""

from __future__ import annotations

import yaml

from ..config import STATE, Node
from ..kubernetes.control_plane import KUBECONFIG
from ..machines import ssh
from ..package_mirror import URL

PATH = STATE / "inventory" / "hosts.yml"

# Machines come and go under the same addresses: no host key is worth remembering.
SSH_OPTIONS = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"


def write(nodes: list[Node]) -> None:
    variables = {
        "ansible_user": ssh.USER,
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_ssh_private_key_file": str(ssh.KEY),
        "ansible_ssh_common_args": SSH_OPTIONS,
        "ansible_control_path_dir": str(STATE / "ssh" / "control"),
        "kubegpu_package_mirror": URL,
        "kubegpu_k8s_auth": {"kubeconfig": str(KUBECONFIG)},
    }
    hosts = {node.name: {"ansible_host": node.address} for node in nodes}
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(yaml.safe_dump({"gpu_nodes": {"hosts": hosts, "vars": variables}}, sort_keys=False))
