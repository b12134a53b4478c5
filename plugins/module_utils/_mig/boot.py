# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""The file that boot reads, because MIG instances are lost with every reboot: what was there when all was well."""

from __future__ import annotations

import json
import os
import tempfile
import typing as t
from dataclasses import dataclass

from .._errors import KubegpuError
from .._files import content
from .model import Instance, Layout, as_data, slices_of
from .profiles import split

VERSION = 1


@dataclass(frozen=True)
class Entry:
    uuid: str
    pci_address: str
    mode: str
    layout: Layout


def read(path: str) -> list[Entry]:
    """Raises KubegpuError when the file cannot be used; a file that is not there has no entries."""
    text = content(path)
    if text is None:
        return []
    try:
        data = json.loads(text)
        if data["version"] != VERSION:
            raise KubegpuError(f"{path} has version {data['version']}; this program reads version {VERSION}.")
        if {gpu["mode"] for gpu in data["gpus"]} - {"enabled", "disabled"}:
            raise ValueError("a mode that is none")
        return [
            Entry(gpu["uuid"], gpu["pci_address"], gpu["mode"], tuple(instance(each) for each in gpu["instances"]))
            for gpu in data["gpus"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise KubegpuError(f"{path} is no layout that this program wrote ({exc!r}); apply the layout again.") from exc


def as_text(entries: t.Iterable[Entry]) -> str:
    gpus = [
        {
            "uuid": entry.uuid,
            "pci_address": entry.pci_address,
            "mode": entry.mode,
            "instances": [as_data(instance) for instance in entry.layout],
        }
        for entry in sorted(entries, key=lambda entry: entry.pci_address)
    ]
    return json.dumps({"version": VERSION, "gpus": gpus}, indent=2) + "\n"


def write(path: str, text: str) -> None:
    """At once or not at all, because the next thing may be a power failure."""
    directory = os.path.dirname(path)
    try:
        os.makedirs(directory, mode=0o755, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=directory, prefix=".mig-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(part, 0o644)
            os.replace(part, path)
        except BaseException:
            os.unlink(part)
            raise
    except OSError as exc:
        raise KubegpuError(f"The layout cannot be noted for the next boot in {path}: {exc}") from exc


def instance(data: t.Mapping[str, t.Any]) -> Instance:
    """The opposite of model.as_data(). Raises KeyError and the like for what as_data() did not write."""
    profile = data["profile"]
    compute = [split(name)[0] or slices_of(profile) for name in data["compute_instances"]]
    return Instance(profile, int(data["start"]), tuple(sorted(compute, reverse=True)))
