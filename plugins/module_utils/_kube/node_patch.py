# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What somebody wants of a node, and the one patch that brings it about. Private to the collection."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .identity import Node
from .labels import changes, wanted_annotations, wanted_labels
from .taints import WantedTaint, wanted_taints, with_taints

Patch = dict[str, t.Any]


@dataclass(frozen=True)
class Wanted:
    labels: t.Mapping[str, str | None]
    annotations: t.Mapping[str, str | None]
    unschedulable: bool | None
    """None: as it is."""
    taints: t.Sequence[WantedTaint]


def wanted_of(given: t.Mapping[str, t.Any]) -> Wanted:
    """What the options say, or an error that names the wrong one."""
    return Wanted(
        wanted_labels(given.get("labels") or {}),
        wanted_annotations(given.get("annotations") or {}),
        given.get("unschedulable"),
        wanted_taints(given.get("taints") or ()),
    )


def patch_for(node: Node, wanted: Wanted) -> Patch:
    """Only what differs; nothing if nothing does."""
    metadata: Patch = {}
    for kind in ("labels", "annotations"):
        if differing := changes(node["metadata"].get(kind) or {}, getattr(wanted, kind)):
            metadata[kind] = differing
    spec: Patch = {}
    if wanted.unschedulable is not None and wanted.unschedulable != is_cordoned(node):
        spec["unschedulable"] = wanted.unschedulable
    current = _taints(node)
    if (taints := with_taints(current, wanted.taints)) != current:
        spec["taints"] = taints
        # The server then refuses if anybody has changed the node since it was read, perhaps its taints.
        metadata["resourceVersion"] = node["metadata"]["resourceVersion"]
    return {name: part for name, part in (("metadata", metadata), ("spec", spec)) if part}


def shown(node: Node, patch: Patch) -> dict[str, t.Any]:
    """What the node has of that which the patch touches."""
    metadata, spec = patch.get("metadata", {}), patch.get("spec", {})
    found: dict[str, t.Any] = {}
    for kind in ("labels", "annotations"):
        if kind in metadata:
            current = node["metadata"].get(kind) or {}
            found[kind] = {key: current[key] for key in metadata[kind] if key in current}
    if "unschedulable" in spec:
        found["unschedulable"] = is_cordoned(node)
    if "taints" in spec:
        found["taints"] = _taints(node)
    return found


def is_cordoned(node: Node) -> bool:
    return bool(node.get("spec", {}).get("unschedulable"))


def _taints(node: Node) -> list[t.Any]:
    return list(node.get("spec", {}).get("taints") or [])
