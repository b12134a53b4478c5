# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import types

import pynvml
import pytest

from ansible_collections.kubegpu.nvidia.plugins.module_utils import _nvml, _python
from ansible_collections.kubegpu.nvidia.tests.unit.plugins.module_utils.fake_nvml import FakeNvml, board, error

A = "0000:1a:00.0"
B = "0000:1b:00.0"
C = "0000:1c:00.0"


def gpus(*boards):
    with _nvml.session(FakeNvml(*boards)) as session:
        return session.gpus()


def test_a_healthy_gpu_is_read_completely():
    (gpu,) = gpus(board(A))
    assert gpu == _nvml.Gpu(
        index=0,
        uuid=f"GPU-of-{A}",
        pci_address=A,
        minor=0,
        name="NVIDIA H100 80GB HBM3",
        generation="hopper",
        memory_mib=81559,
        serial="1650923000123",
        mig_current="disabled",
        mig_pending="disabled",
        compute_mode="default",
        persistence=True,
        ecc_current=True,
        ecc_pending=False,
        processes=[],
        error=None,
    )


def test_versions():
    with _nvml.session(FakeNvml()) as session:
        assert session.versions() == _nvml.Versions("580.178.04", "13.580.178.04", "13.0")


@pytest.mark.parametrize(
    ("function", "field"),
    [
        ("nvmlDeviceGetSerial", "serial"),
        ("nvmlDeviceGetMemoryInfo", "memory_mib"),  # a board that shares the host's memory
        ("nvmlDeviceGetMigMode", "mig_current"),
        ("nvmlDeviceGetEccMode", "ecc_pending"),
        ("nvmlDeviceGetComputeMode", "compute_mode"),
        ("nvmlDeviceGetArchitecture", "generation"),
        ("nvmlDeviceGetComputeRunningProcesses", "processes"),
    ],
)
@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND])
def test_an_attribute_without_an_answer_is_none_and_the_gpu_is_well(function, field, code):
    (gpu,) = gpus(board(A, **{function: error(code)}))
    assert getattr(gpu, field) is None
    assert gpu.error is None
    assert gpu.uuid == f"GPU-of-{A}"


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_UNKNOWN])
def test_a_lost_gpu_keeps_its_place_between_the_others(code):
    first, lost, last = gpus(board(A), error(code), board(C, nvmlDeviceGetMinorNumber=2))
    assert (first.index, lost.index, last.index) == (0, 1, 2)
    assert (first.error, last.error) == (None, None)
    assert last.minor == 2
    assert lost.error.code == code
    assert lost.processes is None, "nobody knows whether the lost GPU is in use"


def test_a_gpu_that_is_lost_while_it_is_read_keeps_what_it_said():
    (gpu,) = gpus(board(A, nvmlDeviceGetName=error(15)))
    assert gpu.pci_address == A
    assert gpu.error == _nvml.explain(15)


def test_processes_of_all_kinds():
    def process(pid):
        return types.SimpleNamespace(pid=pid)

    (gpu,) = gpus(
        board(
            A,
            nvmlDeviceGetComputeRunningProcesses=[process(20), process(10)],
            nvmlDeviceGetGraphicsRunningProcesses=[process(5)],
            nvmlDeviceGetMPSComputeRunningProcesses=[process(30)],
        )
    )
    assert [(each.pid, each.type) for each in gpu.processes] == [
        (5, "graphics"),
        (10, "compute"),
        (20, "compute"),
        (30, "mps"),
    ]


def test_an_older_driver_is_asked_with_the_older_call():
    mismatch = pynvml.NVMLLibraryMismatchError("too new")
    (gpu,) = gpus(
        board(
            A,
            nvmlDeviceGetComputeRunningProcesses=mismatch,
            nvmlDeviceGetComputeRunningProcesses_v2=[types.SimpleNamespace(pid=7)],
        )
    )
    assert [each.pid for each in gpu.processes] == [7]


def test_an_even_older_driver_leaves_the_users_unknown():
    mismatch = pynvml.NVMLLibraryMismatchError("too new")
    (gpu,) = gpus(
        board(
            A,
            nvmlDeviceGetComputeRunningProcesses=mismatch,
            nvmlDeviceGetComputeRunningProcesses_v2=error(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND),
        )
    )
    assert gpu.processes is None
    assert gpu.error is None


@pytest.mark.parametrize(
    ("code", "name", "advice"),
    [
        (9, "DRIVER_NOT_LOADED", "modprobe nvidia"),
        (12, "LIBRARY_NOT_FOUND", "libraries"),
        (18, "LIB_RM_VERSION_MISMATCH", "reboot"),
        (4711, "ERROR_4711", "does not know"),
    ],
)
def test_a_session_that_cannot_start_says_why(code, name, advice):
    with pytest.raises(_nvml.NvmlError) as caught, _nvml.session(FakeNvml(init=error(code))):
        pass
    assert caught.value.failure.error == name
    assert advice in caught.value.failure.message
    assert caught.value.details["code"] == code


def test_a_session_is_closed_after_an_exception():
    binding = FakeNvml()
    with pytest.raises(ZeroDivisionError), _nvml.session(binding):
        assert binding.open == 1
        raise ZeroDivisionError
    assert binding.open == 0


def test_every_error_of_the_binding_that_has_a_name_here_has_the_same_name():
    names = {
        getattr(pynvml, name): name[len("NVML_ERROR_") :] for name in dir(pynvml) if name.startswith("NVML_ERROR_")
    }
    assert {code: name for code, (name, _message) in _nvml.ERRORS.items()}.items() <= names.items()


@pytest.fixture
def search_only(monkeypatch, tmp_path):
    """Python finds modules in a directory of the test only, and has imported no pynvml."""
    monkeypatch.setattr(_python, "DIRECTORY", str(tmp_path / "ours"))
    monkeypatch.setattr("sys.path", [str(tmp_path / "host")])
    monkeypatch.delitem(__import__("sys").modules, "pynvml", raising=False)
    for name in ("ours", "host"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_no_binding(search_only):
    with pytest.raises(_nvml.BindingMissing, match=r"nvidia-ml-py is not installed.*role kubegpu.nvidia._nvml"):
        _nvml.load_binding()


def test_the_abandoned_project_of_the_same_name_is_refused(search_only):
    package = search_only / "host" / "pynvml"
    package.mkdir()
    (package / "__init__.py").write_text("def nvmlDeviceGetGpuInstanceProfileInfoV(handle): pass\n")
    with pytest.raises(_nvml.BindingMissing, match="is not the pynvml of nvidia-ml-py"):
        _nvml.load_binding()


def test_a_binding_that_is_too_old_is_refused(search_only):
    (search_only / "host" / "pynvml.py").write_text("def nvmlInit(): pass\n")
    with pytest.raises(_nvml.BindingMissing, match="one that is too old"):
        _nvml.load_binding()


def test_garbage_of_the_same_name_is_refused(search_only):
    (search_only / "host" / "pynvml.py").write_text("raise RuntimeError('surprise')\n")
    with pytest.raises(_nvml.BindingMissing, match="surprise"):
        _nvml.load_binding()


def test_ours_wins_over_the_hosts(search_only):
    (search_only / "host" / "pynvml.py").write_text("raise RuntimeError('surprise')\n")
    (search_only / "ours" / "pynvml.py").write_text("def nvmlDeviceGetGpuInstanceProfileInfoV(handle): pass\n")
    assert _nvml.load_binding().__file__ == str(search_only / "ours" / "pynvml.py")
