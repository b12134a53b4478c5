#!/usr/bin/env python3
# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes Debian packages from a table.

Usage: debs.py TABLE.toml OUTPUT [--input DIR]... [--set NAME=VALUE]...

A table is a TOML file with one section a package. ``{name}`` anywhere in it is replaced by the value given with --set;
``version`` must be given. Besides control fields in lower case a section may have
  files    path in the package = file or directory in one of the input directories (the first that has it)
  texts    path in the package = content
  links    path in the package = target of a symbolic link
  postinst, prerm, postrm   maintainer scripts, files as above; "#DEBHELPER#" in them is where the units' part goes
  units    systemd units of the package that are enabled, and started unless ``start = false``
  triggers, conffiles       lines of the package's files of that name
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

import tomllib

RELATIONS = ("Depends", "Recommends", "Conflicts", "Breaks", "Replaces", "Provides")
CONTROL_FIELDS = ("Source", "Section", "Architecture", *RELATIONS)

# What debhelper's dh_installsystemd would add, less what only old systems need.
UNIT_SCRIPTS = {
    "postinst": """\
if [ "$1" = configure ]; then
    deb-systemd-helper unmask {units} >/dev/null || true
    deb-systemd-helper enable {units} >/dev/null || true
{start}fi
""",
    "prerm": """\
if [ -d /run/systemd/system ] && [ "$1" = remove ]; then
    deb-systemd-invoke stop {units} >/dev/null || true
fi
""",
    "postrm": """\
if [ "$1" = purge ]; then
    deb-systemd-helper purge {units} >/dev/null || true
fi
if [ -d /run/systemd/system ]; then
    systemctl --system daemon-reload >/dev/null || true
fi
""",
}
UNIT_START = """\
    if [ -d /run/systemd/system ]; then
        systemctl --system daemon-reload >/dev/null || true
        if [ -n "$2" ]; then action=restart; else action=start; fi
        deb-systemd-invoke $action {units} >/dev/null || true
    fi
"""


class Package:
    """One section of a table, with the values filled in."""

    def __init__(self, name: str, section: dict, inputs: list[Path], values: dict[str, str]) -> None:
        self.section, self.inputs, self.values = section, inputs, values
        self.name = self.text(name)

    def text(self, value: object) -> str:
        joined = ", ".join(value) if isinstance(value, list) else str(value)
        for name, replacement in self.values.items():
            joined = joined.replace("{" + name + "}", replacement)
        return joined

    def find(self, name: str) -> Path:
        for directory in self.inputs:
            if (directory / name).exists():
                return directory / name
        raise SystemExit(f"{self.name}: no {name} in {', '.join(map(str, self.inputs))}")

    def fill(self, root: Path) -> None:
        for path, source in self.section.get("files", {}).items():
            found, target = self.find(self.text(source)), root / self.text(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            if found.is_dir():
                shutil.copytree(found, target)
            else:
                # A file without the bit for executing it comes out readable, whatever the umask of the builder was.
                shutil.copyfile(found, target)
                target.chmod(0o755 if found.stat().st_mode & 0o111 else 0o644)
        for path, content in self.section.get("texts", {}).items():
            target = root / self.text(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(self.text(content).rstrip("\n") + "\n")
        for path, destination in self.section.get("links", {}).items():
            (root / self.text(path)).symlink_to(self.text(destination))

    def control(self) -> str:
        fields = {"Package": self.name, "Version": self.values["version"], "Architecture": "amd64"}
        fields |= {"Priority": "optional", "Maintainer": "KubeGPU testbed <testbed@example.invalid>"}
        for field in CONTROL_FIELDS:
            if field.lower() in self.section:
                fields[field] = self.text(self.section[field.lower()])
        fields["Description"] = self.text(self.section["description"])
        return "".join(f"{field}: {value}\n" for field, value in fields.items())

    def script(self, kind: str) -> str | None:
        units = " ".join(self.section.get("units", []))
        start = UNIT_START.format(units=units) if self.section.get("start", True) else ""
        part = UNIT_SCRIPTS[kind].format(units=units, start=start) if units else ""
        if kind in self.section:
            return self.text(self.find(self.section[kind]).read_text()).replace("#DEBHELPER#", part)
        return f"#!/bin/sh\nset -e\n{part}" if part else None

    def build(self, output: Path) -> None:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory) / "root"
            meta = root / "DEBIAN"
            meta.mkdir(parents=True)
            root.chmod(0o755)
            self.fill(root)
            (meta / "control").write_text(self.control())
            for kind in UNIT_SCRIPTS:
                content = self.script(kind)
                if content:
                    (meta / kind).write_text(content)
                    (meta / kind).chmod(0o755)
            for name in ("conffiles", "triggers"):
                if name in self.section:
                    (meta / name).write_text("".join(f"{line}\n" for line in self.section[name]))
            command = ["dpkg-deb", "-Znone", "--root-owner-group", "-b", str(root), str(output)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes Debian packages from a table.")
    parser.add_argument("table", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--input", type=Path, action="append", default=[])
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()
    values = dict(setting.split("=", 1) for setting in arguments.set)
    for name, section in tomllib.loads(arguments.table.read_text()).items():
        Package(name, section, arguments.input, values).build(arguments.output)


if __name__ == "__main__":
    main()
