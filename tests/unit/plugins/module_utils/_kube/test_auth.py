# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import kubernetes
import pytest
from ansible_collections.kubernetes.core.plugins.module_utils.k8s import client as kubernetes_core

from ansible_collections.kubegpu.nvidia.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.auth import configuration, impersonation

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "one",
    "clusters": [
        {"name": "one", "cluster": {"server": "https://one.example:6443", "insecure-skip-tls-verify": True}},
        {"name": "two", "cluster": {"server": "https://two.example:6443", "tls-server-name": "kubernetes"}},
    ],
    "users": [{"name": "u", "user": {"token": "from-kubeconfig"}}],
    "contexts": [{"name": name, "context": {"cluster": name, "user": "u"}} for name in ("one", "two")],
}


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    """No configuration of the machine, nor of the test before, has a say."""
    for name in ("KUBECONFIG", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    kubernetes.client.Configuration.set_default(None)


@pytest.fixture
def kubeconfig(tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(KUBECONFIG))
    return str(path)


@pytest.mark.parametrize(
    "options, environment",
    [
        ({"kubeconfig": KUBECONFIG}, {}),
        ({"kubeconfig": KUBECONFIG, "context": "two"}, {}),
        ({"kubeconfig": "FILE"}, {}),
        ({"kubeconfig": "FILE", "host": "https://other.example/"}, {}),
        ({"kubeconfig": "FILE", "api_key": "mine", "validate_certs": True}, {}),
        ({}, {"K8S_AUTH_KUBECONFIG": "FILE", "K8S_AUTH_CONTEXT": "two"}),
        ({"host": "https://x.example/", "api_key": "k", "validate_certs": False}, {}),
        ({"host": "https://x.example", "username": "u", "password": "p", "ca_cert": "/ca"}, {}),
        ({"host": "https://x.example", "client_cert": "/c", "client_key": "/k"}, {}),
        ({}, {"K8S_AUTH_HOST": "https://x.example", "K8S_AUTH_API_KEY": "k", "K8S_AUTH_VERIFY_SSL": "no"}),
        ({"kubeconfig": "FILE", "proxy": "http://p.example", "no_proxy": ".example"}, {}),
        ({"kubeconfig": "FILE", "proxy_headers": {"user_agent": "me"}}, {}),
        ({"kubeconfig": "FILE"}, {"K8S_AUTH_PROXY_HEADERS_BASIC_AUTH": "me:secret"}),
    ],
)
def test_the_same_server_as_kubernetes_core(options, environment, kubeconfig, monkeypatch):
    options = {key: kubeconfig if value == "FILE" else value for key, value in options.items()}
    for key, value in environment.items():
        monkeypatch.setenv(key, kubeconfig if value == "FILE" else value)
    ours = configuration(options)
    theirs = kubernetes_core._create_configuration(kubernetes_core._create_auth_spec(**options))
    same = ("host", "username", "password", "verify_ssl", "ssl_ca_cert", "cert_file", "key_file", "proxy", "no_proxy")
    for name in same:
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.auth_settings() == theirs.auth_settings()
    assert (ours.proxy_headers or {}) == (theirs.proxy_headers or {})


def test_downloads_have_proxies_of_their_own(kubeconfig, monkeypatch):
    for name in ("HTTPS_PROXY", "https_proxy", "http_proxy"):
        monkeypatch.setenv(name, "http://proxy.example:3128")
    assert configuration({"kubeconfig": kubeconfig}).proxy is None


@pytest.mark.parametrize(
    "options, environment, headers",
    [
        ({}, {}, []),
        (
            {"impersonate_user": "u", "impersonate_groups": ["a", "b"]},
            {},
            [("Impersonate-User", "u"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b")],
        ),
        ({}, {"K8S_AUTH_IMPERSONATE_GROUPS": "a,b"}, [("Impersonate-Group", "a"), ("Impersonate-Group", "b")]),
    ],
)
def test_impersonation(options, environment, headers, monkeypatch):
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    assert impersonation(options) == headers


@pytest.mark.parametrize(
    "content, text",
    [
        (None, "There is no kubeconfig"),
        ("", "is empty"),
        ("a: [", "flow node"),
        ("just text", "no kubeconfig"),
        ("{}", "current-context"),
        (json.dumps({**KUBECONFIG, "current-context": "three"}), "three"),
    ],
)
def test_a_file_that_is_no_use(content, text, tmp_path):
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    with pytest.raises(KubegpuError, match=text) as raised:
        configuration({"kubeconfig": str(path)})
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_nothing_is_said_at_all():
    with pytest.raises(KubegpuError, match=r"There is no kubeconfig ~/.kube/config .* kubegpu_k8s_auth"):
        configuration({})
