# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""NVML, NVIDIA's management library: the only file that imports its binding `pynvml`."""

from __future__ import annotations

import contextlib
import sys
import typing as t
from dataclasses import dataclass, field

from . import _python
from ._errors import KubegpuError
from ._mig.model import GpuInstance
from ._pci import normal_address

# Any object with the functions of nvidia-ml-py's module pynvml.
Binding = t.Any

GENERATIONS: dict[int | None, str] = {
    2: "kepler",
    3: "maxwell",
    4: "pascal",
    5: "volta",
    6: "turing",
    7: "ampere",
    8: "ada",
    9: "hopper",
    10: "blackwell",
    13: "rubin",
}
COMPUTE_MODES: dict[int | None, str] = {0: "default", 2: "prohibited", 3: "exclusive_process"}
MIG_MODES: dict[int | None, str] = {0: "disabled", 1: "enabled"}

# Kind of process, and the word in the names of the functions that list it.
PROCESS_LISTS = {"compute": "Compute", "graphics": "Graphics", "mps": "MPSCompute"}

# nvmlReturn_t of nvml.h: name, what it means here and what to do about it.
ERRORS: dict[int, tuple[str, str]] = {
    1: ("UNINITIALIZED", "NVML was used before it was initialised; this is a mistake of the caller."),
    2: ("INVALID_ARGUMENT", "This board does not know the profile, placement or setting; look at what it offers."),
    3: ("NOT_SUPPORTED", "This board, or its present mode, does not support the request."),
    4: ("NO_PERMISSION", "The request needs root; run the task with become."),
    6: ("NOT_FOUND", "The GPU or the instance is not there (any more); read the state again."),
    7: ("INSUFFICIENT_SIZE", "The answer changed while it was read; try again."),
    8: ("INSUFFICIENT_POWER", "A power cable of the board is not connected."),
    9: (
        "DRIVER_NOT_LOADED",
        "The kernel module nvidia is not loaded: `modprobe nvidia`; the kernel log says why if that fails.",
    ),
    10: ("TIMEOUT", "The driver did not answer in time; look for NVRM lines in the kernel log."),
    11: ("IRQ_ISSUE", "The kernel has an interrupt problem with the board; look for NVRM lines in the kernel log."),
    12: ("LIBRARY_NOT_FOUND", "libnvidia-ml.so.1 is missing or cannot be loaded; install the driver's libraries."),
    13: ("FUNCTION_NOT_FOUND", "The installed driver is too old to have this function."),
    14: ("CORRUPTED_INFOROM", "The board's InfoROM is damaged; NVIDIA's support has to repair or replace the board."),
    15: (
        "GPU_IS_LOST",
        "The GPU has fallen off the bus (Xid 79 in the kernel log): power-cycle the host; "
        "if it happens again, check power, cooling and seat of the board.",
    ),
    16: ("RESET_REQUIRED", "The GPU waits for a reset; in a virtual machine, for a reboot of the guest."),
    17: ("OPERATING_SYSTEM", "The operating system, such as a cgroup's device rules, blocks the GPU."),
    18: (
        "LIB_RM_VERSION_MISMATCH",
        "The kernel runs another driver version than the installed library: reload the module or reboot.",
    ),
    19: ("IN_USE", "The GPU or the instance has clients or compute instances; end them first."),
    20: ("MEMORY", "The host has too little memory for the request."),
    21: ("NO_DATA", "The board has no data for this request."),
    23: ("INSUFFICIENT_RESOURCES", "No free placement for an instance of this size."),
    25: ("ARGUMENT_VERSION_MISMATCH", "The installed driver is too old for this request."),
    27: ("NOT_READY", "The system is not ready; wait and try again."),
    28: ("GPU_NOT_FOUND", "The driver found no GPU that it can drive; look for NVRM lines in the kernel log."),
    29: ("INVALID_STATE", "The GPU is in a state that does not allow the request; read the state again."),
    30: ("RESET_TYPE_NOT_SUPPORTED", "This board cannot be reset in this way; reboot the host."),
    999: ("UNKNOWN", "The driver failed without a reason; look for NVRM and Xid lines in the kernel log."),
}

# One attribute without an answer; the GPU itself is well.
UNANSWERED = frozenset({3, 4, 7, 13, 21, 25})

