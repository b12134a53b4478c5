# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How nodes reach Debian's packages: the way this machine does, by its mirror and its settings for the way there."""

from __future__ import annotations

import re
from pathlib import Path

from ..command import run

# Proxies, certificates, and whether a mirror that lags behind is accepted.
TRANSPORT = re.compile(r"^Acquire::(https?::|Check-|Retries)", re.IGNORECASE)


def write_settings(root: Path, codename: str) -> None:
    """Writes apt's configuration for a Debian release into the tree of files that a new node gets."""
    settings = root / "etc/apt/apt.conf.d/90testbed"
    settings.parent.mkdir(parents=True, exist_ok=True)
    lines = [line for line in run("apt-config", "dump").splitlines() if TRANSPORT.match(line)]
    settings.write_text("\n".join([*lines, 'DPkg::Options { "--force-unsafe-io"; };', ""]))

    archive, security = _mirrors()
    stanzas = [_stanza(archive, codename, f"{codename}-updates")]
    if security:
        stanzas.append(_stanza(security, f"{codename}-security"))
    (root / "etc/apt/sources.list.d").mkdir(parents=True, exist_ok=True)
    (root / "etc/apt/sources.list.d/debian.sources").write_text("\n".join(stanzas))
    (root / "etc/apt/sources.list").write_text("")


def _mirrors() -> tuple[str, str | None]:
    """This machine's mirrors of Debian and of its security updates."""
    targets = run(
        "apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages", "Origin: Debian"
    )
    archive = security = None
    for uri, codename in map(str.split, targets.splitlines()):
        if codename.endswith("-security"):
            security = security or uri
        else:
            archive = archive or uri
    return archive or "http://deb.debian.org/debian", security


def _stanza(uri: str, *suites: str) -> str:
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    return f"Types: deb\nURIs: {uri}\nSuites: {' '.join(suites)}\nComponents: main\nSigned-By: {keyring}\n"
