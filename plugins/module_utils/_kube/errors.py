# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors of the API that a caller may want to treat by themselves. Private to the collection."""

from __future__ import annotations

from .._errors import KubegpuError


class Unreachable(KubegpuError):
    """No answer from the API server, or one that it or a proxy gives while it is restarted or overloaded."""


class Gone(KubegpuError):
    """The version of the cluster's state that was asked for is too old: list again (HTTP 410)."""
