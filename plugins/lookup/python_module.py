# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: python_module
short_description: File of a Python module that the controller can import
version_added: 0.1.0
description:
  - Returns the path of the source file of a top-level Python module of the controller, so that a role can hand a pure
    Python module (one file, no dependencies) to a node that has no package for it and no way to the internet.
options:
  _terms:
    description: Names of the modules, for example V(pynvml).
    type: list
    elements: str
    required: true
  distribution:
    description: Name of the distribution that brings the module; the error message names it.
    type: str
author:
  - KubeGPU contributors (@kubegpu)
"""

EXAMPLES = r"""
- name: Deliver the NVML binding
  ansible.builtin.copy:
    src: "{{ lookup('kubegpu.nvidia.python_module', 'pynvml', distribution='nvidia-ml-py') }}"
    dest: /usr/local/lib/kubegpu/
    mode: "0644"
"""

RETURN = r"""
_raw:
  description: Absolute paths of the files, in the order of the names.
  type: list
  elements: path
"""

import importlib.util
import typing as t

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase


class LookupModule(LookupBase):
    def run(self, terms: list[str], variables: dict[str, t.Any] | None = None, **kwargs: t.Any) -> list[str]:
        self.set_options(var_options=variables, direct=kwargs)
        return [self._file_of(term) for term in terms]

    def _file_of(self, module: str) -> str:
        spec = importlib.util.find_spec(module)
        if spec is None:
            distribution = self.get_option("distribution") or module
            raise AnsibleError(
                f"The controller's Python has no module {module!r}. Install it there with: pip install {distribution}"
            )
        if not spec.origin or not spec.origin.endswith(".py") or spec.submodule_search_locations is not None:
            raise AnsibleError(f"The module {module!r} of the controller's Python is no single source file.")
        return spec.origin
