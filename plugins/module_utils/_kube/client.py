# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The few requests that we make to the API server, with their time limits and their errors. Private to the collection.

Objects are the plain dicts of the API: the client's typed models refuse what newer or older servers answer.
"""

from __future__ import annotations

import json
import re
import socket
import traceback
import typing as t

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible.module_utils.compat.version import LooseVersion
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC

from .._errors import KubegpuError
from .auth import WHAT_TO_CHECK, configuration, impersonation
from .errors import Gone, Unreachable

IMPORT_ERROR: str | None = None
try:
    import kubernetes
    import urllib3
except ImportError:
    IMPORT_ERROR = traceback.format_exc()

MINIMUM_VERSION = "24.2.0"
FIELD_MANAGER = "kubegpu.nvidia"
CONNECT_SECONDS = 5
READ_SECONDS = 10
PAGE = 500
NOT_NOW = (429, 500, 502, 503, 504)
"""A server answers so while it starts, stops or is overloaded, and a proxy when the server is not there."""

Object = dict[str, t.Any]


def api_module(argument_spec: dict[str, t.Any], **further: t.Any) -> AnsibleModule:
    """A module that has kubernetes.core's options beside its own, on a host that can use them."""
    module = AnsibleModule(argument_spec={**AUTH_ARG_SPEC, **argument_spec}, **further)
    if IMPORT_ERROR:
        module.fail_json(msg=missing_required_lib(f"kubernetes >= {MINIMUM_VERSION}"), exception=IMPORT_ERROR)
    if LooseVersion(kubernetes.__version__) < LooseVersion(MINIMUM_VERSION):
        found = f"version {kubernetes.__version__} in {kubernetes.__file__} is too old"
        module.fail_json(msg=f"{missing_required_lib(f'kubernetes >= {MINIMUM_VERSION}')}. Found: {found}.")
    kubeconfig = module.params["kubeconfig"]
    if isinstance(kubeconfig, str) and re.fullmatch(r"[\w./~:+@ -]+", kubeconfig):
        module.no_log_values.discard(kubeconfig)  # only its content is secret; the messages need the path
    return module


