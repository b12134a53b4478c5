# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes, and a DaemonSet with its pods, as the API server shows them."""

from __future__ import annotations

OWNER = ({"kind": "DaemonSet", "uid": "uid-1"},)
RUNNING = {"state": {"running": {"startedAt": "2026-01-01T10:00:00Z"}}, "ready": True, "restartCount": 0}


def node(name, gpus, *, heartbeat="2026-01-01T10:01:00Z", labels=None):
    allocatable = {"cpu": "2", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat}
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {},
        "status": {"allocatable": allocatable, "conditions": [ready]},
    }


def daemonset(generation=1, observed=None, strategy="RollingUpdate", **node_selector):
    return {
        "metadata": {"name": "plugin", "uid": "uid-1", "generation": generation},
        "spec": {
            "selector": {"matchLabels": {"app": "plugin"}},
            "template": {"spec": {"nodeSelector": node_selector}},
            "updateStrategy": {"type": strategy},
        },
        "status": {"observedGeneration": observed or generation},
    }


def revision(number, name, owners=OWNER):
    labels = {"controller-revision-hash": name}
    return {"metadata": {"labels": labels, "ownerReferences": owners}, "revision": number}


def pod(on, of="new", *, ready=True, name=None, owners=OWNER, metadata=None, **container):
    return {
        "metadata": {
            "name": name or f"plugin-{on}",
            "namespace": "nvidia",
            "labels": {"controller-revision-hash": of},
            "ownerReferences": owners,
            **(metadata or {}),
        },
        "spec": {"nodeName": on},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "containerStatuses": [{"name": "ctr", **RUNNING, "ready": ready, **container}],
        },
    }
