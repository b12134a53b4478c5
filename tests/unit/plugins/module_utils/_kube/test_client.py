# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.client import Api
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.errors import Gone, Unreachable


class Server:
    """Answers each request with the next of `answers`, (status, body), and keeps what was asked."""

    def __init__(self):
        self.answers = []
        self.requests = []
        self.lost = 0  # bytes that are promised and never sent
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.requests.append((self.command, self.path, json.loads(body) if body else None, self.headers))
                status, answer = outer.answers.pop(0)
                content = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content) + outer.lost))
                if status in (429, 503):
                    self.send_header("Retry-After", "5")
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PATCH = do_POST = handle_any

            def log_message(self, *_arguments):
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()


def api(server, **options):
    dry_run = options.pop("dry_run", False)
    return Api({"host": server.url, "api_key": "token", **options}, dry_run=dry_run)


def page(names, **metadata):
    return {"items": [{"metadata": {"name": name}} for name in names], "metadata": {"resourceVersion": "7", **metadata}}


def status(code, message):
    return code, {"kind": "Status", "code": code, "message": message}


def test_pages(server):
    server.answers = [(200, page(["a", "b"], **{"continue": "more"})), (200, page(["c"]))]
    nodes, version = api(server).nodes()
    assert [node["metadata"]["name"] for node in nodes] == ["a", "b", "c"]
    assert version == "7"
    assert "continue=more" in server.requests[1][1]
    assert server.requests[0][3]["Authorization"] == "Bearer token"


def test_pods(server):
    server.answers = [(200, page(["a"], **{"continue": "more"})), (200, page(["b"]))]
    pods, version = api(server).pods("nvidia", "app=plugin")
    assert [pod["metadata"]["name"] for pod in pods] == ["a", "b"]
    assert version == "7"
    for _method, path, _body, _headers in server.requests:
        assert path.startswith("/api/v1/namespaces/nvidia/pods?")
        assert "labelSelector=app%3Dplugin" in path


@pytest.mark.parametrize("node, selects", [(None, "spec.nodeName%21%3D%2C"), ("n1", "spec.nodeName%3Dn1%2C")])
def test_pods_that_run(server, node, selects):
    server.answers = [(200, page(["a"], **{"continue": "more"})), (200, page(["b"]))]
    assert [pod["metadata"]["name"] for pod in api(server).pods_that_run(node)] == ["a", "b"]
    for _method, path, _body, _headers in server.requests:
        assert path.startswith("/api/v1/pods?")
        assert f"fieldSelector={selects}status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed" in path


def test_a_daemonset(server):
    server.answers = [(200, {"kind": "DaemonSet"}), status(404, "not found"), status(403, "forbidden")]
    assert api(server).daemon_set("nvidia", "plugin") == {"kind": "DaemonSet"}
    assert api(server).daemon_set("nvidia", "plugin") is None
    with pytest.raises(KubegpuError, match="read the DaemonSet nvidia/plugin"):
        api(server).daemon_set("nvidia", "plugin")


def test_revisions(server):
    server.answers = [(200, page(["a"]))]
    assert [item["metadata"]["name"] for item in api(server).revisions("nvidia", "app=plugin")] == ["a"]
    assert server.requests[0][1].startswith("/apis/apps/v1/namespaces/nvidia/controllerrevisions?labelSelector=app")


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_patch(server, dry_run):
    server.answers = [(200, {"kind": "Node"})]
    patch = {"metadata": {"labels": {"x": "1", "y": None}}, "spec": {"taints": []}}
    assert api(server, dry_run=dry_run).patch_node("a", patch) == {"kind": "Node"}
    ((method, path, body, headers),) = server.requests
    assert (method, body) == ("PATCH", patch)
    assert path.startswith("/api/v1/nodes/a?")
    assert "fieldManager=kubegpu.nvidia" in path
    assert ("dryRun=All" in path) is dry_run
    assert headers["Content-Type"] in ("application/merge-patch+json", "application/strategic-merge-patch+json")


def test_one_node(server):
    server.answers = [(200, {"kind": "Node"})]
    assert api(server).node("a") == {"kind": "Node"}
    assert server.requests[0][1].partition("?")[0] == "/api/v1/nodes/a"


def test_pods_on_a_node(server):
    server.answers = [(200, page(["a"]))]
    assert [pod["metadata"]["name"] for pod in api(server).pods_on("n1")] == ["a"]
    assert "fieldSelector=spec.nodeName%3Dn1&" in server.requests[0][1] + "&"


