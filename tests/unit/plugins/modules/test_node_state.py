# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.modules import node_state

THEIRS = {"key": "theirs", "effect": "NoExecute"}
OURS = {"key": "ours", "value": "x", "effect": "NoSchedule"}


class FakeApi:
    """Two nodes, and what was written to them."""

    labels = {"n1": {"x": "0", "foreign": "y"}, "n2": {"x": "1"}}
    kubelets = {"n1": "v1.30.9", "n2": "v1.31.0"}

    def __init__(self, refuse=(), conflicts=0):
        self.refuse = refuse
        self.conflicts = conflicts
        self.written = {}
        self.patches = 0
        self.found = {
            name: {
                "metadata": {"name": name, "resourceVersion": "1", "labels": labels},
                "spec": {"taints": [THEIRS]},
                "status": {"nodeInfo": {"kubeletVersion": self.kubelets[name]}},
            }
            for name, labels in self.labels.items()
        }
        self.lists = 0
        self.pod_lists = []
        self.dry_run = None

    def __call__(self, options, *, dry_run):
        self.dry_run = dry_run
        return self

    def nodes(self):
        self.lists += 1
        return list(self.found.values()), "1"

    def node(self, name):
        return self.found[name]

    def patch_node(self, name, patch):
        if name in self.refuse:
            raise KubegpuError("not allowed")
        node = self.found[name]
        self.patches += 1
        if self.patches <= self.conflicts:
            node["metadata"]["resourceVersion"] = str(self.patches + 1)
            node["spec"] = {"taints": [*node["spec"]["taints"], {"key": f"new-{self.patches}", "effect": "NoExecute"}]}
        if patch.get("metadata", {}).get("resourceVersion") not in (None, node["metadata"]["resourceVersion"]):
            raise KubegpuError("the object has been modified", status=409)
        self.written[name] = patch
        metadata = dict(node["metadata"])
        for kind in ("labels", "annotations"):
            merged = {**metadata.get(kind, {}), **patch.get("metadata", {}).get(kind, {})}
            metadata[kind] = {key: value for key, value in merged.items() if value is not None}
        return {**node, "metadata": metadata, "spec": {**node["spec"], **patch.get("spec", {})}}

    def pods_that_run(self, node=None):
        self.pod_lists.append(node)
        if "pods" in self.refuse:
            raise KubegpuError("Could not list the pods of all namespaces")
        container = {"name": "ctr", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        pods = {"n1": "job-1", "n2": "job-2", "n3": "job-3"}
        return [
            {
                "metadata": {"namespace": "default", "name": name},
                "spec": {"nodeName": on, "containers": [container]},
                "status": {"phase": "Running"},
            }
            for on, name in pods.items()
            if node in (None, on)
        ]


def run(monkeypatch, capfd, api, *, check=False, diff=True, **options):
    monkeypatch.setattr(node_state, "Api", api)
    arguments = {**options, "_ansible_check_mode": check, "_ansible_diff": diff}
    with patch_module_args(arguments), pytest.raises(SystemExit):
        node_state.main()
    return json.loads(capfd.readouterr().out)


WANTED = [{"host": "n1", "labels": {"x": True, "foreign": None, "z": None}}, {"host": "n2", "labels": {"x": 1}}]


@pytest.mark.parametrize("check", [False, True])
def test_only_what_differs_is_written(monkeypatch, capfd, check):
    api = FakeApi()
    result = run(monkeypatch, capfd, api, check=check, hosts=WANTED)
    assert api.written == {"n1": {"metadata": {"labels": {"foreign": None, "x": "true"}}}}
    assert api.dry_run is check
    assert result["changed"] is True
    assert result["changed_hosts"] == ["n1"]
    assert result["nodes"] == {"n1": "n1", "n2": "n2"}
    assert result["diff"] == {
        "before": {"n1": {"labels": {"foreign": "y", "x": "0"}}},
        "after": {"n1": {"labels": {"x": "true"}}},
    }


def test_no_difference(monkeypatch, capfd):
    api = FakeApi()
    result = run(monkeypatch, capfd, api, hosts=[{"host": "n2", "labels": {"x": "1"}}])
    assert not api.written
    assert result["changed"] is False
    assert result["diff"] == {"before": {}, "after": {}}


def test_a_diff_only_when_asked(monkeypatch, capfd):
    assert "diff" not in run(monkeypatch, capfd, FakeApi(), diff=False, hosts=WANTED)


EVERYTHING = {
    "host": "n1",
    "labels": {"x": "1"},
    "annotations": {"kubegpu.io/window": "{}", "gone": None},
    "unschedulable": True,
    "taints": [OURS, {"key": "other", "state": "absent"}],
}


@pytest.mark.parametrize("check", [False, True])
def test_everything_in_one_request(monkeypatch, capfd, check):
    api = FakeApi()
    result = run(monkeypatch, capfd, api, check=check, hosts=[EVERYTHING], gather_states=True)
    assert api.patches == 1
    assert api.written["n1"] == {
        "metadata": {"labels": {"x": "1"}, "annotations": {"kubegpu.io/window": "{}"}, "resourceVersion": "1"},
        "spec": {"unschedulable": True, "taints": [THEIRS, OURS]},
    }
    assert result["changed"] is True
    assert result["diff"]["before"] == {
        "n1": {"labels": {"x": "0"}, "annotations": {}, "unschedulable": False, "taints": [THEIRS]}
    }
    assert result["diff"]["after"] == {
        "n1": {
            "labels": {"x": "1"},
            "annotations": {"kubegpu.io/window": "{}"},
            "unschedulable": True,
            "taints": [THEIRS, OURS],
        }
    }
    state = result["states"]["n1"]
    assert (state["cordoned"], state["annotations"]) == (True, {"kubegpu.io/window": "{}"})


def test_what_is_not_named_stays(monkeypatch, capfd):
    monkeypatch.setitem(FakeApi.labels, "n1", {})
    api = FakeApi()
    api.found["n1"]["spec"]["unschedulable"] = True
    api.found["n1"]["metadata"]["annotations"] = {"kubegpu.io/window": "{}"}
    result = run(monkeypatch, capfd, api, hosts=[{"host": "n1", "labels": {"x": "1"}}], gather_states=True)
    assert api.written == {"n1": {"metadata": {"labels": {"x": "1"}}}}
    state = result["states"]["n1"]
    assert (state["cordoned"], state["annotations"]) == (True, {"kubegpu.io/window": "{}"})
    # Once more, with everything as it is.
    monkeypatch.setitem(FakeApi.labels, "n1", {"x": "1"})
    same = {"host": "n1", "annotations": {"kubegpu.io/window": "{}"}, "unschedulable": True, "taints": [THEIRS]}
    again = FakeApi()
    again.found["n1"] = {**api.found["n1"]}
    assert run(monkeypatch, capfd, again, hosts=[same])["changed"] is False
    assert not again.patches


def test_a_taint_that_somebody_sets_at_the_same_time_is_kept(monkeypatch, capfd):
    api = FakeApi(conflicts=2)
    result = run(monkeypatch, capfd, api, hosts=[{"host": "n1", "taints": [OURS]}])
    theirs = [THEIRS, {"key": "new-1", "effect": "NoExecute"}, {"key": "new-2", "effect": "NoExecute"}]
    assert api.written["n1"]["spec"]["taints"] == [*theirs, OURS]
    assert result["diff"] == {"before": {"n1": {"taints": theirs}}, "after": {"n1": {"taints": [*theirs, OURS]}}}


def test_conflicts_without_end(monkeypatch, capfd):
    api = FakeApi(conflicts=100)
    result = run(monkeypatch, capfd, api, hosts=[{"host": "n1", "taints": [OURS]}])
    assert result["errors"] == {"n1": "the object has been modified"}
    assert api.patches == 5


@pytest.mark.parametrize(
    "host, text",
    [
        ({"annotations": {"two words": "x"}}, "no annotation key"),
        ({"taints": [{**OURS, "key": "two words"}]}, "no taint key"),
        ({"taints": [{"key": "ours"}]}, "effect"),
    ],
)
def test_a_wrong_wish_is_noticed_before_anything_is_written(monkeypatch, capfd, host, text):
    api = FakeApi()
    result = run(monkeypatch, capfd, api, hosts=[WANTED[0], {"host": "n2", **host}])
    assert text in result["msg"]
    assert not api.written


def test_all_errors_at_once_and_nothing_written(monkeypatch, capfd):
    api = FakeApi()
    result = run(monkeypatch, capfd, api, hosts=[*WANTED, {"host": "n8"}, {"host": "n9"}])
    assert result["failed"] is True
    assert not api.written
    assert set(result["errors"]) == {"n8", "n9"}
    assert "n8: no node has" in result["msg"]
    assert "n9: no node has" in result["msg"]


def test_missing_hosts_are_skipped(monkeypatch, capfd):
    result = run(monkeypatch, capfd, FakeApi(), missing="skip", hosts=[*WANTED, {"host": "n9"}])
    assert result["not_in_cluster"] == ["n9"]
    assert result["nodes"] == {"n1": "n1", "n2": "n2"}


def test_an_ambiguous_host_is_never_skipped(monkeypatch, capfd):
    hosts = [{"host": "one", "node_name": "n1"}, {"host": "two", "node_name": "n1"}]
    result = run(monkeypatch, capfd, FakeApi(), missing="skip", hosts=hosts)
    assert "one and two match the same node n1" in result["msg"]


def test_a_wrong_label_is_noticed_before_anything_is_written(monkeypatch, capfd):
    api = FakeApi()
    result = run(monkeypatch, capfd, api, hosts=[WANTED[0], {"host": "n2", "labels": {"x": "two words"}}])
    assert "two words" in result["msg"]
    assert not api.written


def test_one_refusal_does_not_stop_the_others(monkeypatch, capfd):
    hosts = [{"host": name, "labels": {"new": "1"}} for name in ("n1", "n2")]
    result = run(monkeypatch, capfd, FakeApi(refuse=["n1"]), hosts=hosts)
    assert result["failed"] is True
    assert result["errors"] == {"n1": "not allowed"}
    assert result["changed_hosts"] == ["n2"]


def test_a_host_that_is_not_required(monkeypatch, capfd):
    hosts = [*WANTED, {"host": "n8", "required": False, "labels": {"x": None}}]
    result = run(monkeypatch, capfd, FakeApi(), hosts=hosts)
    assert result["not_in_cluster"] == ["n8"]
    assert result["nodes"] == {"n1": "n1", "n2": "n2"}
    result = run(monkeypatch, capfd, FakeApi(), hosts=[*hosts, {"host": "n9"}])
    assert set(result["errors"]) == {"n9"}


def test_labels_are_taken_from_a_host_that_is_not_required(monkeypatch, capfd):
    api = FakeApi()
    run(monkeypatch, capfd, api, hosts=[{"host": "n1", "required": False, "labels": {"x": None}}])
    assert api.written == {"n1": {"metadata": {"labels": {"x": None}}}}


def test_an_ambiguous_host_is_an_error_also_when_not_required(monkeypatch, capfd):
    hosts = [{"host": name, "node_name": "n1", "required": False} for name in ("one", "two")]
    assert set(run(monkeypatch, capfd, FakeApi(), hosts=hosts)["errors"]) == {"one", "two"}


def test_a_kubelet_that_is_too_old(monkeypatch, capfd):
    api = FakeApi()
    result = run(monkeypatch, capfd, api, hosts=[*WANTED, {"host": "n9"}], minimum_kubelet="1.31")
    assert set(result["errors"]) == {"n1", "n9"}
    for text in ("v1.30.9", "1.31", "CDI"):
        assert text in result["errors"]["n1"]
    assert not api.written
    assert api.lists == 1


def test_the_kubelet_of_a_host_that_is_not_required(monkeypatch, capfd):
    hosts = [{"host": "n1", "required": False}, {"host": "n2"}]
    assert "failed" not in run(monkeypatch, capfd, FakeApi(), hosts=hosts, minimum_kubelet="1.31")


def test_a_minimum_that_lost_its_quotes(monkeypatch, capfd):
    assert "quotes" in run(monkeypatch, capfd, FakeApi(), hosts=WANTED, minimum_kubelet=1.3)["msg"]


def test_states_are_gathered_only_when_asked(monkeypatch, capfd):
    api = FakeApi()
    assert "states" not in run(monkeypatch, capfd, api, hosts=WANTED)
    assert not api.pod_lists


@pytest.mark.parametrize("hosts, asked", [(WANTED, [None]), (WANTED[:1], ["n1"])], ids=["of two nodes", "of one"])
def test_states_take_one_request_more(monkeypatch, capfd, hosts, asked):
    api = FakeApi()
    result = run(monkeypatch, capfd, api, hosts=hosts, gather_states=True)
    assert (api.lists, api.pod_lists) == (1, asked)
    assert {host: state["gpu_pods"] for host, state in result["states"].items()} == {
        host["host"]: [f"default/job-{host['host'][1]}"] for host in hosts
    }
    assert all(state["in_service"] for state in result["states"].values())


@pytest.mark.parametrize("check", [False, True])
def test_states_tell_the_labels_that_were_set(monkeypatch, capfd, check):
    hosts = [
        {"host": "n1", "labels": {"kubegpu.io/gpu-clients": "paused"}},
        {"host": "n2", "labels": {"kubegpu.io/gpu-clients": None}},
    ]
    before = {
        "n1": {"kubegpu.io/gpu-clients": "run", "nvidia.com/gpu.present": "true"},
        "n2": {"kubegpu.io/gpu-clients": "run"},
    }
    monkeypatch.setattr(FakeApi, "labels", before)
    states = run(monkeypatch, capfd, FakeApi(), check=check, hosts=hosts, gather_states=True)["states"]
    assert states["n1"]["labels"] == {"kubegpu.io/gpu-clients": "paused", "nvidia.com/gpu.present": "true"}
    assert states["n2"]["labels"] == {}


def test_states_tell_the_labels_that_could_not_be_set(monkeypatch, capfd):
    hosts = [{"host": "n1", "labels": {"kubegpu.io/gpu-clients": "paused"}}]
    result = run(monkeypatch, capfd, FakeApi(refuse=["n1"]), hosts=hosts, gather_states=True)
    assert result["failed"] is True
    assert result["states"]["n1"]["labels"] == {}


def test_a_host_without_a_node_has_no_state(monkeypatch, capfd):
    hosts = [{"host": "n1"}, {"host": "n9"}]
    result = run(monkeypatch, capfd, FakeApi(), hosts=hosts, missing="skip", gather_states=True)
    assert set(result["states"]) == {"n1"}


def test_nothing_is_written_when_the_pods_may_not_be_listed(monkeypatch, capfd):
    api = FakeApi(refuse=["pods"])
    result = run(monkeypatch, capfd, api, hosts=WANTED, gather_states=True)
    assert "Could not list the pods" in result["msg"]
    assert not api.written
