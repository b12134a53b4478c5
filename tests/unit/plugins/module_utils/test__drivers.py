# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils import _drivers
from ansible_collections.kubegpu.nvidia.plugins.module_utils._drivers import Driver, Loaded

OLD = "580.173.02"
NEW = "580.178.04"


def packages(library=None, module=None):
    found = {"libnvidia-ml1": f"{library}-1", "nvidia-kernel-open-dkms": f"{module}-1"}
    return {name: version for name, version in found.items() if not version.startswith("None")}


def driver(loaded=None, library=None, packages=None, nouveau=False, holders=()):
    return Driver(
        loaded=Loaded(loaded, "open") if loaded else None,
        library=library,
        packages={} if packages is None else packages,
        nouveau=nouveau,
        holders=list(holders),
    )


@pytest.mark.parametrize(
    ("found", "verdict", "words"),
    [
        (driver(NEW, NEW, packages(NEW, NEW)), "ok", NEW),
        (driver(NEW, NEW), "ok", NEW),  # preinstalled, not from packages
        (Driver(Loaded(NEW, "open"), NEW, None, False, []), "ok", NEW),
        (driver(), "absent", "No NVIDIA driver"),
        (driver(nouveau=True), "absent", "No NVIDIA driver"),
        (driver(packages={"nvidia-driver-pinning-580": "580.178.04-1", "firmware-nvidia-gsp": "x"}), "absent", "No"),
        (driver(None, NEW, packages(NEW, NEW)), "not_loaded", "modprobe"),
        (driver(None, NEW, packages(NEW, NEW), nouveau=True), "reboot", "nouveau"),
        (driver(OLD, NEW, packages(NEW, NEW)), "reload", OLD),
        (driver(NEW, OLD, packages(OLD, OLD)), "reload", NEW),  # a downgrade
        (driver(OLD, NEW, packages(NEW, NEW), holders=["python3 (pid 7)"]), "reboot", "python3 (pid 7)"),
        (Driver(Loaded(OLD, "open"), NEW, packages(NEW, NEW), False, None), "reboot", "could not be seen"),
        # The library was upgraded behind the modules' back.
        (driver(OLD, NEW, packages(NEW, OLD)), "mismatch", f"nvidia-kernel-open-dkms {OLD}"),
        # A library that no package brought.
        (driver(NEW, OLD, packages(NEW, NEW)), "mismatch", f"libnvidia-ml.so.1 {OLD}"),
        (driver(NEW, None, packages(None, NEW)), "mismatch", "without libnvidia-ml.so.1"),
        (driver(NEW), "mismatch", "neither"),  # removed while loaded
        (Driver(Loaded(None, None), NEW, packages(NEW, NEW), False, []), "unknown", "version"),
        (Driver(None, None, None, False, []), "unknown", "packages"),
    ],
)
def test_verdict(found, verdict, words):
    answer = _drivers.verdict(found, gpu_present=True)
    assert answer.verdict == verdict
    assert words in answer.reason


def test_without_a_gpu_nothing_has_to_be_done():
    assert _drivers.verdict(driver(), gpu_present=False).verdict == "absent"
    answer = _drivers.verdict(driver(None, NEW, packages(NEW, NEW), nouveau=True), gpu_present=False)
    assert answer.verdict == "not_loaded"
    assert "no GPU" in answer.reason


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("libnvidia-ml1", "580.178.04-1"),
        ("libnvidia-compute-580-server", "580.178.04-0ubuntu0.24.04.1"),
        ("nvidia-dkms-580-open", "580.178.04-0ubuntu1"),
        ("kmod-nvidia-open-dkms", "3:580.178.04-1.el9"),
        ("nvidia-driver-cuda-libs", "3:580.178.04-1.el9"),
        ("libnvidia-compute", "590.48.01-1ubuntu1"),
    ],
)
def test_packages_that_bear_the_drivers_version(name, text):
    found = _drivers.parts(driver(packages={name: text}))
    assert list(found) == [name] and found[name] in text


@pytest.mark.parametrize(
    "name", ["nvidia-container-toolkit", "libcuda1", "nvidia-driver-pinning-580", "firmware-nvidia-gsp"]
)
def test_other_packages_say_nothing_about_the_installed_driver(name):
    assert not _drivers.parts(driver(packages={name: "580.178.04-1"}))


