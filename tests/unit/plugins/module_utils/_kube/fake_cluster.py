# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster whose pods end some time after they were evicted, with a clock that only pauses move."""

from __future__ import annotations

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError


def pod(name, node="n1", *, uid=None, owner="ReplicaSet", gpus=1, phase="Running", **metadata):
    owners = [{"kind": owner, "name": f"{name}-owner", "uid": "o", "controller": True}] if owner else []
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {
        "metadata": {
            "namespace": "ns",
            "name": name,
            "uid": uid or f"uid-{name}-{node}",
            "ownerReferences": owners,
            **metadata,
        },
        "spec": {"nodeName": node, "containers": [{"name": "ctr", "resources": {"limits": limits}}]},
        "status": {"phase": phase},
    }


def refusal(status, message="no", *causes):
    causes = [{"reason": reason, "message": text} for reason, text in causes]
    return KubegpuError(
        f"the API answered {status}, {message}", status=status, **({"causes": causes} if causes else {})
    )


def over_budget(name):
    text = f"The disruption budget {name} needs 1 healthy pods and has 1 currently"
    return refusal(429, "Cannot evict pod", ("DisruptionBudget", text))


class FakeCluster:
    """`refuses` says by the name of a pod, whenever it is to be evicted, which error the server answers, if any."""

    def __init__(self, *pods, nodes=("n1", "n2"), cordoned=("n1", "n2"), ends_after=1, dry_run=False):
        self.pods = {each["metadata"]["uid"]: each for each in pods}
        self._nodes, self._cordoned, self._ends_after = nodes, cordoned, ends_after
        self.dry_run = dry_run
        self.refuses = {}
        self.happens = {}  # by round: what somebody else does
        self.evictions = []
        self.looks = []
        self.no_answers = {}  # by the number of the look
        self.now = 0.0

    def clock(self):
        return self.now

    def pause(self, seconds):
        self.now += seconds
        for uid, each in list(self.pods.items()):
            ends = each["metadata"].get("ends")
            if ends is not None and ends <= self.now and not each["metadata"].get("finalizers"):
                del self.pods[uid]
        self.happens.pop(self.now, lambda: None)()

    def nodes(self):
        return [
            {"metadata": {"name": name}, "spec": {"unschedulable": name in self._cordoned}} for name in self._nodes
        ], "1"

    def pods_on(self, node):
        self.looks.append(node)
        if error := self.no_answers.get(len(self.looks)):
            raise error
        return [
            {**each, "metadata": dict(each["metadata"])}
            for each in self.pods.values()
            if each["spec"]["nodeName"] == node
        ]

    def evict(self, pod, grace_period):
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        self.evictions.append((self.now, name, grace_period))
        if error := self.refuses.get(name, lambda: None)():
            raise error
        if uid not in self.pods:
            raise refusal(404)
        if not self.dry_run:
            self.pods[uid]["metadata"].update(
                deletionTimestamp="2026-01-01T10:00:30Z", ends=self.now + self._ends_after
            )

    def names(self):
        return sorted(each["metadata"]["name"] for each in self.pods.values())
