# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubelet's pod-resources API, version v1, over the node's socket: which devices a pod has.

The answer is small and its form is fixed (k8s.io/kubelet pkg/apis/podresources/v1/api.proto), so it is read without
generated code.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import grpc


def devices_of(node: str, pod: str) -> dict[str, list[str]]:
    """Device ids by resource name of a pod on a node."""
    kubelet = subprocess.run(
        ["podman", "volume", "inspect", "--format", "{{.Mountpoint}}", volume_of(node)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.strip()
    with grpc.insecure_channel(f"unix:{kubelet}/pod-resources/kubelet.sock") as channel:
        answer = channel.unary_unary("/v1.PodResourcesLister/List")(b"", timeout=10)
    found: dict[str, list[str]] = {}
    for _, pod_resources in fields(answer):
        parts = list(fields(pod_resources))
        if text(parts, 1) != pod:
            continue
        for container in (value for number, value in parts if number == 3):
            for devices in (value for number, value in fields(container) if number == 2):
                items = list(fields(devices))
                found.setdefault(text(items, 1), []).extend(value.decode() for number, value in items if number == 2)
    return found


def volume_of(node: str) -> str:
    mounts = subprocess.run(
        ["podman", "inspect", "--format", "{{range .Mounts}}{{.Destination}} {{.Name}}\n{{end}}", node],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    return next(line.split()[1] for line in mounts.splitlines() if line.startswith("/var/lib/kubelet "))


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Field numbers and contents of the length-delimited fields of a protobuf message; numbers are passed over."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        size, at = varint(message, at)
        if key & 7 == 2:
            yield key >> 3, message[at : at + size]
            at += size


def varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def text(parts: list[tuple[int, bytes]], number: int) -> str:
    return next((value.decode() for n, value in parts if n == number), "")
