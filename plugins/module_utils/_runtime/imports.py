# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Which files a containerd reads, in its order."""

from __future__ import annotations

import fnmatch
import glob
import os
import typing as t

from .._errors import KubegpuError
from .toml_text import Table, decode, parse


def read_text(path: str) -> str | None:
    """The file's text, None where there is no file."""
    try:
        with open(path, "rb") as file:
            return decode(file.read(), path)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise KubegpuError(f"{path} cannot be read: {exc.strerror}.") from None


def load(main: str, planned: t.Mapping[str, str]) -> dict[str, Table]:
    """The main file and everything that it imports; later files win over earlier ones.

    `planned` are texts that count instead of what the disk has. The order is containerd's own: breadth first, each file
    once.
    """
    loaded: dict[str, Table] = {}
    pending = [main]
    while pending:
        path = pending.pop(0)
        if path in loaded:
            continue
        text = planned[path] if path in planned else read_text(path)
        if text is None:
            raise KubegpuError(
                f"{path} is imported by {main} or one of its imports, but does not exist: containerd would not start."
            )
        loaded[path] = parse(text, path)
        for entry in loaded[path].get("imports", []):
            pending.extend(_resolve(entry, path, planned))
    return loaded


def glob_directories(loaded: t.Mapping[str, Table]) -> list[str]:
    """Directories whose content decides what is imported."""
    entries = [entry for table in loaded.values() for entry in table.get("imports", [])]
    return sorted({directory for entry in entries if "*" in entry for directory in glob.glob(os.path.dirname(entry))})


def _resolve(entry: str, parent: str, planned: t.Iterable[str]) -> list[str]:
    # As containerd 1.x does it: only a star makes a pattern; a pattern is not relative to the file, a plain path is.
    if "*" not in entry:
        return [os.path.normpath(os.path.join(os.path.dirname(parent), entry))]
    matches = {path for path in planned if fnmatch.fnmatchcase(path, entry) and path.count("/") == entry.count("/")}
    for directory in glob.glob(os.path.dirname(entry)):
        # Python's glob passes over names that begin with a dot, containerd does not.
        names = fnmatch.filter(os.listdir(directory), os.path.basename(entry))
        matches.update(os.path.join(directory, name) for name in names)
    return sorted(matches)


__all__ = ("glob_directories", "load", "read_text")