NO_PERMISSION, FUNCTION_NOT_FOUND, RESET_REQUIRED, IN_USE = 4, 13, 16, 19

# What nvml.h calls an instance id of a process that is in none.
NO_INSTANCE = 0xFFFFFFFF


@dataclass(frozen=True)
class Failure:
    error: str
    code: int
    message: str


class NvmlError(KubegpuError):
    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.error}. {failure.message}", error=failure.error, code=failure.code)
        self.failure = failure


class BindingMissing(KubegpuError):
    """There is no usable pynvml."""


@dataclass(frozen=True)
class Versions:
    driver: str | None
    library: str | None
    cuda: str | None


@dataclass(frozen=True)
class GpuProcess:
    pid: int
    type: str
    gpu_instance: int | None = None
    compute_instance: int | None = None


@dataclass
class Gpu:
    """What NVML says about one GPU now; None is "no answer". A lost GPU has an error and whatever it said before."""

    index: int
    uuid: str | None = None
    pci_address: str | None = None
    minor: int | None = None
    name: str | None = None
    generation: str | None = None
    memory_mib: int | None = None
    serial: str | None = None
    mig_current: str | None = None
    mig_pending: str | None = None
    mig_instances: tuple[GpuInstance, ...] | None = None
    compute_mode: str | None = None
    persistence: bool | None = None
    ecc_current: bool | None = None
    ecc_pending: bool | None = None
    processes: list[GpuProcess] | None = field(default_factory=list)
    error: Failure | None = None


def explain(code: int) -> Failure:
    name, message = ERRORS.get(code, (f"ERROR_{code}", "NVML failed with an error this collection does not know."))
    return Failure(name, code, message)


def load_binding() -> Binding:
    """Imports pynvml of nvidia-ml-py; raises BindingMissing with what is there instead."""
    _python.use()
    try:
        import pynvml
    except ImportError:
        raise BindingMissing(
            f"The Python module pynvml of nvidia-ml-py is not installed for {sys.executable} "
            f"(nor in {_python.DIRECTORY}); the role kubegpu.nvidia._nvml delivers it."
        ) from None
    except Exception as exc:  # the host's module is somebody else's code and may be broken in any way
        raise BindingMissing(f"The Python module pynvml cannot be imported: {exc!r}.") from exc
    return check_binding(pynvml)


def check_binding(binding: Binding) -> Binding:
    # The abandoned project `pynvml` is a package, nvidia-ml-py one file. Profiles with names came with driver 515.
    if hasattr(binding, "__path__") or not hasattr(binding, "nvmlDeviceGetGpuInstanceProfileInfoV"):
        raise BindingMissing(
            f"{getattr(binding, '__file__', 'pynvml')} is not the pynvml of nvidia-ml-py, or one that is too old; "
            "the role kubegpu.nvidia._nvml delivers the right one."
        )
    return binding


@contextlib.contextmanager
def session(binding: Binding) -> t.Iterator[Session]:
    """Raises NvmlError when NVML cannot start."""
    _call(binding, binding.nvmlInit)
    try:
        yield Session(binding)
    finally:
        with contextlib.suppress(NvmlError):
            _call(binding, binding.nvmlShutdown)


