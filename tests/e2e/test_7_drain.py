# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taking a node out of service and freeing its GPUs, against a real API with real budgets and controllers."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest
from pods import phase, pod, pod_manifest
from running import ROOT, Run, get, kubectl, until

NODE, OTHER = "gpu-a", "gpu-b"
NAMESPACE = "drain"
PAUSE = "registry.k8s.io/pause:3.10"
HOLD = ("--hold", "600")
THEIRS = "example.com/theirs"
OURS = "kubegpu.io/test"


@pytest.fixture(scope="module", autouse=True)
def namespace(converged: Run) -> Iterator[None]:
    kubectl("create", "namespace", NAMESPACE)
    yield
    kubectl("delete", "namespace", NAMESPACE)


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    kubectl("-n", NAMESPACE, "delete", "deployment,statefulset,pdb", "--all", "--cascade=foreground")
    kubectl("uncordon", NODE)
    for taint in (THEIRS, OURS):  # if one is missing, kubectl removes none
        kubectl("taint", "node", NODE, f"{taint}-", check=False)
    kubectl("annotate", "node", NODE, f"{OURS}-")
    kubectl("label", "node", NODE, f"{OURS}-")


def module(name: str, *flags: str, **options: Any) -> dict[str, Any]:
    """What a module of ours returned to a user of `ansible`, which leaves it to its own exit status that it failed."""
    done = subprocess.run(
        ["ansible", "localhost", "-m", f"kubegpu.nvidia.{name}", "-a", json.dumps(options), *flags],
        env=dict(os.environ, ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"), ANSIBLE_CALLBACK_RESULT_FORMAT="json"),
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    print(done.stdout)
    return {**json.loads(done.stdout.partition(" => ")[2]), "failed": done.returncode != 0}


def cordon() -> None:
    module("node_state", hosts=[{"host": NODE, "unschedulable": True}])


def controller(kind: str, name: str, *, replicas: int = 1, pinned: bool = False, **form: Any) -> None:
    """A controller of pods that run on the node, and may go elsewhere unless they are pinned."""
    template = pod_manifest(name, **form)
    spec = template["spec"]
    spec.update(restartPolicy="Always", terminationGracePeriodSeconds=5)
    place = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}
    term = {"matchExpressions": [place]}
    spec["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        if pinned
        else {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}
    }
    if not form.get("gpus"):
        spec["containers"] = [{"name": "pause", "image": PAUSE, "imagePullPolicy": "IfNotPresent"}]
    labels = {"app": name}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    if kind == "StatefulSet":
        manifest["spec"].update(serviceName=name, podManagementPolicy="Parallel")
    kubectl("create", "-f", "-", stdin=json.dumps(manifest))


def one_has_to_run(name: str) -> None:
    kubectl("-n", NAMESPACE, "create", "pdb", name, f"--selector=app={name}", "--min-available=1")


def pods_of(name: str) -> list[dict[str, Any]]:
    return get("-n", NAMESPACE, "pods", "-l", f"app={name}")["items"]


def ready(name: str, count: int) -> list[str]:
    """UIDs of the pods, as soon as that many are ready on the node."""

    def found() -> list[str]:
        conditions = [
            (each["metadata"]["uid"], each["spec"].get("nodeName"), condition["status"])
            for each in pods_of(name)
            for condition in each["status"].get("conditions", [])
            if condition["type"] == "Ready"
        ]
        return [uid for uid, node, status in conditions if node == NODE and status == "True"]

    return until(lambda: len(found()) == count and found(), f"{count} pods of {name} are ready on {NODE}", 30)


def allowed(budget: str) -> int:
    return get("-n", NAMESPACE, "pdb", budget)["status"].get("disruptionsAllowed", -1)


def uids(name: str) -> set[str]:
    return {each["metadata"]["uid"] for each in pods_of(name)}


def first_seen(name: str) -> datetime:
    """When the first of the pods that are there now was made."""
    times = [each["metadata"]["creationTimestamp"] for each in pods_of(name)]
    return min(datetime.fromisoformat(time.replace("Z", "+00:00")) for time in times)


def names(entries: list[str]) -> list[str]:
    """Which controllers the pods are of."""
    return sorted(entry.removeprefix(f"{NAMESPACE}/").split("-")[0] for entry in entries)


def test_a_budget_that_never_gives_a_pod_free_holds_up_no_other() -> None:
    controller("Deployment", "pair", replicas=2, gpus=1, arguments=HOLD)
    controller("Deployment", "quick", pinned=True, runtime_class="nvidia")
    controller("Deployment", "stuck", pinned=True, runtime_class="nvidia")
    controller("Deployment", "bystander", pinned=True)
    one_has_to_run("pair")
    one_has_to_run("stuck")
    pair, quick, stuck, bystander = ready("pair", 2), ready("quick", 1), ready("stuck", 1), ready("bystander", 1)
    until(lambda: (allowed("pair"), allowed("stuck")) == (1, 0), "the budgets know their pods", 30)
    cordon()

    planned = module("gpu_drain", "--check", nodes=[NODE])
    assert planned["changed"] is True
    assert names(planned["evicted"][NODE]) == ["pair", "pair", "quick"]
    assert [names([each["pod"]]) for each in planned["remaining"][NODE]] == [["stuck"]]
    assert uids("pair") == set(pair) and uids("quick") == set(quick)

    began = datetime.now(timezone.utc)
    result = module("gpu_drain", nodes=[NODE], timeout=20)
    assert result["failed"] is True
    assert result["changed"] is True
    assert names(result["evicted"][NODE]) == ["pair", "pair", "quick"]
    (left,) = result["remaining"][NODE]
    assert (left["owner"], left["budget"]) == ("Deployment stuck", "stuck")
    assert "The disruption budget stuck needs 1 healthy pods and has 1 currently" in left["reason"]
    for words in (left["pod"], "Deployment stuck", NODE, "disruption budget stuck"):
        assert words in result["msg"]

    # The budget of the two gave the second free when the first had its successor on the other node.
    assert not uids("pair") & set(pair)
    assert [each["spec"].get("nodeName") for each in pods_of("pair") if each["spec"].get("nodeName")] == [OTHER]
    assert not uids("quick") & set(quick)
    assert (first_seen("quick") - began).total_seconds() < 6
    assert uids("stuck") == set(stuck)
    assert uids("bystander") == set(bystander)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_so_many_pods(count: int) -> None:
    """The pods of a StatefulSet have the same names on the other node, where one finds a GPU."""
    controller("StatefulSet", "set", replicas=count, gpus=1, arguments=HOLD)
    before = ready("set", count) if count else []
    cordon()
    result = module("gpu_drain", nodes=[NODE, OTHER], timeout=60)
    assert result["failed"] is False
    assert result["changed"] is bool(count)
    assert result["evicted"] == {NODE: [f"{NAMESPACE}/set-{number}" for number in range(count)], OTHER: []}
    assert result["remaining"] == {NODE: [], OTHER: []}
    assert not uids("set") & set(before)
    assert all(each["spec"].get("nodeName") != NODE for each in pods_of("set"))
    assert module("gpu_drain", nodes=[NODE])["changed"] is False


def test_a_pod_that_nobody_would_make_anew_is_refused_by_name() -> None:
    controller("Deployment", "managed", gpus=1, arguments=HOLD)
    before = ready("managed", 1)
    with pod("alone", gpus=1, node=NODE, arguments=HOLD) as name:
        until(lambda: phase(name) == "Running", "pod alone runs", 30)
        cordon()
        for flags in ([], ["--check"]):
            result = module("gpu_drain", *flags, nodes=[NODE])
            assert result["failed"] is True
            assert f"{NODE}: default/alone" in result["msg"]
            assert f"{NAMESPACE}/managed" not in result["msg"]
        assert set(before) == uids("managed")
        assert phase(name) == "Running"

        result = module("gpu_drain", nodes=[NODE], force=True, grace_period=1)
        assert names(result["evicted"][NODE]) == ["default/alone", "managed"]
        assert kubectl("get", "pod", name, "--ignore-not-found") == ""


def test_a_pod_that_a_finalizer_keeps_is_waited_for() -> None:
    with pod("kept", gpus=1, node=NODE, arguments=HOLD) as name:
        kubectl("patch", "pod", name, "-p", '{"metadata": {"finalizers": ["example.com/keep"]}}')
        until(lambda: phase(name) == "Running", "pod kept runs", 30)
        cordon()
        try:
            result = module("gpu_drain", nodes=[NODE], force=True, grace_period=1, timeout=6)
            assert result["failed"] is True
            assert (result["changed"], result["evicted"]) == (True, {NODE: []})
            assert "example.com/keep" in result["remaining"][NODE][0]["reason"]
        finally:
            kubectl("patch", "pod", name, "-p", '{"metadata": {"finalizers": null}}', check=False)


def test_the_node_is_changed_as_named_and_no_further() -> None:
    def taints() -> list[tuple[str, str, str]]:
        found = get("node", NODE)["spec"].get("taints", [])
        return [(each["key"], each.get("value", ""), each["effect"]) for each in found]

    def state(*flags: str, **options: Any) -> dict[str, Any]:
        return module("node_state", *flags, hosts=[{"host": NODE, **options}], gather_states=True)

    kubectl("taint", "node", NODE, f"{THEIRS}=x:PreferNoSchedule")
    window = {
        "labels": {OURS: "x"},
        "annotations": {OURS: '{"since": "today"}'},
        "unschedulable": True,
        "taints": [{"key": OURS, "value": "y", "effect": "NoSchedule"}],
    }
    before = get("node", NODE)
    planned = state("--check", **window)
    assert get("node", NODE)["spec"] == before["spec"]
    done = state(**window)
    for result in (planned, done):
        assert result["changed"] is True
        assert result["states"][NODE]["cordoned"] is True
        assert result["states"][NODE]["annotations"] == {OURS: '{"since": "today"}'}
    node = get("node", NODE)
    assert node["spec"]["unschedulable"] is True
    assert node["metadata"]["annotations"] == {**before["metadata"]["annotations"], OURS: '{"since": "today"}'}
    assert {(THEIRS, "x", "PreferNoSchedule"), (OURS, "y", "NoSchedule")} <= set(taints())
    until(lambda: "node.kubernetes.io/unschedulable" in {key for key, _, _ in taints()}, "the cluster's own taint")
    assert state(**window)["changed"] is False

    back = {
        "labels": {OURS: None},
        "annotations": {OURS: None},
        "unschedulable": False,
        "taints": [{"key": OURS, "state": "absent"}],
    }
    result = state(**back)
    assert result["states"][NODE]["cordoned"] is False
    until(lambda: taints() == [(THEIRS, "x", "PreferNoSchedule")], "only the taint of somebody else is left")
    assert get("node", NODE)["metadata"]["labels"] == before["metadata"]["labels"]
    assert get("node", NODE)["metadata"].get("annotations") == before["metadata"].get("annotations")
    assert state(**back)["changed"] is False
