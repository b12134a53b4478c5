# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils import _drivers, _facts, _host, _nvml, _packages, _pci
from ansible_collections.kubegpu.nvidia.plugins.module_utils._boards import board as board_of
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils.fake_nvml import FakeNvml, board, error

A = "0000:1a:00.0"
B = "0000:1b:00.0"
C = "0000:1c:00.0"
VERSION = "580.178.04"

read_nvml = _facts.read_nvml


def function(address, device_id="2330", driver="nvidia", kind="gpu", virtual_function=False):
    return _pci.PciFunction(
        address=address,
        vendor_id="10de",
        device_id=device_id,
        subsystem_vendor_id=None,
        subsystem_device_id=None,
        class_="0302",
        kind=kind,
        board=board_of(device_id),
        driver=driver,
        virtual_function=virtual_function,
    )


def read(functions, binding, proc="/nonexistent", reasons=None):
    reasons = [] if reasons is None else reasons
    facts = read_nvml(functions, reasons, lambda: binding, proc)
    return facts["nvml"], facts["gpus"], " ".join(reasons)


def test_no_gpu_no_nvml():
    def never():
        raise AssertionError("NVML is not needed")

    facts = read_nvml([], [], never)
    assert (facts["nvml"]["status"], facts["gpus"], facts["missing"]) == ("not_needed", [], [])


def test_a_host_that_works(tmp_path):
    nvml, gpus, reason = read([function(A)], FakeNvml(board(A)))
    assert nvml == {
        "status": "ok",
        "error": None,
        "code": None,
        "message": "",
        "driver_version": VERSION,
        "library_version": f"13.{VERSION}",
        "cuda_version": "13.0",
    }
    assert reason == ""
    assert gpus[0]["uuid"] == f"GPU-of-{A}"
    assert gpus[0]["mig"] == {"current": "disabled", "pending": "disabled", "instances": None}
    assert gpus[0]["ecc"] == {"current": True, "pending": False}
    assert gpus[0]["error"] is None


def test_a_binding_that_is_missing():
    def missing():
        raise _nvml.BindingMissing("not there")

    reasons = ["The driver is not loaded."]
    facts = read_nvml([function(A)], reasons, missing)
    nvml = facts["nvml"]
    assert (nvml["status"], nvml["code"], nvml["message"]) == ("binding_missing", None, "not there")
    assert (facts["gpus"], facts["missing"]) == ([], []), "who cannot be asked misses nothing"
    assert reasons[1:] == ["not there"], "whatever the driver's fault, the binding has to be installed as well"


def test_library_and_module_of_two_versions():
    nvml, gpus, reason = read([function(A)], FakeNvml(init=error(18)))
    assert (nvml["status"], nvml["error"], nvml["code"]) == ("error", "LIB_RM_VERSION_MISMATCH", 18)
    assert gpus == []
    assert reason == nvml["message"]


def test_a_fault_of_the_driver_is_told_once():
    reasons = ["The kernel still runs driver 580.173.02."]
    read([function(A)], FakeNvml(init=error(18)), reasons=reasons)
    assert len(reasons) == 1


def test_one_gpu_is_lost(tmp_path):
    information = tmp_path / "driver/nvidia/gpus" / B / "information"
    information.parent.mkdir(parents=True)
    information.write_text("Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-b\nDevice Minor: \t 1\n")
    nvml, gpus, reason = read(
        [function(A), function(B), function(C)], FakeNvml(board(A), error(15), board(C)), proc=str(tmp_path)
    )
    assert nvml["status"] == "ok"
    assert [(gpu["index"], gpu["pci_address"]) for gpu in gpus] == [(0, A), (1, B), (2, C)]
    lost = gpus[1]
    assert (lost["uuid"], lost["minor"], lost["generation"]) == ("GPU-b", 1, "hopper")
    assert (lost["error"]["error"], lost["error"]["code"]) == ("GPU_IS_LOST", 15)
    assert lost["processes"] is None
    assert reason.startswith(f"GPU {B}: The GPU has fallen off the bus")


def test_a_lost_gpu_that_could_be_one_of_two_has_no_address():
    _nvml_fact, gpus, reason = read([function(A), function(B), function(C)], FakeNvml(board(A), error(15)))
    assert gpus[1]["pci_address"] is None
    assert f"{B}, {C}" in reason


@pytest.mark.parametrize(
    ("device_ids", "names"),
    [
        (["1eb8", "1eb8"], ["NVIDIA H100 80GB HBM3", "TU104 [Tesla T4]"]),
        (["1eb8", "ffff"], ["NVIDIA H100 80GB HBM3", "unknown GPU"]),
        (["1eb8", "1eb8", "2330"], ["NVIDIA H100 80GB HBM3", "unknown GPU"]),  # one of two, nobody knows which
    ],
)
def test_every_gpu_has_a_name(device_ids, names):
    functions = [function(address, device_id) for address, device_id in zip([A, B, C], device_ids)]
    _nvml_fact, gpus, _reason = read(functions, FakeNvml(board(A), error(15)))
    assert [gpu["name"] for gpu in gpus] == names


def test_a_gpu_that_the_driver_does_not_show():
    reasons = []
    facts = read_nvml([function(A), function(B)], reasons, lambda: FakeNvml(board(A)))
    assert len(facts["gpus"]) == 1
    assert facts["missing"] == [B]
    assert reasons[0].startswith(f"NVML does not show the GPU at {B}")


