# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Reading small files and links that may be missing, unreadable or garbage: no answer instead of an exception."""

from __future__ import annotations

import os


def content(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def first_line(path: str) -> str | None:
    """The first line without the white space around it; None when the file cannot be read or the line is empty."""
    lines = (content(path) or "").splitlines()
    return lines[0].strip() or None if lines else None


def link(path: str) -> str:
    """Where a symbolic link points; "" when that cannot be read."""
    try:
        return os.readlink(path)
    except OSError:
        return ""
