# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# PRIVATE to the collection: no stable interface for others.

from __future__ import annotations


class ModuleDocFragment:
    # Modules that talk to the Kubernetes API; their options come from kubernetes.core.k8s_auth_options.
    DOCUMENTATION = r"""
options: {}
attributes:
  action_group:
    description:
      - With C(module_defaults) for C(group/kubegpu.nvidia.k8s), this module and those of C(kubernetes.core) get the
        same connection options.
    support: full
    membership:
      - kubegpu.nvidia.k8s
requirements:
  - kubernetes >= 24.2.0 (Python package on the host that runs the module; C(proxy-url) in a kubeconfig takes 37)
notes:
  - Serves many nodes in one call. In a play over the nodes, run it once, delegated to a host that reaches the API.
  - A server that cannot be reached is given up after about 10 seconds. Proxies named in the environment are not used.
"""
