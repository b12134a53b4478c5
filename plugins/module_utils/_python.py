# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""The Python module that this collection brings to a node, beside the distribution's own ones."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder

# The role `_nvml` puts nvidia-ml-py's module pynvml here.
DIRECTORY = "/usr/local/lib/kubegpu"


def use() -> None:
    """Lets ours win over a module of the same name that the host has: PyPI's abandoned `pynvml` is such a one."""
    if DIRECTORY not in sys.path:
        sys.path.insert(0, DIRECTORY)


def importable(names: list[str]) -> list[str]:
    """Those of the top-level modules that an import would find, asked without importing them."""
    return [name for name in names if PathFinder.find_spec(name, [DIRECTORY, *sys.path]) is not None]
