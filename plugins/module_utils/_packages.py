# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""Installed packages and their versions, asked once of the database that the host has."""

from __future__ import annotations

import os
import typing as t

RunCommand = t.Callable[..., "tuple[int, str, str]"]

# A host may have both: dpkg's database tools are on some RPM systems, and the other way round.
DATABASES = (
    # Status first, because a version may be empty; only what has its files on the disk counts as installed.
    ("/usr/bin/dpkg-query", ["-W", "-f=${db:Status-Status}\t${Package}\t${Version}\n"]),
    ("/usr/bin/rpm", ["-qa", "--qf=installed\t%{NAME}\t%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\n"]),
)
NOT_ON_DISK = frozenset({"not-installed", "config-files", "half-installed"})


def installed(run_command: RunCommand, patterns: t.Sequence[str]) -> dict[str, str] | None:
    """Versions of the installed packages whose names match; None when no database gave an answer."""
    commands = [[program, *arguments, *patterns] for program, arguments in DATABASES if os.path.exists(program)]
    answers = [answer for answer in (_query(run_command, command) for command in commands) if answer is not None]
    if not answers:
        return None
    return {name: version for answer in answers for name, version in sorted(answer.items())}


def _query(run_command: RunCommand, command: list[str]) -> dict[str, str] | None:
    try:
        rc, out, _err = run_command(command, environ_update={"LC_ALL": "C"}, handle_exceptions=False)
    except OSError:
        return None
    # dpkg-query answers 1 when one of the patterns matches nothing.
    return parse(out) if rc in (0, 1) else None


def parse(output: str) -> dict[str, str]:
    """Lines of status, name and version, tab-separated."""
    packages = {}
    for line in output.splitlines():
        status, _tab, rest = line.partition("\t")
        name, _tab, version = rest.partition("\t")
        if name and version and status not in NOT_ON_DISK:
            packages[name] = version
    return packages