class Api:
    def __init__(self, options: t.Mapping[str, t.Any], *, dry_run: bool = False) -> None:
        chosen = configuration(options)
        self.server = chosen.host
        # As by default, except that nothing sleeps for as long as a 429 or 503 tells it to: our caller has a timeout.
        chosen.retries = urllib3.Retry(3, respect_retry_after_header=False)
        client = kubernetes.client.ApiClient(chosen)
        for header, value in impersonation(options):
            client.set_default_header(_Header(header), value)
        self._core = kubernetes.client.CoreV1Api(client)
        self._apps = kubernetes.client.AppsV1Api(client)
        self._dry_run = {"dry_run": "All"} if dry_run else {}

    def nodes(self) -> tuple[list[Object], str]:
        """All nodes and the version of this list."""
        return self._list("list the nodes", self._core.list_node)

    def watch_nodes(self, version: str, seconds: float) -> t.Iterator[tuple[str, Object]]:
        """What happens to nodes after that version, as it happens, for that long."""
        return self._watch("watch the nodes", self._core.list_node, version=version, seconds=seconds)

    def node(self, name: str) -> Object:
        return self._read(f"read the node {name}", self._core.read_node, name)

    def patch_node(self, name: str, patch: Object) -> Object:
        """Merge this into the node; what it became, or in a dry run would become."""
        how = {"field_manager": FIELD_MANAGER, **self._dry_run}
        return self._read(f"change the node {name}", self._core.patch_node, name, patch, **how)

    def pods_that_run(self, node: str | None = None) -> list[Object]:
        """The pods of all namespaces that have not ended and are on this node, or on any."""
        fields = (
            f"{f'spec.nodeName={node}' if node else 'spec.nodeName!='},status.phase!=Succeeded,status.phase!=Failed"
        )
        pods = self._core.list_pod_for_all_namespaces
        return self._list("list the pods of all namespaces", pods, field_selector=fields)[0]

    def pods_on(self, node: str) -> list[Object]:
        """All pods of this node, also those that have ended."""
        pods, what = self._core.list_pod_for_all_namespaces, f"list the pods of the node {node}"
        return self._list(what, pods, field_selector=f"spec.nodeName={node}")[0]

    def evict(self, pod: t.Mapping[str, t.Any], grace_period: int | None) -> None:
        """Ask the server to end exactly this pod; only tried out in a dry run. None: the pod's own grace period."""
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        # A pod of the same name may have taken its place since it was listed.
        options: Object = {"preconditions": {"uid": pod["metadata"]["uid"]}}
        if grace_period is not None:
            options["gracePeriodSeconds"] = grace_period
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": namespace, "name": name},
            "deleteOptions": options,
        }
        request = self._core.create_namespaced_pod_eviction
        self._read(f"evict the pod {namespace}/{name}", request, name, namespace, eviction, **self._dry_run)

    def daemon_set(self, namespace: str, name: str) -> Object | None:
        """None: the server has no such DaemonSet."""
        what = f"read the DaemonSet {namespace}/{name}"
        try:
            return self._read(what, self._apps.read_namespaced_daemon_set, name, namespace)
        except KubegpuError as error:
            if error.details.get("status") == 404:
                return None
            raise

    def revisions(self, namespace: str, selector: str) -> list[Object]:
        """The revisions of DaemonSets whose pods the selector finds."""
        what = f"list the ControllerRevisions of the namespace {namespace}"
        return self._list(what, self._apps.list_namespaced_controller_revision, namespace, label_selector=selector)[0]

    def pods(self, namespace: str, selector: str) -> tuple[list[Object], str]:
        """These pods and the version of this list."""
        what = f"list the pods of the namespace {namespace}"
        return self._list(what, self._core.list_namespaced_pod, namespace, label_selector=selector)

    def watch_pods(self, namespace: str, selector: str, version: str, seconds: float) -> t.Iterator[tuple[str, Object]]:
        what = f"watch the pods of the namespace {namespace}"
        pods = self._core.list_namespaced_pod
        return self._watch(what, pods, namespace, label_selector=selector, version=version, seconds=seconds)

    def warnings(self, namespace: str, pod: str) -> list[Object]:
        """The events that warn about a pod."""
        fields = f"involvedObject.kind=Pod,involvedObject.name={pod},type=Warning"
        what = f"list the events of the namespace {namespace}"
        return self._read(what, self._core.list_namespaced_event, namespace, field_selector=fields)["items"]

    def log(self, namespace: str, pod: str, container: str, *, lines: int, previous: bool = False) -> list[str]:
        """The last lines of a container; of the one before it, if this one has just been started again."""
        what = f"read the log of {namespace}/{pod}"
        which = {"container": container, "tail_lines": lines, "previous": previous}
        body = self._body(what, self._core.read_namespaced_pod_log, pod, namespace, **which)
        return body.decode("utf-8", "replace").splitlines()

    def _list(
        self, what: str, request: t.Callable[..., t.Any], *arguments: t.Any, **options: t.Any
    ) -> tuple[list[Object], str]:
        items: list[Object] = []
        token = None
        while True:
            page = self._read(what, request, *arguments, limit=PAGE, _continue=token, **options)
            items += page["items"]
            token = page["metadata"].get("continue")
            if not token:
                return items, page["metadata"]["resourceVersion"]

    def _watch(
        self,
        what: str,
        request: t.Callable[..., t.Any],
        *arguments: t.Any,
        version: str,
        seconds: float,
        **options: t.Any,
    ) -> t.Iterator[tuple[str, Object]]:
        limit = max(1, round(seconds))
        response = self._call(
            what,
            request,
            *arguments,
            watch=True,
            resource_version=version,
            timeout_seconds=limit,
            _request_timeout=(CONNECT_SECONDS, limit + READ_SECONDS),
            **options,
        )
        try:
            for line in _lines(response):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise self._refusal(what, event["object"].get("code"), event["object"].get("message"))
                yield event["type"], event["object"]
        except urllib3.exceptions.HTTPError as error:
            raise self._no_answer(error) from error
        finally:
            response.close()

    def _read(self, what: str, request: t.Callable[..., t.Any], *arguments: t.Any, **options: t.Any) -> Object:
        return json.loads(self._body(what, request, *arguments, **options))

    def _body(self, what: str, request: t.Callable[..., t.Any], *arguments: t.Any, **options: t.Any) -> bytes:
        response = self._call(what, request, *arguments, **options)
        try:
            return response.data
        except urllib3.exceptions.HTTPError as error:  # the connection was lost in the middle of the answer
            raise self._no_answer(error) from error

    def _call(self, what: str, request: t.Callable[..., t.Any], *arguments: t.Any, **options: t.Any) -> t.Any:
        """The raw answer of the server, or an error that says what was tried and what to do."""
        options.setdefault("_request_timeout", (CONNECT_SECONDS, READ_SECONDS))
        try:
            response = request(*arguments, _preload_content=False, **options)
            if not 200 <= response.status <= 299:  # newer clients leave this to the caller
                raise self._refusal(what, response.status, _message(response.data), _causes(response.data))
        except kubernetes.client.ApiException as error:
            raise self._refusal(what, error.status, _message(error.body), _causes(error.body)) from error
        except urllib3.exceptions.HTTPError as error:
            raise self._no_answer(error) from error
        return response

    def _refusal(
        self, what: str, status: int | None, message: str | None, causes: t.Sequence[Object] = ()
    ) -> KubegpuError:
        if status == 410:
            return Gone(f"The Kubernetes API at {self.server} has forgotten that version ({message}).")
        if status == 401:
            return KubegpuError(
                f"The Kubernetes API at {self.server} refused the credentials (401 Unauthorized). {WHAT_TO_CHECK}.",
                status=status,
            )
        advice = " These credentials need a role that allows it." if status == 403 else ""
        kind = Unreachable if status in NOT_NOW else KubegpuError
        return kind(
            f"Could not {what}: the Kubernetes API at {self.server} answered {status}, {message}.{advice}",
            status=status,
            **({"causes": causes} if causes else {}),
        )

    def _no_answer(self, error: Exception) -> Unreachable:
        reason = getattr(error, "reason", None) or error
        if isinstance(reason, urllib3.exceptions.SSLError):
            advice = "If the certificate is the server's, name its authority with ca_cert."
        else:
            advice = (
                f"{WHAT_TO_CHECK}, and that {socket.gethostname()} can reach it;"
                " if that takes a proxy, set proxy (the environment's is not used,"
                " and a kubeconfig's proxy-url only by kubernetes >= 37)."
            )
        through = ""
        if isinstance(reason, urllib3.exceptions.ProxyError):
            through, reason = " through its proxy", reason.original_error
        return Unreachable(
            f"The Kubernetes API at {self.server} cannot be reached{through}: {_plain(reason)}. {advice}"
        )


class _Header(str):
    """A header's name that may occur more than once in the client's dict."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def _lines(response: t.Any) -> t.Iterator[bytes]:
    rest = b""
    for piece in response.stream(amt=None, decode_content=False):
        *lines, rest = (rest + piece).split(b"\n")
        yield from filter(None, lines)


def _message(body: t.Any) -> str:
    """What the server says, out of its Status object or whatever else a proxy in between has sent."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body or "")
    try:
        return str(json.loads(text)["message"]).rstrip(".")
    except (ValueError, KeyError, TypeError):
        return text.strip()[:200] or "without a reason"


def _causes(body: t.Any) -> list[Object]:
    """What the server's Status object names behind its message, each with a reason and a message."""
    try:
        return list(json.loads(body)["details"]["causes"])
    except (ValueError, KeyError, TypeError):
        return []


def _plain(reason: Exception) -> str:
    """urllib3's reason without the connection object that it begins with."""
    text = str(reason.args[-1] if reason.args else reason)
    return re.sub(r"^(<[^>]*>|\w+\(host=.*?\)): ", "", text).rstrip(".")
