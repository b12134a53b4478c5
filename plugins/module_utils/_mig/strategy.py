# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Whether NVIDIA's device plugin, as it is configured on a host, can serve the MIG layouts of the host's GPUs."""

from __future__ import annotations

import typing as t

from .model import Layout, slices_of


def contradiction(strategy: str, mps: bool, layouts: t.Mapping[str, Layout | None]) -> str | None:
    """Why it cannot, or None. Layouts are by the GPU's name for the message; None is a GPU outside MIG mode.

    The rules are those of the plugin itself (k8s-device-plugin v0.20.0: main.go, rm/device_map.go).
    """
    in_mig = {gpu: layout for gpu, layout in layouts.items() if layout is not None}
    if mps and strategy == "mixed":
        return "The device plugin does not start with both MPS and the MIG strategy mixed; use none or single."
    if mps and in_mig:
        return f"The device plugin cannot share MIG instances with MPS, and MIG is wanted on {', '.join(in_mig)}."
    if strategy == "none" and in_mig:
        return (
            f"With the MIG strategy none the device plugin would offer {', '.join(in_mig)} as whole GPUs, although MIG"
            " is wanted there; use mixed or single."
        )
    if strategy == "single" and in_mig:
        return _why_not_single(layouts, in_mig)
    parts = _parts(in_mig)
    if strategy == "mixed" and parts:
        return (
            "With the MIG strategy mixed the device plugin does not start on a host where a GPU instance is divided"
            f" into compute instances, and there would be parts of {', '.join(parts)}; want them whole."
        )
    return None


def _why_not_single(layouts: t.Mapping[str, Layout | None], in_mig: t.Mapping[str, Layout]) -> str | None:
    rule = "With the MIG strategy single all GPUs of a host must be cut into instances of one profile"
    whole = [gpu for gpu in layouts if gpu not in in_mig]
    empty = [gpu for gpu, layout in in_mig.items() if not any(instance.compute for instance in layout)]
    parts = _parts(in_mig)
    profiles = {instance.profile: gpu for gpu, layout in in_mig.items() for instance in layout if instance.compute}
    if whole:
        return f"{rule}, but {', '.join(whole)} would be without MIG; use mixed."
    if empty:
        return f"{rule}, but {', '.join(empty)} would have none that can be used; use mixed."
    if parts:
        return f"{rule}, each with one compute instance, but there would be parts of {', '.join(parts)}."
    if len(profiles) > 1:
        found = ", ".join(f"{profile} on {gpu}" for profile, gpu in profiles.items())
        return f"{rule}, but there would be {found}; use mixed."
    return None


def _parts(in_mig: t.Mapping[str, Layout]) -> list[str]:
    return list(
        dict.fromkeys(
            f"{instance.profile} on {gpu}"
            for gpu, layout in in_mig.items()
            for instance in layout
            if instance.compute not in ((), (slices_of(instance.profile),))
        )
    )
