# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""The NVIDIA driver on this host: what the kernel runs, what is installed, and one verdict on both."""

from __future__ import annotations

import os
import re
import stat
import typing as t
from dataclasses import dataclass

from ._files import content, first_line
from ._processes import holding

# Where distributions and NVIDIA's packages put libraries; the dynamic loader takes the first that has the name.
LIBRARY_DIRECTORIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")
LIBRARY_SUBDIRECTORIES = ("", "nvidia/current", "nvidia")
LIBRARY = "libnvidia-ml.so.1"

# Packages that carry the library or the kernel modules and bear the driver's version: NVIDIA's CUDA repository and the
# archives of Debian, Ubuntu (with branch suffixes) and EL.
DRIVER_PACKAGE = re.compile(
    r"""^(
        libnvidia-ml1 | libnvidia-ml | libnvidia-compute(-\d+)?(-server)? | nvidia-driver-(cuda-libs|NVML)
        | nvidia-(kernel|kernel-open|open-kernel)-dkms | nvidia-dkms(-\d+)?(-server)?(-open)?
        | kmod-nvidia(-open|-latest)?(-dkms)?
    )$""",
    re.VERBOSE,
)
DRIVER_VERSION = re.compile(r"^(?:\d+:)?(\d{3,}(?:\.\d+)+)")

# "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 ...", or of the open modules
# "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build  (dvs-builder@...)  Wed Aug 27 ..."
LOADED = re.compile(r"(?P<open>Open )?Kernel Module(?: for \S+)?\s+(?P<version>\d+(?:\.\d+)+)")

# Belongs to the driver and is restarted with it, so it is in nobody's way.
OWN_DAEMONS = frozenset({"nvidia-persistenced"})


@dataclass(frozen=True)
class Loaded:
    """The module that the kernel runs; None where the kernel does not say."""

    version: str | None
    flavour: str | None


class Verdict(t.NamedTuple):
    verdict: str
    reason: str


@dataclass(frozen=True)
class Driver:
    loaded: Loaded | None
    library: str | None
    packages: dict[str, str] | None
    nouveau: bool
    holders: list[str] | None


def verdict(driver: Driver, *, gpu_present: bool) -> Verdict:
    """One word on the driver and why.

    ok          the kernel runs the version that is installed, and its library is there.
    absent      no library, no driver package, no module in the kernel.
    not_loaded  installed consistently, but the kernel has no nvidia module; loading it is enough.
    reload      the kernel runs another version than the one installed, and nothing holds it: unload, load.
    reboot      the same, but something holds the module or nobody could tell; or nouveau has the GPUs.
    mismatch    the installation contradicts itself (the library or a package has another version than the rest, or a
                part is missing), so neither a reload nor a reboot cures it: install the driver again.
    unknown     the version in the kernel or the installed packages could not be read.
    """
    installed = parts(driver)
    versions = set(installed.values())
    loaded = driver.loaded
    if loaded and loaded.version is None:
        return Verdict("unknown", "An nvidia module is in the kernel, but neither /proc nor /sys tells its version.")
    if len(versions) > 1:
        return Verdict(
            "mismatch",
            "The installed driver is in pieces of different versions ("
            + ", ".join(f"{what} {version}" for what, version in sorted(installed.items()))
            + "): install all of it in one version.",
        )
    if not versions:
        if loaded:
            return Verdict(
                "mismatch",
                f"The kernel runs driver {loaded.version}, but neither {LIBRARY} nor a driver package is installed.",
            )
        if driver.packages is None:
            return Verdict("unknown", "The packages could not be asked for, so a driver may or may not be installed.")
        return Verdict(
            "absent", "No NVIDIA driver is installed" + ("." if gpu_present else ", and there is no GPU for it.")
        )
    version = next(iter(versions))
    if driver.library is None:
        return Verdict("mismatch", f"Driver {version} is installed without {LIBRARY}: NVML and CUDA cannot work.")
    if loaded is None:
        if driver.nouveau and gpu_present:
            return Verdict(
                "reboot", f"Driver {version} is installed, but nouveau has the GPUs: blacklist nouveau and reboot."
            )
        advice = "load it with `modprobe nvidia`" if gpu_present else "there is no GPU that would need it"
        return Verdict("not_loaded", f"Driver {version} is installed, but its module is not in the kernel: {advice}.")
    if loaded.version == version:
        return Verdict("ok", f"Driver {version} is installed and loaded.")
    change = f"The kernel still runs driver {loaded.version}, installed is {version}"
    if driver.holders is None:
        return Verdict("reboot", f"{change}, and it could not be seen who uses it: reboot.")
    if driver.holders:
        holders = ", ".join(driver.holders)
        return Verdict("reboot", f"{change}; in use by {holders}: stop them and reload the module, or reboot.")
    return Verdict("reload", f"{change}; nothing uses it: unload and load the module.")


