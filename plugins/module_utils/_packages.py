# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Installed packages and their versions, asked once of the database that the host has."""

from __future__ import annotations

import os
import typing as t

from ._commands import RunCommand, output

# A host may have both: dpkg's database tools are on some RPM systems, and the other way round.
DPKG = ["/usr/bin/dpkg-query", "-W", "-f=${db:Status-Status}\t${Package}\t${Version}\n"]
RPM = ["/usr/bin/rpm", "-qa", "--qf=installed\t%{NAME}\t%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\n"]

# Changes that dpkg has not yet written to its database; beside numbered files there may be a scratch file.
DPKG_JOURNAL = "/var/lib/dpkg/updates"
# The states in which dpkg has nothing left to do for a package. In every other one it was stopped half-way.
SETTLED = frozenset({"installed", "not-installed", "config-files"})


class Packages(t.NamedTuple):
    installed: dict[str, str] | None  # versions by name; None when no database gave an answer
    interrupted: bool | None  # whether `dpkg --configure -a` has something to do; None without dpkg


class Row(t.NamedTuple):
    status: str
    name: str
    version: str


def read(run_command: RunCommand) -> Packages:
    dpkg, rpm = _query(run_command, DPKG), _query(run_command, RPM)
    # No host has no package at all: an empty database is the one that the host does not use.
    rows = dpkg + rpm
    return Packages(
        installed={row.name: row.version for row in rows if row.status == "installed"} if rows else None,
        interrupted=_journal() or any(row.status not in SETTLED for row in dpkg) if dpkg else None,
    )


def _query(run_command: RunCommand, command: list[str]) -> list[Row]:
    answer = output(run_command, command) if os.path.exists(command[0]) else None
    fields = (line.split("\t") for line in (answer or "").splitlines())
    return [Row(*row) for row in fields if len(row) == len(Row._fields)]


def _journal() -> bool:
    try:
        return any(name.isdigit() for name in os.listdir(DPKG_JOURNAL))
    except OSError:
        return False
