# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""containerd's dialect 2 (1.6 and 1.7): from the configuration as it is to the one with the handler nvidia."""

from __future__ import annotations

import copy
import dataclasses
import os
import typing as t

from .._errors import KubegpuError
from .imports import glob_directories, load, read_text
from .toml_text import Table, append_import, emit, parse

if t.TYPE_CHECKING:  # pragma: no cover
    from .._commands import RunCommand

DIALECT = 2
CRI = "io.containerd.grpc.v1.cri"
RUNC = "io.containerd.runc.v2"
HANDLER = "nvidia"
CDI_DIRECTORIES = ["/etc/cdi", "/var/run/cdi"]

HEADER = """\
# managed by kubegpu.nvidia: what is changed here is lost at the next run.
#
# containerd 1.x takes the CRI section from the last file that has one and forgets those before it. So this file repeats
# the section that would hold without it and adds the runtime handler "nvidia". Your own settings belong in the other
# files: the next run takes them over.
"""


@dataclasses.dataclass(frozen=True)
class Wanted:
    binary: str
    cdi: bool


@dataclasses.dataclass(frozen=True)
class Plan:
    drop_in: str
    texts: dict[str, tuple[str | None, str]]  # path: (before, after), in the order in which they are to be written
    files: list[str]  # what the daemon reads when the plan is done
    directories: list[str]  # whose content decides what it reads


