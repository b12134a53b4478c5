# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One machine: made, started, rebooted, removed."""

from __future__ import annotations

import resource
import shutil
import sys
from pathlib import Path

from ..command import built, run, say, wait_for
from ..config import SOURCE, Node
from . import first_boot, network
from .podman import LABEL, exists, podman, podman_command

# Directories that need a real file system below them, because overlayfs does not stack.
VOLUMES = {"containerd": "/var/lib/containerd", "kubelet": "/var/lib/kubelet"}


def ensure(node: Node, programs: Path) -> None:
    """Makes and starts the machine if it is not there or not running."""
    if exists("container", node.name) and _is_lost(node):
        remove(node)
    if not exists("container", node.name):
        _create(node, programs)
    if podman("container", "inspect", "--format", "{{.State.Running}}", node.name).strip() != "true":
        say(f"starting machine {node.name} ({node.address})")
        podman("start", node.name)


def restart(node: Node) -> None:
    """An orderly reboot."""
    podman("restart", "--time", "30", node.name)
    wait_until_booted(node)


def remove(node: Node) -> None:
    """Pulls the plug and scraps the machine, disks and boards."""
    if exists("container", node.name):
        podman("rm", "--force", "--time", "0", node.name)
    for volume in _volumes(node):
        if exists("volume", volume):
            podman("volume", "rm", volume)
    shutil.rmtree(node.hardware, ignore_errors=True)


def wait_until_booted(node: Node) -> None:
    def booted() -> bool:
        state = podman_command("exec", node.name, "systemctl", "is-system-running").call().stdout.strip()
        return state in ("running", "degraded")

    wait_for(f"{node.name} to boot", 60, booted, f"See `podman exec {node.name} systemctl list-jobs`.")
    failed = podman("exec", node.name, "systemctl", "list-units", "--failed", "--plain", "--no-legend")
    if failed:
        say(f"failed units on {node.name}:\n{failed.rstrip()}")


def boot_id(node: Node) -> str:
    """Names the current boot; another one has another."""
    return podman("exec", node.name, "cat", "/proc/sys/kernel/random/boot_id").strip()


def plug_boards(node: Node, boards: tuple[str, ...]) -> None:
    """Puts boards into the machine's slots, instead of those that are there; "-" leaves a slot empty."""
    run(sys.executable, SOURCE / "simgpu" / "hardware.py", node.hardware, "--node", node.name, *boards)


def _is_lost(node: Node) -> bool:
    """Whether the machine's processes were ended past podman, which then can neither stop nor start it."""
    status, pid = podman("container", "inspect", "--format", "{{.State.Status}} {{.State.Pid}}", node.name).split()
    return status == "stopping" or (status == "running" and not Path("/proc", pid).exists())


def _create(node: Node, programs: Path) -> None:
    image = built(SOURCE / "machines" / "image.sh", node.image)
    tag = f"localhost/kubegpu-node-{node.image}:{image.name}"
    if not exists("image", tag):
        say(f"importing the image of {node.image} into podman")
        podman("import", "--quiet", image / "root.tar", tag)
    if not node.hardware.exists():
        plug_boards(node, node.boards)
    first_boot.write(node, (image / "codename").read_text().strip())
    for volume in _volumes(node):
        if not exists("volume", volume):
            podman("volume", "create", "--label", LABEL, volume)

    mounts = [
        *(f"{volume}:{path}" for volume, path in _volumes(node).items()),
        f"{programs}:/opt/kubernetes/bin:ro",
        f"{node.first_boot}:/opt/first-boot:ro",
        f"{node.hardware}:/var/lib/simgpu/hardware:ro",
        # Writable, because loading a driver makes links there.
        f"{node.hardware}/pci:/sys/bus/pci/devices",
    ]
    # No more than this machine allows us: raising a limit takes a capability that we may not have.
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    podman(
        "create",
        *("--name", node.name, "--hostname", node.name, "--label", LABEL),
        *("--network", network.NAME, "--ip", node.address),
        # systemd with a cgroup tree of its own, as in a machine; podman's --systemd breaks containers inside.
        *("--privileged", "--systemd=false", "--env", "container=podman", "--cgroupns=private"),
        *("--tmpfs", "/run", "--tmpfs", "/run/lock", "--tmpfs", "/tmp", "--stop-signal=SIGRTMIN+3"),
        *("--ulimit", f"nofile={files}:{files}", "--ulimit", "nproc=1024:1024"),
        # A machine that reboots from inside comes back.
        "--restart=always",
        *(word for mount in mounts for word in ("--volume", mount)),
        tag,
        "/usr/local/sbin/power-on",
    )


def _volumes(node: Node) -> dict[str, str]:
    return {f"kubegpu-{node.name}-{name}": path for name, path in VOLUMES.items()}