class Session:
    """A running NVML. Use it through session()."""

    def __init__(self, binding: Binding) -> None:
        self.binding = binding

    def versions(self) -> Versions:
        cuda = self.ask("nvmlSystemGetCudaDriverVersion_v2")
        return Versions(
            driver=self.ask("nvmlSystemGetDriverVersion"),
            library=self.ask("nvmlSystemGetNVMLVersion"),
            cuda=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
        )

    def gpus(self) -> list[Gpu]:
        """All GPUs by index; one that fails keeps its place, so that no other is taken for it."""
        return [self._gpu(index) for index in range(self.call("nvmlDeviceGetCount"))]

    def _gpu(self, index: int) -> Gpu:
        gpu = Gpu(index)
        try:
            self._read(gpu, self.call("nvmlDeviceGetHandleByIndex", index))
        except NvmlError as exc:
            gpu.error = exc.failure
            gpu.processes = None
        return gpu

    def _read(self, gpu: Gpu, handle: t.Any) -> None:
        # Names first: a GPU that is lost half-way can then still be told from the others.
        gpu.uuid = self.ask("nvmlDeviceGetUUID", handle)
        pci = self.ask("nvmlDeviceGetPciInfo", handle)
        gpu.pci_address = normal_address(_text(pci.busId)) if pci is not None else None
        gpu.minor = self.ask("nvmlDeviceGetMinorNumber", handle)
        gpu.name = self.ask("nvmlDeviceGetName", handle)
        gpu.generation = GENERATIONS.get(self.ask("nvmlDeviceGetArchitecture", handle))
        memory = self.ask("nvmlDeviceGetMemoryInfo", handle)
        gpu.memory_mib = memory.total // 2**20 if memory is not None else None
        gpu.serial = self.ask("nvmlDeviceGetSerial", handle)
        current, pending = self.ask("nvmlDeviceGetMigMode", handle) or (None, None)
        gpu.mig_current, gpu.mig_pending = MIG_MODES.get(current), MIG_MODES.get(pending)
        gpu.compute_mode = COMPUTE_MODES.get(self.ask("nvmlDeviceGetComputeMode", handle))
        gpu.persistence = _boolean(self.ask("nvmlDeviceGetPersistenceMode", handle))
        current, pending = self.ask("nvmlDeviceGetEccMode", handle) or (None, None)
        gpu.ecc_current, gpu.ecc_pending = _boolean(current), _boolean(pending)
        gpu.processes = self.processes(handle)

    def processes(self, handle: t.Any) -> list[GpuProcess] | None:
        """Who uses the GPU; None when NVML cannot tell, which is not the same as nobody."""
        found: list[GpuProcess] = []
        for kind, word in PROCESS_LISTS.items():
            name = f"nvmlDeviceGet{word}RunningProcesses"
            try:
                processes = self.ask(name, handle)
            except getattr(self.binding, "NVMLLibraryMismatchError", ()):
                # The driver lacks the newest form of the call; the binding reports that outside its own hierarchy.
                processes = self.ask(f"{name}_v2", handle)
            if processes is not None:
                found += [_process(process, kind) for process in processes]
            elif kind == "compute":
                return None
        return sorted(found, key=lambda process: (process.pid, process.type, process.gpu_instance or 0))

    def ask(self, name: str, *arguments: t.Any) -> t.Any:
        """The answer, or None where this board, driver or binding has none."""
        try:
            return self.call(name, *arguments)
        except NvmlError as exc:
            if exc.failure.code in UNANSWERED:
                return None
            raise

    def call(self, name: str, *arguments: t.Any, **options: t.Any) -> t.Any:
        """Raises NvmlError; a function that the binding lacks is one that the driver lacks."""
        function = getattr(self.binding, name, None)
        if function is None:
            raise NvmlError(explain(FUNCTION_NOT_FOUND))
        return _call(self.binding, function, *arguments, **options)


def place_lost(gpus: list[Gpu], addresses: list[str]) -> None:
    """Gives GPUs that could not name themselves the PCI addresses that are left over, as far as there is no doubt.

    NVML numbers GPUs in the order of their addresses, so as many nameless ones as addresses left match in order.
    """
    nameless = [gpu for gpu in gpus if gpu.pci_address is None]
    left = sorted(set(addresses) - {gpu.pci_address for gpu in gpus if gpu.pci_address})
    if len(nameless) == len(left):
        for gpu, address in zip(nameless, left):
            gpu.pci_address = address


def _call(binding: Binding, function: t.Callable[..., t.Any], *arguments: t.Any, **options: t.Any) -> t.Any:
    try:
        return function(*arguments, **options)
    except binding.NVMLError as exc:
        raise NvmlError(explain(exc.value)) from exc


def _process(answer: t.Any, kind: str) -> GpuProcess:
    """Outside MIG an instance is the largest number, or missing in older structures."""
    ids = [getattr(answer, name, None) for name in ("gpuInstanceId", "computeInstanceId")]
    gpu_instance, compute_instance = (None if number in (None, NO_INSTANCE) else int(number) for number in ids)
    return GpuProcess(answer.pid, kind, gpu_instance, compute_instance)


def _boolean(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
