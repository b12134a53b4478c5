# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Evict pods from nodes and wait until they are gone. Private to the collection.

Every round asks for each pod that is left, so that a budget that never gives one free holds up no other.
"""

from __future__ import annotations

import re
import time
import typing as t
from dataclasses import dataclass

from .._errors import KubegpuError
from .daemon_set import is_ending
from .identity import node_name
from .node_patch import is_cordoned
from .pods import Pod, controller_of, has_ended, is_moved_by_eviction, owner_of, pod_name, uses_gpus

if t.TYPE_CHECKING:  # pragma: no cover
    from .client import Api

ROUND_SECONDS = 2
_BUDGET = re.compile(r"The disruption budget (\S+) ")


@dataclass
class Target:
    """A pod that has to go, as it was seen last."""

    pod: Pod
    accepted: bool = False
    """The server has taken the eviction, so the pod ends."""
    gone: bool = False
    reason: str = ""
    """Why the server has refused."""
    budget: str | None = None

    @property
    def node(self) -> str:
        return str(self.pod["spec"]["nodeName"])

    @property
    def name(self) -> str:
        return pod_name(self.pod)

    def told(self) -> dict[str, t.Any]:
        reason = _why_ending(self.pod) if is_ending(self.pod) else self.reason
        return {"pod": self.name, "owner": owner_of(self.pod), "budget": self.budget, "reason": reason}


class Drain:
    def __init__(
        self,
        api: Api,
        nodes: t.Iterable[str],
        *,
        everything: bool = False,
        clock: t.Callable[[], float] = time.monotonic,
        pause: t.Callable[[float], None] = time.sleep,
    ) -> None:
        """Finds the pods that are on these nodes now and use GPUs, or all pods. None that comes later is touched."""
        self._api, self._clock, self._pause = api, clock, pause
        self._nodes = list(dict.fromkeys(nodes))
        found = {node_name(node): node for node in api.nodes()[0]}
        if unknown := [name for name in self._nodes if name not in found]:
            raise KubegpuError(
                f"The cluster has no node {', '.join(unknown)}; it has {', '.join(sorted(found)) or 'none'}."
                " Nothing was evicted."
            )
        self.open_nodes = [name for name in self._nodes if not is_cordoned(found[name])]
        """Those to which the scheduler may send what was evicted."""
        self._targets = {
            pod["metadata"]["uid"]: Target(pod)
            for node in self._nodes
            for pod in api.pods_on(node)
            if not has_ended(pod) and is_moved_by_eviction(pod) and (everything or uses_gpus(pod))
        }

    def refuse_unmanaged(self) -> None:
        """Raises if for one of the pods its eviction would be the end, not a move."""
        lines = []
        for target in self._left():
            if not controller_of(target.pod) and not is_ending(target.pod):
                target.reason = "No controller would make it anew."
                lines.append(f"{target.node}: {target.name}")
        if lines:
            heading = "No controller would make these pods anew, so nothing was evicted:"
            advice = "Have them ended by whoever started them, or set force=true if their work may be lost."
            raise KubegpuError("\n".join([heading, *sorted(lines), advice]), **self._result())

    def try_out(self, grace_period: int | None) -> dict[str, t.Any]:
        """The result, after one round that the Api only tries out."""
        self._evict(float("inf"), grace_period)
        for target in self._left():
            target.gone = target.accepted or is_ending(target.pod)
        return {**self._result(), "changed": any(not is_ending(target.pod) for target in self._targets.values())}

    def bring_about(self, timeout: float, grace_period: int | None) -> dict[str, t.Any]:
        """The result, or an error if pods are left when the time is over."""
        deadline = self._clock() + timeout
        no_answer = None
        while self._left() and self._clock() < deadline:
            self._evict(deadline, grace_period)
            self._pause(max(0, min(ROUND_SECONDS, deadline - self._clock())))
            no_answer = self._look()
        if self._left():
            raise self._failure(timeout, no_answer)
        return self._result()

    def _left(self) -> list[Target]:
        return [target for target in self._targets.values() if not target.gone]

    def _evict(self, deadline: float, grace_period: int | None) -> None:
        """Ask for every pod once; whatever is refused is asked for again in the next round."""
        for target in self._left():
            if self._clock() >= deadline:
                break
            if is_ending(target.pod):
                continue
            try:
                self._api.evict(target.pod, grace_period)
            except KubegpuError as error:
                status, causes = error.details.get("status"), error.details.get("causes", ())
                if status == 404:
                    target.gone = True
                elif status == 401 or status == 403 and not any(_is_of_namespace(cause) for cause in causes):
                    raise KubegpuError(str(error), **error.details, **self._result()) from error
                else:
                    target.reason, target.budget = _refusal(error, causes)
            else:
                target.accepted, target.reason, target.budget = True, "", None

    def _look(self) -> KubegpuError | None:
        """What has become of the pods that were left. A server that does not tell now may tell later."""
        left = self._left()
        try:
            nodes = dict.fromkeys(target.node for target in left)
            seen = {pod["metadata"]["uid"]: pod for node in nodes for pod in self._api.pods_on(node)}
        except KubegpuError as error:
            return error
        for target in left:
            target.pod = seen.get(target.pod["metadata"]["uid"], target.pod)
            # One that ends by itself needs no eviction; one that was evicted is waited for until nothing is left of it.
            target.gone = target.pod["metadata"]["uid"] not in seen or (
                has_ended(target.pod) and not is_ending(target.pod)
            )
        return None

    def _result(self) -> dict[str, t.Any]:
        """As far as things have got."""
        everyone, left = self._targets.values(), self._left()
        return {
            "changed": any(target.accepted for target in everyone),
            "evicted": self._by_node((each.node, each.name) for each in everyone if each.accepted and each.gone),
            "remaining": self._by_node((target.node, target.told()) for target in left),
            "diff": {
                "before": self._by_node((target.node, target.name) for target in everyone),
                "after": self._by_node((target.node, target.name) for target in left),
            },
        }

    def _by_node(self, pairs: t.Iterable[tuple[str, t.Any]]) -> dict[str, list[t.Any]]:
        found: dict[str, list[t.Any]] = {name: [] for name in self._nodes}
        for node, item in pairs:
            found[node].append(item)
        return found

    def _failure(self, timeout: float, no_answer: KubegpuError | None) -> KubegpuError:
        left = self._left()
        lines = [f"{len(left)} of {len(self._targets)} pods are still on their nodes after {timeout:.0f} seconds:"]
        for target in left:
            told = target.told()
            owner = f" of {told['owner']}" if told["owner"] else ""
            lines.append(f"{target.node}: {target.name}{owner}: {told['reason'] or 'There was no time to ask for it.'}")
        if any(target.budget for target in left):
            lines.append(
                "A budget gives pods free when enough others are healthy: its owner may run more of them, or relax it."
                " No pod is deleted past its budget."
            )
        if no_answer:
            lines.append(f"In the end nothing more could be learned. {no_answer}")
        return KubegpuError("\n".join(lines), **self._result())


def _refusal(error: KubegpuError, causes: t.Iterable[t.Mapping[str, t.Any]]) -> tuple[str, str | None]:
    """Why a pod stays, and the name of the budget that keeps it."""
    for cause in causes:
        if cause.get("reason") == "DisruptionBudget":
            message = str(cause.get("message")).rstrip(".") + "."
            budget = _BUDGET.match(message)
            return message, budget[1] if budget else None
    return str(error), None


def _is_of_namespace(cause: t.Mapping[str, t.Any]) -> bool:
    """Nothing may be created where everything is being deleted, also no eviction; the pod goes with its namespace."""
    return cause.get("reason") == "NamespaceTerminating"


def _why_ending(pod: Pod) -> str:
    metadata = pod["metadata"]
    text = f"It is ending, and its grace period is over at {metadata['deletionTimestamp']}"
    if finalizers := metadata.get("finalizers"):
        text += f"; then it is kept by its finalizers {', '.join(finalizers)}"
    return f"{text}."