class Parser:
    """The daemon's own parser: `containerd config dump` of scratch files."""

    def __init__(self, run_command: RunCommand, binary: str, scratch: str) -> None:
        self._run_command = run_command
        self._binary = binary
        self._scratch = scratch

    def dump(self, path: str) -> Table:
        rc, out, err = self._run_command([self._binary, "--config", path, "config", "dump"])
        if rc != 0:
            raise KubegpuError(f"{self._binary} refuses {path}: {err.strip()}. Nothing was changed.")
        dump = parse(out, f"the output of '{self._binary} config dump'")
        if dump.get("version") != DIALECT:
            raise KubegpuError(
                f"{self._binary} speaks dialect {dump.get('version')} of the configuration; "
                f"only dialect {DIALECT} (containerd 1.6 and 1.7) is handled yet."
            )
        return dump

    def merge(self, tables: t.Iterable[Table]) -> Table:
        """What the daemon makes of these files, in this order, whatever each of them imports."""
        paths = []
        for number, table in enumerate(tables):
            paths.append(
                self._write(f"{number:03}.toml", {key: value for key, value in table.items() if key != "imports"})
            )
        merged = self.dump(self._write("merge.toml", {"version": DIALECT, "imports": paths}))
        del merged["imports"]
        return merged

    def _write(self, name: str, table: Table) -> str:
        path = os.path.join(self._scratch, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(emit(table))
        return path


def make_plan(main: str, wanted: Wanted, parser: Parser) -> Plan:
    """What to write so that the effective configuration is the one before plus the handler. Changes nothing."""
    drop_in = os.path.join(os.path.dirname(main), "conf.d", "99-nvidia.toml")
    main_before = read_text(main)
    main_text = f"version = {DIALECT}\n" if main_before is None else main_before
    _check_main(main, parse(main_text, main))

    now = load(main, {main: main_text})
    if main_before is not None:
        _check_same_files(main, set(now), parser)
    others = {path: table for path, table in now.items() if path != drop_in}
    before = parser.merge(others.values())
    _check_enabled(before, others)

    drop_in_text = f"{HEADER}\n{emit(_drop_in(others, before, wanted))}"
    if drop_in not in load(main, {main: main_text, drop_in: drop_in_text}):
        # A pattern, because a path that does not exist keeps containerd from starting; a narrow one, because a wider
        # one would bring in files of others that are not read today.
        main_text = append_import(main_text, os.path.join(os.path.dirname(drop_in), "99-nvidia*.toml"), main)
    after = load(main, {main: main_text, drop_in: drop_in_text})
    _check_last(drop_in, list(after), after)
    _check_effect(before, parser.merge(after.values()), wanted)
    return Plan(
        drop_in=drop_in,
        # The drop-in first: alone it is not read, whereas the import may be.
        texts={drop_in: (read_text(drop_in), drop_in_text), main: (main_before, main_text)},
        files=list(after),
        directories=glob_directories(after),
    )


def cri_section(table: Table) -> Table | None:
    section = table.get("plugins", {}).get(CRI)
    return section if isinstance(section, dict) else None


def _drop_in(others: t.Mapping[str, Table], before: Table, wanted: Wanted) -> Table:
    written: list[Table] = [section for section in map(cri_section, others.values()) if section is not None]
    section = copy.deepcopy(written[-1]) if written else {}
    # Naming one runtime takes the built-in ones away, so where no file names any, the daemon says which it has.
    runtimes = before["plugins"][CRI]["containerd"]["runtimes"]
    section.setdefault("containerd", {}).setdefault("runtimes", copy.deepcopy(runtimes))
    _add_ours(section, wanted, before["plugins"][CRI])
    return {"version": DIALECT, "plugins": {CRI: section}}


def _add_ours(section: Table, wanted: Wanted, effective: Table) -> None:
    """Adds the handler to a CRI section; `effective` says what holds for keys that the section leaves to the daemon."""
    containerd = section["containerd"]
    runtimes = containerd["runtimes"]
    default = effective["containerd"].get("default_runtime_name") or "runc"
    if default == HANDLER and "runc" in runtimes:
        default = containerd["default_runtime_name"] = "runc"
    model = runtimes.get("runc") or runtimes.get(default) or {}
    options = model.get("options", {}) if model.get("runtime_type") == RUNC else {}
    runtimes[HANDLER] = {
        **copy.deepcopy(model),
        "runtime_type": RUNC,
        "options": {**copy.deepcopy(options), "BinaryName": wanted.binary},
    }
    if wanted.cdi:
        section["enable_cdi"] = True
        directories = effective.get("cdi_spec_dirs") or CDI_DIRECTORIES
        if not {"/var/run/cdi", "/run/cdi"} & set(directories):  # where the toolkit writes its specification
            directories = [*directories, "/var/run/cdi"]
        section["cdi_spec_dirs"] = list(directories)


def _check_main(main: str, table: Table) -> None:
    disabled = [plugin for plugin in table.get("disabled_plugins", []) if plugin in ("cri", CRI)]
    if disabled:
        raise KubegpuError(
            f"{main} switches containerd's CRI plugin off (disabled_plugins = {disabled}), "
            "so that no kubelet can use it. Take it out of the list."
        )
    version = table.get("version")
    if version is None:
        raise KubegpuError(
            f"{main} has no 'version', so containerd reads it as dialect 1; only dialect {DIALECT} is handled yet. "
            "'containerd config dump' prints it in the newer one: look it over, put it in place and restart containerd."
        )
    if version != DIALECT:
        raise KubegpuError(
            f"{main} is written in dialect {version} (its 'version'); "
            f"only dialect {DIALECT} (containerd 1.6 and 1.7) is handled yet."
        )


def _check_same_files(main: str, ours: set[str], parser: Parser) -> None:
    theirs = set(parser.dump(main)["imports"])
    if theirs != ours:
        raise KubegpuError(
            f"containerd and this module disagree on which files the imports of {main} name: "
            f"{', '.join(sorted(theirs ^ ours))}. Write the paths of 'imports' in full. Nothing was changed."
        )


def _check_enabled(before: Table, others: t.Mapping[str, Table]) -> None:
    if CRI in before.get("disabled_plugins", []):
        where = [path for path, table in others.items() if CRI in table.get("disabled_plugins", [])]
        raise KubegpuError(
            f"{', '.join(where)} switches containerd's CRI plugin off (disabled_plugins), "
            "so that no kubelet can use it. Take it out of the list."
        )


def _check_last(drop_in: str, order: t.Sequence[str], tables: t.Mapping[str, Table]) -> None:
    later = [path for path in order[order.index(drop_in) + 1 :] if cri_section(tables[path]) is not None]
    if later:
        raise KubegpuError(
            f'{", ".join(later)} is read after {drop_in} and has a CRI section (plugins."{CRI}"), which would replace '
            f"the one with the handler '{HANDLER}'. Rename it so that it sorts before 99-nvidia.toml: its settings are "
            "then taken over. Nothing was changed."
        )


def _check_effect(before: Table, after: Table, wanted: Wanted) -> None:
    expected = copy.deepcopy(before)
    _add_ours(expected["plugins"][CRI], wanted, before["plugins"][CRI])
    if after != expected:
        raise KubegpuError(
            "containerd would not read the new configuration as intended; different: "
            f"{', '.join(_different(expected, after))}. Nothing was changed."
        )


def _different(one: t.Any, other: t.Any, path: str = "") -> list[str]:
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return [] if one == other else [path]
    return [
        name
        for key in sorted({*one, *other})
        for name in _different(one.get(key), other.get(key), f"{path}.{key}" if path else key)
    ]


__all__ = ("DIALECT", "HANDLER", "Parser", "Plan", "Wanted", "cri_section", "make_plan")
