# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Labels and annotations of nodes: what Kubernetes accepts, what differs. Private to the collection."""

from __future__ import annotations

import re
import typing as t

from .._errors import KubegpuError

# https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


def wanted_labels(given: t.Mapping[str, t.Any]) -> dict[str, str | None]:
    """The labels as Kubernetes takes them (None = absent), or an error that names the wrong one."""
    wanted: dict[str, str | None] = {}
    for key, value in given.items():
        check_key(key, "label")
        wanted[key] = None if value is None else value_of(key, value, "label")
    return wanted


def wanted_annotations(given: t.Mapping[str, t.Any]) -> dict[str, str | None]:
    """The same for annotations, whose values may be any text."""
    wanted: dict[str, str | None] = {}
    for key, value in given.items():
        check_key(key, "annotation")
        if isinstance(value, (dict, list)):
            raise KubegpuError(f"The annotation {key} has a structure as its value; it must be text: use to_json.")
        wanted[key] = None if value is None else _text(key, value, "annotation")
    return wanted


def changes(current: t.Mapping[str, str], wanted: t.Mapping[str, str | None]) -> dict[str, str | None]:
    """What to write so that `current` becomes `wanted`; keys that `wanted` does not name stay as they are."""
    return {key: value for key, value in sorted(wanted.items()) if current.get(key) != value}


def check_key(key: str, kind: str) -> None:
    """Raises unless labels, annotations and taints may have that key; `kind` is what the message calls it."""
    prefix, slash, name = key.rpartition("/")
    if not _NAME.fullmatch(name):
        raise KubegpuError(
            f"{key!r} is no {kind} key: after the optional prefix it has 1 to 63 letters, digits, '-', '_' and '.',"
            " and begins and ends with a letter or digit."
        )
    if slash and (len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix)):
        raise KubegpuError(
            f"{key!r} is no {kind} key: the part before '/' must be a lower-case DNS name of at most 253 characters."
        )


def value_of(key: str, value: t.Any, kind: str) -> str:
    """The value of a label or taint as Kubernetes takes it."""
    text = _text(key, value, kind)
    if text and not _NAME.fullmatch(text):
        raise KubegpuError(
            f"{text!r} is no value for the {kind} {key}: it may have up to 63 letters, digits, '-', '_' and '.',"
            " and begins and ends with a letter or digit."
        )
    return text


def _text(key: str, value: t.Any, kind: str) -> str:
    if isinstance(value, bool):  # YAML's true; the value is text
        return str(value).lower()
    if isinstance(value, float):
        raise KubegpuError(
            f"The {kind} {key} has the number {value} as its value; digits may be lost already: put it in quotes."
        )
    return str(value)