@pytest.mark.parametrize(
    ("text", "version", "flavour"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\n"
            "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n",
            "550.54.14",
            "proprietary",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build  "
            "(dvs-builder@U22-I3-AE18-23-3)  Wed Aug 27 18:02:46 UTC 2025\n",
            "580.82.07",
            "open",
        ),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  595.91.07  Release Build\n", "595.91.07", "open"),
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  390.157  Wed Oct 12 09:19:07 UTC 2022\n",
            "390.157",
            "proprietary",
        ),
    ],
)
def test_version_of_the_loaded_module(text, version, flavour):
    assert _drivers.parse_loaded(text) == Loaded(version, flavour)


@pytest.fixture
def host(tmp_path):
    """Directory trees of a host; a path that is not given is missing, as on a host without a driver."""

    def build(files=(), library=None):
        for path, text in dict(files).items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(text if isinstance(text, bytes) else text.encode())
        if library:
            directory = tmp_path / "usr/lib/x86_64-linux-gnu"
            directory.mkdir(parents=True)
            (directory / library).touch()
            (directory / "libnvidia-ml.so.1").symlink_to(library)
        return _drivers.read(
            {}, proc=str(tmp_path / "proc"), sys_module=str(tmp_path / "sys/module"), root=str(tmp_path)
        )

    return build


def test_nothing(host):
    assert host() == Driver(None, None, {}, False, [])


def test_a_host_that_works(host):
    text = f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {NEW}  Release Build\n"
    found = host({"proc/driver/nvidia/version": text}, library=f"libnvidia-ml.so.{NEW}")
    assert found == Driver(Loaded(NEW, "open"), NEW, {}, False, [])


def test_the_kernel_tells_in_sys_when_proc_does_not(host):
    assert host({"sys/module/nvidia/version": f"{NEW}\n"}).loaded == Loaded(NEW, None)
    assert host({"sys/module/nouveau/version": ""}).nouveau


def test_modules_are_in_proc_when_they_are_not_in_sys(host):
    found = host({"proc/modules": "nouveau 2 0 - Live 0x0\nnvidia_uvm 1 0\n"})
    assert (found.nouveau, found.loaded) == (True, None)


def test_who_holds_a_module_that_has_to_be_replaced(host, tmp_path):
    def process(pid, name, device):
        directory = tmp_path / f"proc/{pid}/fd"
        directory.mkdir(parents=True)
        (directory / "3").symlink_to(device)
        (directory.parent / "comm").write_text(f"{name[:15]}\n")
        (directory.parent / "cmdline").write_text(f"/usr/bin/{name}\0--verbose\0")

    process(10, "python3", "/dev/nvidia0")
    process(11, "bash", "/dev/null")
    process(12, "nvidia-persistenced", "/dev/nvidiactl")  # restarted with the driver, so not in its way
    found = host(
        {
            "proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {OLD}  Thu\n",
            "sys/module/nvidia_drm/refcnt": "2\n",
            "sys/module/nvidia_fs/refcnt": "0\n",
        },
        library=f"libnvidia-ml.so.{NEW}",
    )
    assert found.holders == ["python3 (pid 10)", "kernel module nvidia_drm"]


def test_garbage_is_no_answer(host):
    garbage = b"\xff\xfe\x00\x01" * 10
    found = host({"proc/driver/nvidia/version": garbage, "proc/modules": garbage}, library="libnvidia-ml.so.1.what")
    assert found == Driver(None, None, {}, False, [])


def test_device_files(tmp_path):
    assert _drivers.devices(str(tmp_path / "missing")) == []
    (tmp_path / "nvidiactl").symlink_to("/dev/null")  # a character device without mknod
    assert _drivers.devices(str(tmp_path)) == ["nvidiactl"]
    (tmp_path / "nvidia-uvm").touch()
    assert _drivers.devices(str(tmp_path)) == ["nvidiactl"], "a plain file is what remains of a careless container"
    (tmp_path / "nvidia-uvm").unlink()
    (tmp_path / "nvidia-uvm").symlink_to("/dev/null")
    assert _drivers.devices(str(tmp_path)) == ["nvidiactl", "nvidia-uvm"]


def test_what_the_kernel_module_says_about_a_gpu():
    text = (
        "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-????????-????\nDevice Minor: \t 3\nBus Location: \t 0000:1a:00.0\n"
    )
    found = _drivers.parse_information(text)
    assert (found["Model"], found["Device Minor"]) == ("NVIDIA H100", "3")
    assert "GPU UUID" not in found
