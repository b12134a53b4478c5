# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""What kubegpu-mig.service runs at boot: gives each GPU the layout that a file has, then describes them to CDI.

It runs without Ansible and network, before the container runtime starts. A GPU that fails does not keep the others
from working; the program then ends with status 1.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import time

from .._errors import KubegpuError
from .._nvml import IN_USE, NvmlError, Session, load_binding, session
from .._nvml_mig import MigGpu
from . import apply, boot
from .lock import exclusive
from .model import Instance, Layout
from .profiles import match

CDI_SPECIFICATION = "/var/run/cdi/nvidia.yaml"

# nvml.h: DRIVER_NOT_LOADED, NOT_READY, GPU_NOT_FOUND
NOT_YET = (9, 27, 28)

LOG = logging.getLogger("kubegpu-mig")

# Seconds that the driver may take to come up after its module was loaded, and that others may be in the way.
PATIENCE = 60


def main(file: str) -> int:
    try:
        with exclusive(patience=PATIENCE):
            failed = _restore(boot.read(file))
    except KubegpuError as exc:
        LOG.error("%s", exc)
        failed = True
    return 1 if _describe_to_cdi() or failed else 0


def _restore(entries: list[boot.Entry]) -> bool:
    """Whether a GPU failed."""
    _wait_for_driver()
    failed = False
    with session(load_binding()) as running:
        for entry in entries:
            name = f"GPU {entry.uuid} ({entry.pci_address})"
            try:
                _restore_one(running, entry)
                LOG.info("%s: MIG %s, %s", name, entry.mode, apply.described(entry.layout))
            except KubegpuError as exc:
                failed = True
                LOG.error("%s: %s", name, exc)
    return failed


def _wait_for_driver() -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with session(load_binding()):
                return
        except NvmlError as exc:
            if exc.failure.code not in NOT_YET or time.monotonic() > deadline:
                raise
            time.sleep(1)


def _restore_one(running: Session, entry: boot.Entry) -> None:
    device = MigGpu(running, entry.uuid)
    modes = device.modes()
    if modes != (entry.mode, entry.mode):
        if modes[0] == "enabled" and entry.mode == "disabled":
            apply.bring_about(device, ())
        _set_mode(device, entry.mode)
        device = MigGpu(running, entry.uuid)
    if entry.mode == "enabled":
        apply.bring_about(device, _as_offered(entry.layout, device))


def _set_mode(device: MigGpu, mode: str) -> None:
    """Daemons that start now, such as persistenced, may be in the way for a moment."""
    deadline = time.monotonic() + PATIENCE
    while True:
        before = device.modes()[0]
        pending = device.set_mode(mode)
        if pending is None:
            return
        if pending.code != IN_USE or time.monotonic() > deadline:
            device.set_mode(before or mode)  # or the next reset would bring it, with instances that nobody made
            raise KubegpuError(f"MIG mode {mode} is only pending: {pending.error}. {pending.message}")
        time.sleep(1)


def _as_offered(layout: Layout, device: MigGpu) -> Layout:
    """A driver that was upgraded since may round the memory in a profile's name in another way."""
    offered = device.offered()
    return tuple(Instance(match(each.profile, offered).name, each.start, each.compute) for each in layout)


def _describe_to_cdi() -> bool:
    """Whether that failed. The toolkit's own refresh ran when the module was loaded, before there were instances."""
    program = shutil.which("nvidia-ctk")
    if program is None:
        return False
    environment = {"NVIDIA_CTK_CDI_OUTPUT_FILE_PATH": CDI_SPECIFICATION, **os.environ}
    return subprocess.run([program, "cdi", "generate"], env=environment, check=False).returncode != 0


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    raise SystemExit(main(sys.argv[1]))