def test_a_gpu_that_is_lost_is_not_missing():
    facts = read_nvml([function(A), function(B)], [], lambda: FakeNvml(board(A), error(15)))
    assert facts["missing"] == []


def test_boards_of_two_kinds():
    t4 = board(
        B,
        nvmlDeviceGetArchitecture=6,
        nvmlDeviceGetMigMode=error(3),
        nvmlDeviceGetName="Tesla T4",
        nvmlDeviceGetSerial=error(3),
    )
    _nvml_fact, gpus, reason = read([function(A), function(B, "1eb8")], FakeNvml(board(A), t4))
    assert [gpu["generation"] for gpu in gpus] == ["hopper", "turing"]
    assert gpus[1]["mig"] == {"current": None, "pending": None, "instances": None}
    assert reason == ""


DRIVERS = {"dkms", "kmod-nvidia-open-dkms", "libcuda1", "libnvidia-ml1", "linux-headers-6.12.57+deb13-amd64"}
PACKAGES = {*DRIVERS, "bash", "dkms-doc", "linux-image-amd64", "libnvidia-container1", "nvidia-container-toolkit"}


@pytest.fixture
def host(monkeypatch):
    """A host by its PCI functions, driver and NVML; nothing of the machine that runs the test."""

    def build(functions, driver=None, binding=None):
        driver = driver or _drivers.Driver(_drivers.Loaded(VERSION, "open"), VERSION, {}, False, [])
        monkeypatch.setattr(_pci, "scan", lambda: functions)
        monkeypatch.setattr(_drivers, "read", lambda packages: driver)
        monkeypatch.setattr(
            _packages, "read", lambda run_command: _packages.Packages(dict.fromkeys(PACKAGES, "1.20.2-1"), True)
        )
        monkeypatch.setattr(_drivers, "devices", lambda: ["nvidiactl"])
        monkeypatch.setattr(
            _facts, "read_nvml", lambda usable, reasons: read_nvml(usable, reasons, lambda: binding, "/nonexistent")
        )
        monkeypatch.setattr(_host, "facts", lambda: {"hostname": "gpu-a"})
        monkeypatch.setattr(_facts, "find_daemons", lambda run_command: [])

    return build


def gather(*parts):
    return _facts.gather(None, parts or _facts.PARTS)


def test_everything(host):
    host([function(A)], binding=FakeNvml(board(A)))
    facts = gather()
    assert set(facts) == {
        "present",
        "reason",
        "host",
        "pci",
        "driver",
        "nvml",
        "gpus",
        "missing",
        "runtimes",
        "toolkit",
    }
    assert (facts["present"], facts["reason"]) == (True, "")
    assert facts["driver"]["verdict"] == "ok"
    assert set(facts["driver"]["packages"]) == DRIVERS
    assert facts["driver"]["devices"] == ["nvidiactl"]
    assert facts["toolkit"]["version"] == "1.20.2"
    assert set(facts["toolkit"]["packages"]) == {"libnvidia-container1", "nvidia-container-toolkit"}
    assert facts["host"]["packages_interrupted"] is True


@pytest.mark.parametrize(
    ("part", "keys"),
    [
        ("host", {"host"}),
        ("pci", {"pci"}),
        ("driver", {"driver"}),
        ("nvml", {"nvml", "gpus", "missing"}),
        ("runtimes", {"runtimes"}),
        ("toolkit", {"toolkit"}),
    ],
)
def test_only_what_was_asked_for(host, part, keys):
    host([function(A)], binding=FakeNvml(board(A)))
    assert set(gather(part)) == {"present", "reason"} | keys


def test_no_gpu(host):
    host([function(A, kind="audio")], _drivers.Driver(None, None, {}, False, []))
    facts = gather()
    assert (facts["present"], facts["reason"]) == (False, "This host has no NVIDIA GPU.")
    assert (facts["driver"]["verdict"], facts["nvml"]["status"]) == ("absent", "not_needed")


def test_no_driver(host):
    host([function(A, driver=None)], _drivers.Driver(None, None, {}, False, []), FakeNvml(init=error(12)))
    facts = gather()
    assert facts["present"]
    assert facts["reason"] == "No NVIDIA driver is installed."
    assert facts["nvml"]["error"] == "LIBRARY_NOT_FOUND"


@pytest.mark.parametrize("given", [{"driver": "vfio-pci"}, {"virtual_function": True}])
def test_gpus_that_are_not_for_this_hosts_driver(host, given):
    host([function(A, **given)])
    facts = gather()
    assert facts["present"]
    assert "virtual machines" in facts["reason"]
    assert (facts["nvml"]["status"], facts["gpus"]) == ("not_needed", [])
    assert [entry["usable"] for entry in facts["pci"]] == [False]


def test_a_gpu_given_to_a_virtual_machine_is_not_missed(host):
    host([function(A), function(B, driver="vfio-pci")], binding=FakeNvml(board(A)))
    facts = gather()
    assert (facts["reason"], facts["missing"]) == ("", [])
    assert [entry["usable"] for entry in facts["pci"]] == [True, False]


def test_no_pci_bus(monkeypatch):
    def scan():
        raise FileNotFoundError(2, "No such file or directory", "/sys/bus/pci/devices")

    monkeypatch.setattr(_pci, "scan", scan)
    facts = gather("pci")
    assert (facts["present"], facts["pci"]) == (False, [])
    assert "/sys/bus/pci/devices" in facts["reason"]
