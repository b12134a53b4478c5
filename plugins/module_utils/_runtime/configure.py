# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Brings one containerd to the wanted configuration and says whether it must be restarted."""

from __future__ import annotations

import os
import re
import tempfile
import typing as t

from .._errors import KubegpuError
from .containerd import DIALECT, HANDLER, Parser, Wanted, make_plan
from .health import restart_reason, verify
from .imports import read_text
from .toml_text import set_top_level

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible.module_utils.basic import AnsibleModule

    from .containerd import Plan
    from .daemons import Daemon

CDI_MINIMUM = (1, 7, 16)  # the first to read CDI specifications of version 0.7.0, which the toolkit writes since 1.19.1
ENVVAR_KEY = "accept-nvidia-visible-devices-envvar-when-unprivileged"


def choose(daemons: t.Sequence[Daemon]) -> Daemon:
    if not daemons:
        raise KubegpuError(
            "No container runtime was found: no containerd runs, and there is no /usr/bin/containerd. "
            "Install the node's runtime first."
        )
    if len(daemons) > 1:
        found = ", ".join(
            f"pid {daemon.pid} ({daemon.binary}, {daemon.config_path}, {daemon.unit})" for daemon in daemons
        )
        raise KubegpuError(
            f"More than one containerd runs on this node, and it cannot be told which serves the kubelet: {found}."
        )
    return daemons[0]


def configure(module: AnsibleModule, daemon: Daemon, wanted: Wanted, toolkit_config: str) -> dict[str, t.Any]:
    """Touches of the module: check_mode, run_command, atomic_move and set_mode_if_different."""
    _check_cdi(daemon, wanted)
    if not module.check_mode and not os.access(wanted.binary, os.X_OK):
        raise KubegpuError(
            f"{wanted.binary} does not exist or cannot be executed: install the package nvidia-container-toolkit first."
        )
    with tempfile.TemporaryDirectory() as scratch:
        parser = Parser(module.run_command, daemon.binary, scratch)
        plan = make_plan(daemon.config_path, wanted, parser)
    # The toolkit's file first: from the moment that pods can ask for the handler, its answer is the safe one.
    texts = {toolkit_config: _toolkit_texts(toolkit_config, module.check_mode), **plan.texts}
    changes = {path: pair for path, pair in texts.items() if pair[0] != pair[1]}
    mode = _mode(plan)
    mode_changed = False
    # Tightened before the text is replaced, since atomic_move keeps the mode of what was there, and loosened after.
    if os.path.exists(plan.drop_in):
        mode_changed = module.set_mode_if_different(plan.drop_in, mode & os.stat(plan.drop_in).st_mode, mode_changed)
    if changes and not module.check_mode:
        _write(module, {path: after for path, (_before, after) in changes.items()}, mode, daemon.config_path, parser)
    if os.path.exists(plan.drop_in):
        mode_changed = module.set_mode_if_different(plan.drop_in, mode, mode_changed)

    reason = restart_reason(daemon, [*plan.files, *plan.directories])
    pending = [path for path in plan.texts if path in changes]
    if module.check_mode and pending and not reason:
        reason = f"{', '.join(pending)} would change"
    verified, verify_reason = (False, reason) if reason else verify(module.run_command, daemon, HANDLER)
    return {
        "changed": bool(changes) or mode_changed,
        "restart_required": bool(reason),
        "runtimes": [
            {
                "name": daemon.name,
                "unit": daemon.unit,
                "version": daemon.version,
                "dialect": DIALECT,
                "config_path": daemon.config_path,
                "drop_in": plan.drop_in,
                "restart_required": bool(reason),
                "restart_reason": reason,
                "verified": verified,
                "verify_reason": verify_reason,
            }
        ],
        "diff": [
            {"before_header": path, "after_header": path, "before": _masked(before or ""), "after": _masked(after)}
            for path, (before, after) in changes.items()
        ],
    }


def _check_cdi(daemon: Daemon, wanted: Wanted) -> None:
    if not wanted.cdi or daemon.version is None:
        return
    if tuple(int(part) for part in daemon.version.split(".")) < CDI_MINIMUM:
        raise KubegpuError(
            f"This node has containerd {daemon.version}; "
            f"injection by CDI needs {'.'.join(map(str, CDI_MINIMUM))} or later: upgrade containerd."
        )


def _toolkit_texts(path: str, check_mode: bool) -> tuple[str | None, str]:
    before = read_text(path)
    if before is None and not check_mode:
        raise KubegpuError(
            f"{path} does not exist, although the package nvidia-container-toolkit-base brings it. "
            f"'nvidia-ctk config --config-file={path} --in-place' writes it anew."
        )
    return before, set_top_level(before or "", ENVVAR_KEY, False, path)


def _write(module: AnsibleModule, texts: t.Mapping[str, str], mode: int, main: str, parser: Parser) -> None:
    """All files are complete and beside their places, and containerd has read the main file, before one is moved."""
    ready: dict[str, str] = {}
    try:
        for path, text in texts.items():
            target = os.path.realpath(path)
            os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
            # A name that no import pattern matches (they end in .toml).
            handle, ready[target] = tempfile.mkstemp(
                dir=os.path.dirname(target), prefix=os.path.basename(target) + ".", suffix=".new"
            )
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode())
            if path == main:
                parser.dump(ready[target])
        # What was there keeps its mode; new files get what the umask leaves.
        umask = os.umask(0o777 & ~mode)
        try:
            for target, temporary in ready.items():
                module.atomic_move(temporary, target)
        finally:
            os.umask(umask)
    finally:
        for temporary in ready.values():
            if os.path.exists(temporary):
                os.unlink(temporary)


def _mode(plan: Plan) -> int:
    """The drop-in repeats settings of other files, perhaps passwords of registries: it may not be easier to read."""
    mode = 0o644
    for path in plan.files:
        if path != plan.drop_in and os.path.exists(path):
            mode &= os.stat(path).st_mode
    return mode


def _masked(text: str) -> str:
    secret = r"""(?<![\w-])((?:password|auth|identitytoken)["']?\s*=\s*)\S.*$"""
    return re.sub(secret, r'\g<1>"********"', text, flags=re.MULTILINE)


__all__ = ("choose", "configure")