POD = {"metadata": {"namespace": "ns", "name": "a", "uid": "u1"}}


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("grace", [None, 0, 7])
def test_an_eviction(server, dry_run, grace):
    server.answers = [(201, {})]
    api(server, dry_run=dry_run).evict(POD, grace)
    ((method, path, body, _headers),) = server.requests
    assert (method, path.partition("?")[0]) == ("POST", "/api/v1/namespaces/ns/pods/a/eviction")
    assert ("dryRun=All" in path) is dry_run
    assert (body["apiVersion"], body["kind"]) == ("policy/v1", "Eviction")
    assert body["metadata"] == {"namespace": "ns", "name": "a"}
    options = {"preconditions": {"uid": "u1"}, **({} if grace is None else {"gracePeriodSeconds": grace})}
    assert body["deleteOptions"] == options


def test_what_is_behind_a_refusal(server):
    cause = {
        "reason": "DisruptionBudget",
        "message": "The disruption budget b needs 1 healthy pods and has 1 currently",
    }
    code, answer = status(429, "Cannot evict pod")
    server.answers = [(code, {**answer, "details": {"causes": [cause]}})]
    with pytest.raises(KubegpuError, match="Could not evict the pod ns/a: .* answered 429, Cannot evict pod") as raised:
        api(server).evict(POD, None)
    assert raised.value.details == {"status": 429, "causes": [cause]}
    assert len(server.requests) == 1


def test_watch(server):
    events = [{"type": "MODIFIED", "object": {"metadata": {"name": name}}} for name in "ab"]
    server.answers = [(200, "".join(json.dumps(event) + "\n" for event in events))]
    seen = [(what, node["metadata"]["name"]) for what, node in api(server).watch_nodes("7", 30)]
    assert seen == [("MODIFIED", "a"), ("MODIFIED", "b")]
    assert "resourceVersion=7" in server.requests[0][1]
    assert "timeoutSeconds=30" in server.requests[0][1]


def test_watch_of_pods(server):
    server.answers = [(200, json.dumps({"type": "ADDED", "object": {"metadata": {"name": "a"}}}) + "\n")]
    ((what, pod),) = api(server).watch_pods("nvidia", "app=plugin", "7", 30)
    assert (what, pod["metadata"]["name"]) == ("ADDED", "a")
    for text in ("/namespaces/nvidia/pods?", "labelSelector=app%3Dplugin", "resourceVersion=7", "watch=true"):
        assert text.lower() in server.requests[0][1].lower()


@pytest.mark.parametrize(
    "answer",
    [
        status(410, "too old"),
        (200, json.dumps({"type": "ERROR", "object": {"code": 410, "message": "too old"}}) + "\n"),
    ],
)
def test_watch_of_a_version_that_is_gone(server, answer):
    server.answers = [answer]
    with pytest.raises(Gone):
        list(api(server).watch_nodes("7", 30))


def test_log(server):
    server.answers = [(200, "first\nlast\n")]
    assert api(server).log("nvidia", "pod", "ctr", lines=8, previous=True) == ["first", "last"]
    assert "tailLines=8" in server.requests[0][1]


def test_several_groups(server):
    server.answers = [(200, page([]))]
    api(server, impersonate_user="u", impersonate_groups=["a", "b"]).nodes()
    assert server.requests[0][3].get_all("Impersonate-Group") == ["a", "b"]


@pytest.mark.parametrize(
    "answer, texts",
    [
        (status(401, "Unauthorized"), ["refused the credentials", "kubegpu_k8s_auth"]),
        (status(403, 'User "x" cannot list'), ["list the nodes", 'User "x" cannot list', "need a role"]),
        ((502, "<html>Bad Gateway</html>"), ["502", "Bad Gateway"]),
    ],
)
def test_refusals(server, answer, texts):
    server.answers = [answer]
    with pytest.raises(KubegpuError) as raised:
        api(server).nodes()
    for text in (server.url, *texts):
        assert text in str(raised.value)


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_a_server_that_may_answer_later(server, code):
    server.answers = [status(code, "try again")]
    with pytest.raises(Unreachable, match=f"Could not list the nodes: .* answered {code}, try again") as raised:
        api(server).nodes()
    assert raised.value.details == {"status": code}
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", [400, 403, 409])
def test_a_refusal_is_final(server, code):
    server.answers = [status(code, "no")]
    with pytest.raises(KubegpuError) as raised:
        api(server).nodes()
    assert not isinstance(raised.value, Unreachable)


def test_a_watch_that_ends_with_a_server_that_may_answer_later(server):
    server.answers = [(200, json.dumps({"type": "ERROR", "object": {"code": 500, "message": "stopping"}}) + "\n")]
    with pytest.raises(Unreachable, match="Could not watch the nodes: .* answered 500, stopping"):
        list(api(server).watch_nodes("7", 30))


def test_nobody_there(server):
    server.http.shutdown()
    server.http.server_close()
    with pytest.raises(Unreachable, match="Connection refused") as raised:
        api(server).nodes()
    assert server.url in str(raised.value)
    assert "object at 0x" not in str(raised.value)


def test_a_connection_lost_in_the_middle_of_an_answer(server):
    server.answers = [(200, {"items": []})]
    server.lost = 10
    with pytest.raises(Unreachable):
        api(server).nodes()
