# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A DaemonSet and its pods: which of them run what it asks for now. Private to the collection."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

Object = t.Mapping[str, t.Any]

REVISION = "controller-revision-hash"
"""The label by which a pod names the revision of the DaemonSet that it was made from."""


@dataclass
class Rollout:
    """A DaemonSet with its pods, as they were seen last."""

    daemonset: Object | None = None
    """None: there is no such DaemonSet."""
    revision: str | None = None
    """The revision that its pods should have; None: its controller has not seen the newest specification."""
    pods: dict[str, Object] = field(default_factory=dict)
    version: str = ""
    """Of the list of pods, to watch them from."""

    def note(self, pod: Object) -> None:
        """A pod was added or has changed. The selector may find pods of others, too."""
        if self.daemonset and is_owned_by(pod, self.daemonset):
            self.pods[pod["metadata"]["name"]] = pod

    def is_current(self, pod: Object) -> bool:
        return bool(self.revision) and pod["metadata"].get("labels", {}).get(REVISION) == self.revision

    def serving(self) -> dict[str, Object]:
        """The pod of each node on which a pod of the current revision is ready."""
        return {
            node: pod
            for pod in self.pods.values()
            if (node := node_of(pod)) and self.is_current(pod) and is_ready(pod) and not is_ending(pod)
        }


def is_observed(daemonset: Object) -> bool:
    """Its controller has seen the newest specification, so the newest revision is the one of that specification."""
    return bool(daemonset["status"].get("observedGeneration") == daemonset["metadata"]["generation"])


def selector_of(daemonset: Object) -> str:
    """The DaemonSet's selector in the notation of a request."""
    selector = daemonset["spec"]["selector"]
    terms = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or []:
        key, values = expression["key"], ",".join(expression.get("values") or [])
        terms.append(
            {
                "In": f"{key} in ({values})",
                "NotIn": f"{key} notin ({values})",
                "Exists": key,
                "DoesNotExist": f"!{key}",
            }[expression["operator"]]
        )
    return ",".join(terms)


def current_revision(daemonset: Object, revisions: t.Iterable[Object]) -> str | None:
    """A rollback gives the old revision a new number, so the highest number is always the current one."""
    own = [revision for revision in revisions if is_owned_by(revision, daemonset)]
    newest = max(own, key=lambda revision: int(revision["revision"]), default=None)
    return newest["metadata"]["labels"][REVISION] if newest and is_observed(daemonset) else None


def is_owned_by(item: Object, owner: Object) -> bool:
    owners = item["metadata"].get("ownerReferences") or []
    return any(reference["uid"] == owner["metadata"]["uid"] for reference in owners)


def node_of(pod: Object) -> str | None:
    """A pod of a DaemonSet belongs to its node before it is scheduled there."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or []
    fields = [field for term in terms for field in term.get("matchFields") or []]
    return next((field["values"][0] for field in fields if field["key"] == "metadata.name"), None)


def is_ending(pod: Object) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def is_ready(item: Object) -> bool:
    """A node or a pod."""
    ready = condition(item, "Ready")
    return bool(ready and ready["status"] == "True")


def condition(item: Object, kind: str) -> Object | None:
    return next((each for each in item["status"].get("conditions") or [] if each["type"] == kind), None)
