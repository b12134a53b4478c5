# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils._kube.pods import (
    is_moved_by_eviction,
    owner_of,
    uses_gpus,
)


def pod(spec=None, **metadata):
    return {
        "metadata": {"namespace": "ns", "name": "a", **metadata},
        "spec": {"containers": [{"name": "ctr"}], **(spec or {})},
    }


def container(**resources):
    return {"containers": [{"name": "other"}, {"name": "ctr", "resources": resources}]}


def owned_by(kind, name="x", controller=True, **metadata):
    return pod(ownerReferences=[{"kind": kind, "name": name, "uid": "u", "controller": controller}], **metadata)


@pytest.mark.parametrize(
    "spec, uses",
    [
        ({}, False),
        (container(limits={"nvidia.com/gpu": "1"}), True),
        (container(requests={"nvidia.com/mig-1g.10gb": "1"}), True),
        (container(limits={"nvidia.com/gpu.shared": "1"}), True),
        (container(limits={"nvidia.com/gpu": "0"}), False),
        (container(limits={"nvidia.com/hostdev": "1"}), False),
        ({"initContainers": container(limits={"nvidia.com/gpu": "1"})["containers"]}, True),
        ({"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}, True),
        ({"resourceClaims": []}, False),
        ({"runtimeClassName": "nvidia"}, True),
        ({"runtimeClassName": "nvidia-legacy"}, True),
        ({"runtimeClassName": "gvisor"}, False),
    ],
)
def test_who_uses_gpus(spec, uses):
    assert uses_gpus(pod(spec)) is uses


@pytest.mark.parametrize(
    "found, moved",
    [
        (pod(), True),
        (owned_by("ReplicaSet"), True),
        (owned_by("DaemonSet"), False),
        (owned_by("DaemonSet", controller=False), True),
        (pod(annotations={"kubernetes.io/config.mirror": "x"}, ownerReferences=[{"kind": "Node", "name": "n"}]), False),
    ],
)
def test_who_is_moved(found, moved):
    assert is_moved_by_eviction(found) is moved


@pytest.mark.parametrize(
    "found, owner",
    [
        (pod(), None),
        (owned_by("Job", controller=False), None),
        (owned_by("StatefulSet"), "StatefulSet x"),
        (owned_by("ReplicaSet", "web-7d9c", labels={"pod-template-hash": "7d9c"}), "Deployment web"),
        (owned_by("ReplicaSet", "web-7d9c", labels={"app": "web"}), "ReplicaSet web-7d9c"),
        (owned_by("ReplicaSet", "web", labels={"pod-template-hash": "7d9c"}), "ReplicaSet web"),
        (owned_by("Job", "web-7d9c", labels={"pod-template-hash": "7d9c"}), "Job web-7d9c"),
    ],
)
def test_the_owner(found, owner):
    assert owner_of(found) == owner
