# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can go wrong with a cluster, told to a person. Private to the collection."""

from __future__ import annotations

import typing as t


class KubeError(Exception):
    """The message says what was wanted, what was found and what to do; the details go beside it into the result."""

    def __init__(self, message: str, **details: t.Any) -> None:
        super().__init__(message)
        self.details = details


class Unreachable(KubeError):
    """No answer from the API server."""


class Gone(KubeError):
    """The version of the cluster's state that was asked for is too old: list again (HTTP 410)."""
