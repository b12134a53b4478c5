# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment in which ansible-playbook, kubectl, podman and pytest work with the testbed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ..command import built
from ..config import CHECKOUT, SOURCE, STATE
from ..kubernetes.control_plane import KUBECONFIG
from ..machines.podman import SETTINGS
from . import inventory

COLLECTIONS = STATE / "collections"


def link_collection() -> None:
    """Puts the checkout where Ansible finds it by its name; the collections it needs are in the Python environment."""
    link = COLLECTIONS / "ansible_collections" / "kubegpu" / "nvidia"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(CHECKOUT)


def variables() -> dict[str, str]:
    programs = [str(Path(sys.executable).parent), str(built(SOURCE / "kubernetes" / "build.sh"))]
    others = [entry for entry in os.environ["PATH"].split(os.pathsep) if entry not in programs]
    return {
        "KUBEGPU_TESTBED": str(STATE),
        "KUBECONFIG": str(KUBECONFIG),
        "ANSIBLE_INVENTORY": str(inventory.PATH),
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "CONTAINERS_CONF": str(SETTINGS),
        "PATH": os.pathsep.join([*programs, *others]),
    }
