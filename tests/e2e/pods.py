# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of the end-to-end tests, made from one form and gone after the test."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from running import get, kubectl, until

IMAGE = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0"


def pod_manifest(
    name: str,
    *,
    gpus: int = 0,
    resource: str = "nvidia.com/gpu",
    node: str = "",
    runtime_class: str = "",
    arguments: tuple[str, ...] = (),
) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": "cuda",
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "args": list(arguments),
        # CUDA images carry this; it must not open a way around the scheduler.
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}],
    }
    if gpus:
        container["resources"] = {"limits": {resource: str(gpus)}}
    spec: dict[str, Any] = {"restartPolicy": "Never", "automountServiceAccountToken": False, "containers": [container]}
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    if runtime_class:
        spec["runtimeClassName"] = runtime_class
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@contextlib.contextmanager
def pod(name: str, **form: Any) -> Iterator[str]:
    kubectl("delete", "pod", name, "--ignore-not-found", "--now")
    kubectl("create", "-f", "-", stdin=json.dumps(pod_manifest(name, **form)))
    try:
        yield name
    finally:
        kubectl("delete", "pod", name, "--ignore-not-found", "--now")


def phase(name: str) -> str:
    return get("pod", name)["status"]["phase"]


def ended(name: str, timeout: float = 90) -> str:
    """Phase of a pod that has come to its end."""
    return until(lambda: phase(name) in ("Succeeded", "Failed") and phase(name), f"pod {name} ends", timeout)


def log_uuids(name: str) -> list[str]:
    """UUIDs that the vectoradd pod saw, sorted."""
    return sorted(line.split()[1] for line in kubectl("logs", name).splitlines() if line.startswith("GPU "))