def parts(driver: Driver) -> dict[str, str]:
    """The driver's version by everything installed that bears it: the library, and packages."""
    found = {LIBRARY: driver.library} if driver.library else {}
    for name, text in (driver.packages or {}).items():
        match = DRIVER_VERSION.match(text)
        if match and DRIVER_PACKAGE.match(name):
            found[name] = match.group(1)
    return found


def parse_loaded(text: str) -> Loaded | None:
    """Reads /proc/driver/nvidia/version."""
    match = LOADED.search(text)
    return Loaded(match["version"], "open" if match["open"] else "proprietary") if match else None


def parse_information(text: str) -> dict[str, str]:
    """Reads /proc/driver/nvidia/gpus/<address>/information, where question marks stand for what is not known (yet)."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, _colon, value in pairs if value.strip() and "?" not in value}


def read(
    packages: dict[str, str] | None, *, proc: str = "/proc", sys_module: str = "/sys/module", root: str = "/"
) -> Driver:
    loaded = _read_loaded(proc, sys_module)
    library = _read_library(root)
    # Looking at every open file of the host is dear, and only matters when the module has to be replaced.
    replace = loaded is not None and loaded.version != library
    return Driver(
        loaded=loaded,
        library=library,
        packages=packages,
        nouveau=_in_kernel("nouveau", proc, sys_module),
        holders=_holders(proc, sys_module) if replace else [],
    )


def devices(directory: str = "/dev") -> list[str]:
    """Which of the files that every CUDA program opens are there; a driver loaded half-way has no nvidia-uvm."""
    return [name for name in ("nvidiactl", "nvidia-uvm") if _is_device(os.path.join(directory, name))]


def gpu_information(address: str, proc: str = "/proc") -> dict[str, str]:
    """What the kernel module, not NVML, says about a GPU: model, UUID, device minor."""
    return parse_information(content(f"{proc}/driver/nvidia/gpus/{address}/information") or "")


def _read_loaded(proc: str, sys_module: str) -> Loaded | None:
    loaded = parse_loaded(content(f"{proc}/driver/nvidia/version") or "")
    if loaded is None and _in_kernel("nvidia", proc, sys_module):
        return Loaded(first_line(f"{sys_module}/nvidia/version"), None)
    return loaded


def _in_kernel(module: str, proc: str, sys_module: str) -> bool:
    # A kernel without loadable modules has no /proc/modules.
    if os.path.isdir(f"{sys_module}/{module}"):
        return True
    return any(line.split(" ", 1)[0] == module for line in (content(f"{proc}/modules") or "").splitlines())


def _read_library(root: str) -> str | None:
    for directory in LIBRARY_DIRECTORIES:
        for subdirectory in LIBRARY_SUBDIRECTORIES:
            path = os.path.join(root, directory.lstrip("/"), subdirectory, LIBRARY)
            if os.path.exists(path):
                version = os.path.basename(os.path.realpath(path)).rpartition(".so.")[2]
                return version if DRIVER_VERSION.match(version) else None
    return None


def _is_device(path: str) -> bool:
    try:
        return stat.S_ISCHR(os.stat(path).st_mode)
    except OSError:
        return False


def _holders(proc: str, sys_module: str) -> list[str] | None:
    processes = holding("/dev/nvidia", proc)
    if processes is None:
        return None
    names = [f"{process.command} (pid {process.pid})" for process in processes if process.command not in OWN_DAEMONS]
    # A console or a display holds nvidia_drm from within the kernel.
    for module in ("nvidia_drm", "nvidia_peermem", "nvidia_fs", "gdrdrv"):
        if (first_line(f"{sys_module}/{module}/refcnt") or "0") != "0":
            names.append(f"kernel module {module}")
    return names
