# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""The CDI specification of this host's GPUs: what the toolkit makes of NVML now, and what the file says."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import typing as t

from ._commands import RunCommand
from ._errors import KubegpuError
from ._files import content
from ._toolkit import SEARCH_PATH

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible.module_utils.basic import AnsibleModule

# What the toolkit's own nvidia-cdi-refresh.service is told, so that both write the same.
SETTINGS = "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env"
PATH_SETTING = "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH"
PATH = "/var/run/cdi/nvidia.yaml"
MODE = 0o644

ERROR_LINES = 5


def bring_about(module: AnsibleModule, path: str | None) -> dict[str, t.Any]:
    """The module's result; of the module it takes check_mode, run_command, tmpdir and the writing of files."""
    told = settings(SETTINGS)
    path = path or told.get(PATH_SETTING) or PATH
    wanted = generate(module.run_command, path, told, module.tmpdir)
    found = {file: _read(file) for file in wanted}
    differing = [file for file in wanted if found[file] != wanted[file] or _mode(file) != MODE]
    if not module.check_mode:
        for file in differing:
            _write(module, file, wanted[file])
    before, after = devices(found[path]), devices(wanted[path])
    return {
        "changed": bool(differing),
        "path": path,
        "stale": bool(differing),
        "devices_differ": before != after,
        "devices": after,
        "diff": {
            "before_header": path,
            "after_header": path,
            "before": _listed(before),
            "after": _listed(after) + ("(the same devices, described anew)\n" if differing and before == after else ""),
        },
    }


def settings(path: str) -> dict[str, str]:
    """The lines NAME=value of systemd's form; quotes around a value do not belong to it."""
    lines = [line.strip() for line in (content(path) or "").splitlines()]
    pairs = [line.partition("=") for line in lines if "=" in line and line[0] not in "#;"]
    return {name.strip(): re.sub(r"""^(["'])(.*)\1$""", r"\2", value.strip()) for name, _equals, value in pairs}


def generate(run_command: RunCommand, path: str, environment: t.Mapping[str, str], scratch: str) -> dict[str, bytes]:
    """Contents by path. Boards whose memory is coherent with the host's get a second file beside the first."""
    program = shutil.which("nvidia-ctk", path=SEARCH_PATH)
    if program is None:
        raise KubegpuError(
            f"There is no nvidia-ctk on this host (in {SEARCH_PATH}), which writes the CDI specification. The role"
            " container_toolkit brings it."
        )
    if not path.endswith((".yaml", ".json")):
        raise KubegpuError(f"The CDI specification cannot be {path}: container runtimes read only *.yaml and *.json.")
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        rc, _out, err = run_command(
            [program, "cdi", "generate", "--output", os.path.join(directory, os.path.basename(path))],
            environ_update={"PATH": SEARCH_PATH, **environment},
        )
        if rc:
            said = "\n".join([line for line in err.splitlines() if line.strip()][-ERROR_LINES:])
            raise KubegpuError(
                f"nvidia-ctk cdi generate ended with {rc}; {path} stays as it is. It needs an answer from every GPU of"
                f" the host, and kubegpu.nvidia.gpu_facts tells which one gives none. It said:\n{said}"
            )
        files = {name: _read(os.path.join(directory, name)) for name in sorted(os.listdir(directory))}
    return {os.path.join(os.path.dirname(path), name): text for name, text in files.items() if text is not None}


def devices(specification: bytes | None) -> list[str]:
    """Names of the devices in the file's order. A node need not have a reader of YAML, and nothing else is a `name`."""
    return re.findall(r'\bname"?: *"?([\w.:-]+)', (specification or b"").decode(errors="replace"))


def _listed(names: t.Iterable[str]) -> str:
    return "".join(f"{name}\n" for name in names)


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _mode(path: str) -> int | None:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return None


def _write(module: AnsibleModule, path: str, text: bytes) -> None:
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=module.tmpdir)
    with os.fdopen(handle, "wb") as file:
        file.write(text)
    os.chmod(temporary, MODE)
    module.atomic_move(temporary, path)
    module.set_mode_if_different(path, MODE, False)
