# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""The collection's exceptions: a message for a person, and fields that a module returns next to `msg`."""

from __future__ import annotations

import typing as t


class KubegpuError(Exception):
    """Something that was asked for cannot be done; details say what was wanted and what was found."""

    def __init__(self, message: str, /, **details: t.Any) -> None:
        super().__init__(message)
        self.details = details
