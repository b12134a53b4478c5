# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which resources a node should advertise, and which it does. Private to the collection."""

from __future__ import annotations

import re
import typing as t

from .._errors import KubegpuError

WHOLE_GPU = "nvidia.com/gpu"
_OF_THE_DEVICE_PLUGIN = re.compile(r"nvidia\.com/(gpu|mig-.+?)(\.shared)?")
"""Others make resources in that domain, too: NVIDIA's Network Operator hostdev, KubeVirt's device plugin GH100_..."""

Gpu = t.Mapping[str, t.Any]
Resources = t.Mapping[str, t.Union[int, str]]


def expected_resources(gpus: t.Sequence[Gpu], strategy: str) -> dict[str, int]:
    """What NVIDIA's device plugin makes of the GPUs that NVML reports, or an error if it would not start with them.

    GPUs that NVML cannot use count for nothing. `strategy` is the plugin's MIG strategy: none, single or mixed.
    """
    usable = [gpu for gpu in gpus if not gpu.get("error")]
    sliced = [gpu for gpu in usable if strategy != "none" and (gpu.get("mig") or {}).get("current") == "enabled"]
    profiles = {gpu_name(gpu): _mig_devices(gpu) for gpu in sliced}
    whole = len(usable) - len(sliced)
    if strategy == "single" and sliced:
        _check_uniform(whole, profiles)
        return {WHOLE_GPU: sum(map(len, profiles.values()))}
    resources = {WHOLE_GPU: whole} if whole else {}
    for name, found in profiles.items():
        for profile in found:
            _check_full_size(name, profile)
            resource = mig_resource(profile)
            resources[resource] = resources.get(resource, 0) + 1
    return resources


def mig_resource(profile: str) -> str:
    """As the plugin names it with strategy mixed: nvidia.com/mig-1g.10gb.me of 1g.10gb+me."""
    return "nvidia.com/mig-" + profile.replace("+", ".")


def _mig_devices(gpu: Gpu) -> list[str]:
    """The profiles of its compute instances: these are what NVML calls MIG devices, and the plugin sees."""
    instances = gpu["mig"].get("instances")
    if instances is None:
        raise KubegpuError(
            f"{gpu_name(gpu)} is in MIG mode, but its facts do not tell which instances it has, so nobody can say what"
            " the node should offer. Probe the host again, as root; if that does not help, ask nvidia-smi mig -lgi."
        )
    return [compute["profile"] for instance in instances for compute in instance["compute_instances"]]


def _check_uniform(whole: int, profiles: t.Mapping[str, t.Sequence[str]]) -> None:
    """With strategy single nvidia.com/gpu means one thing on all of a node, or the plugin does not start."""
    empty = [name for name, found in profiles.items() if not found]
    kinds = sorted({profile for found in profiles.values() for profile in found})
    if whole:
        problem = f"{', '.join(profiles)} is in MIG mode, and others of this node are not"
    elif empty:
        problem = f"{', '.join(empty)} is in MIG mode and has no MIG device"
    elif len(kinds) > 1:
        problem = f"this node has MIG devices of different profiles: {', '.join(kinds)}"
    else:
        return
    raise KubegpuError(
        f"{problem}. The device plugin does not start so with the MIG strategy single, which wants all GPUs of a node"
        " in MIG mode with devices of one profile. Change the layout, or use the strategy mixed."
    )


def _check_full_size(gpu: str, profile: str) -> None:
    # The plugin (0.20) has names for whole GPU instances only, and ends when it finds something without a name.
    if "c." in profile:
        raise KubegpuError(
            f"{gpu} has a compute instance {profile}, which is not all of its GPU instance. The device plugin does not"
            " start so with the MIG strategy mixed. Give each GPU instance one compute instance of its full size."
        )


def unusable_gpus(gpus: t.Sequence[Gpu]) -> list[str]:
    """The GPUs that count for nothing, each with NVML's reason."""
    broken = [(gpu_name(gpu), gpu["error"]) for gpu in gpus if gpu.get("error")]
    return [f"{name}: {error.get('message') or error.get('error')}" for name, error in broken]


def advertised_resources(node: t.Mapping[str, t.Any]) -> dict[str, int | str]:
    """What NVIDIA's GPU device plugin has made of the node's GPUs.

    Allocatable, not capacity: that keeps resources for minutes after their plugin is gone.
    """
    return of_device_plugin(node.get("status", {}).get("allocatable") or {})


def of_device_plugin(amounts: t.Mapping[str, str]) -> dict[str, int | str]:
    """Those among the resources of a node or container that NVIDIA's GPU device plugin serves."""
    return {name: _count(amounts[name]) for name in filter(_OF_THE_DEVICE_PLUGIN.fullmatch, sorted(amounts))}


def is_as_expected(expected: Resources, advertised: Resources) -> bool:
    """Exactly these: a resource left over from another configuration may only be there with nothing in it."""
    return {name: amount for name, amount in advertised.items() if amount != 0} == dict(expected)


def describe(resources: Resources) -> str:
    amounts = [f"{name}: {amount}" for name, amount in sorted(resources.items())]
    return ", ".join(amounts) or f"no {WHOLE_GPU} or nvidia.com/mig-*"


def gpu_name(gpu: Gpu) -> str:
    return f"GPU {gpu.get('uuid') or gpu.get('index')} ({gpu.get('pci_address')})"


def _count(amount: str) -> int | str:
    # The plugin advertises plain numbers. Any other quantity is shown as it is, and equals nothing that we expect.
    return int(amount) if amount.isdecimal() else amount
