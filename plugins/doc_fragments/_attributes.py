# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# PRIVATE to the collection: no stable interface for others.

from __future__ import annotations


class ModuleDocFragment:
    # What every module says about itself; the module adds `support` (and `details`) of its own.
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return the changed status without changing the target.
  diff_mode:
    description: Returns details on what has changed (or would change in C(check_mode)) when in diff mode.
  idempotent:
    description: A second run with the same arguments, outside of check mode, does not report a change.
"""

    # Modules that run on a node.
    NODE = r"""
options: {}
attributes:
  platform:
    description: Operating systems that the module runs on.
    platforms: linux
    support: full
"""

    # Modules that only read and return facts.
    FACTS = r"""
options: {}
attributes:
  check_mode:
    support: full
    details: This module changes nothing.
  diff_mode:
    support: N/A
    details: This module changes nothing.
  idempotent:
    support: full
    details: This module changes nothing.
  facts:
    description: Returns C(ansible_facts) that are added to the facts of the host.
    support: full
"""
