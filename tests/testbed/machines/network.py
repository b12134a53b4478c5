# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes' network: a bridge on which this machine has the first address. It is there while a node runs."""

from __future__ import annotations

from ..command import say
from ..config import HOST, NETWORK
from .podman import LABEL, exists, podman, podman_command

NAME = "kubenet"


def ensure() -> None:
    if not exists("network", NAME):
        podman("network", "create", "--label", LABEL, "--subnet", NETWORK, "--gateway", HOST, "--disable-dns", NAME)


def remove() -> None:
    if exists("network", NAME) and podman_command("network", "rm", NAME).call().returncode != 0:
        say(f"podman's network {NAME} stays: containers that are not the testbed's use it")
