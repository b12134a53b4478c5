# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A binding with the functions of pynvml over a list of boards, with the real binding's error classes."""

from __future__ import annotations

import types
import typing as t

import pynvml


def error(code: int) -> pynvml.NVMLError:
    return pynvml.NVMLError(code)


def board(address: str, **answers: t.Any) -> dict[str, t.Any]:
    """An H100 by what each function answers; an exception is raised, and a missing answer is NOT_SUPPORTED."""
    return {
        "nvmlDeviceGetUUID": f"GPU-of-{address}",
        "nvmlDeviceGetPciInfo": types.SimpleNamespace(busId=f"0000{address.upper()}"),
        "nvmlDeviceGetMinorNumber": 0,
        "nvmlDeviceGetName": "NVIDIA H100 80GB HBM3",
        "nvmlDeviceGetArchitecture": 9,
        "nvmlDeviceGetMemoryInfo": types.SimpleNamespace(total=81559 * 2**20),
        "nvmlDeviceGetSerial": "1650923000123",
        "nvmlDeviceGetMigMode": [0, 0],
        "nvmlDeviceGetComputeMode": 0,
        "nvmlDeviceGetPersistenceMode": 1,
        "nvmlDeviceGetEccMode": [1, 0],
        "nvmlDeviceGetComputeRunningProcesses": [],
        "nvmlDeviceGetGraphicsRunningProcesses": [],
        "nvmlDeviceGetMPSComputeRunningProcesses": [],
        **answers,
    }


class FakeNvml:
    NVMLError = pynvml.NVMLError
    NVMLLibraryMismatchError = pynvml.NVMLLibraryMismatchError

    def __init__(self, *boards: dict[str, t.Any] | Exception, init: Exception | None = None) -> None:
        self.boards = boards
        self.init = init
        self.open = 0

    def nvmlInit(self) -> None:
        if self.init:
            raise self.init
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.178.04"

    def nvmlSystemGetNVMLVersion(self) -> str:
        return "13.580.178.04"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 13000

    def nvmlDeviceGetCount(self) -> int:
        return len(self.boards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> dict[str, t.Any]:
        board = self.boards[index]
        if isinstance(board, Exception):
            raise board
        return board

    def __getattr__(self, name: str) -> t.Callable[[dict[str, t.Any]], t.Any]:
        if not name.startswith("nvmlDevice"):
            raise AttributeError(name)

        def answer(handle: dict[str, t.Any]) -> t.Any:
            value = handle.get(name, error(pynvml.NVML_ERROR_NOT_SUPPORTED))
            if isinstance(value, Exception):
                raise value
            return value

        return answer
