# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""etcd, API server, controller manager and scheduler, on this machine; the API listens on the nodes' network."""

from __future__ import annotations

import ssl
import urllib.request
from pathlib import Path

from .. import service
from ..command import wait_for
from ..config import API, HOST, SERVICE_ADDRESS, SERVICE_NETWORK, SOURCE, STATE
from . import kubeconfig, pki

KUBECONFIG = STATE / "kubeconfig"
AUDIT_LOG = service.LOGS / "audit.log"

# Beside the usual ports, so that an etcd of the machine's own is not in the way.
ETCD = "http://127.0.0.1:12379"
ETCD_PEER = "http://127.0.0.1:12380"


def ensure(programs: Path) -> None:
    """Starts what does not run, and returns when the API answers. The network's bridge must be there."""
    kubeconfig.write(KUBECONFIG, *pki.issue("admin", user="admin", group="system:masters"))
    _etcd()
    _api_server(programs / "kube-apiserver")
    wait_for("the API server", 60, _is_ready)
    _controller_manager(programs / "kube-controller-manager")
    _scheduler(programs / "kube-scheduler")


def _etcd() -> None:
    service.ensure(
        "etcd",
        "etcd",
        *("--name=testbed", f"--data-dir={STATE}/etcd", "--unsafe-no-fsync"),
        *(f"--listen-client-urls={ETCD}", f"--advertise-client-urls={ETCD}"),
        *(f"--listen-peer-urls={ETCD_PEER}", f"--initial-advertise-peer-urls={ETCD_PEER}"),
        f"--initial-cluster=testbed={ETCD_PEER}",
    )


def _api_server(program: Path) -> None:
    names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
    certificate, key = pki.issue("apiserver", user="apiserver", addresses=(HOST, SERVICE_ADDRESS, *names))
    client_certificate, client_key = pki.issue("apiserver-kubelet-client", user="apiserver", group="system:masters")
    service.ensure(
        "kube-apiserver",
        program,
        *(f"--bind-address={HOST}", f"--advertise-address={HOST}", f"--etcd-servers={ETCD}"),
        *(f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}", f"--client-ca-file={pki.CA}"),
        *(f"--kubelet-client-certificate={client_certificate}", f"--kubelet-client-key={client_key}"),
        f"--kubelet-certificate-authority={pki.CA}",
        "--kubelet-preferred-address-types=InternalIP",
        *("--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged"),
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={pki.SERVICE_ACCOUNT_KEY}",
        f"--service-account-signing-key-file={pki.SERVICE_ACCOUNT_KEY}",
        f"--audit-policy-file={SOURCE}/kubernetes/audit-policy.yaml",
        f"--audit-log-path={AUDIT_LOG}",
    )


def _controller_manager(program: Path) -> None:
    config = _component("controller-manager", "system:kube-controller-manager")
    service.ensure(
        "kube-controller-manager",
        program,
        *(f"--kubeconfig={config}", "--use-service-account-credentials", "--leader-elect=false"),
        *("--bind-address=127.0.0.1", f"--root-ca-file={pki.CA}"),
        f"--service-account-private-key-file={pki.SERVICE_ACCOUNT_KEY}",
    )


def _scheduler(program: Path) -> None:
    config = _component("scheduler", "system:kube-scheduler")
    service.ensure(
        "kube-scheduler", program, f"--kubeconfig={config}", "--leader-elect=false", "--bind-address=127.0.0.1"
    )


def _component(name: str, user: str) -> Path:
    return kubeconfig.write(STATE / "pki" / f"{name}.kubeconfig", *pki.issue(name, user=user))


def _is_ready() -> bool:
    service.check("etcd")
    service.check("kube-apiserver")
    try:
        with urllib.request.urlopen(
            f"{API}/readyz", timeout=5, context=ssl.create_default_context(cafile=str(pki.CA))
        ) as answer:
            return answer.status == 200
    except OSError:
        return False
