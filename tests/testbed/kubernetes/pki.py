# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's certificates: one authority, what it signs for servers and clients, the key of the service accounts."""

from __future__ import annotations

from pathlib import Path

from ..command import run
from ..config import STATE

DIRECTORY = STATE / "pki"
CA = DIRECTORY / "ca.crt"
CA_KEY = DIRECTORY / "ca.key"
SERVICE_ACCOUNT_KEY = DIRECTORY / "service-accounts.key"


def ensure_authority() -> None:
    if CA.exists():
        return
    DIRECTORY.mkdir(mode=0o700, parents=True, exist_ok=True)
    _private_key(SERVICE_ACCOUNT_KEY)
    _private_key(CA_KEY)
    usage = "keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign"
    certificate = DIRECTORY / "ca.crt.new"
    run(
        "openssl",
        "req",
        "-x509",
        "-new",
        "-key",
        CA_KEY,
        "-subj",
        "/CN=testbed",
        "-days",
        "365",
        "-addext",
        usage,
        "-out",
        certificate,
    )
    certificate.rename(CA)


def issue(name: str, *, user: str, group: str | None = None, addresses: tuple[str, ...] = ()) -> tuple[Path, Path]:
    """Certificate and key of a user (and group) of the cluster, for clients, and for servers at the addresses."""
    certificate, key = DIRECTORY / f"{name}.crt", DIRECTORY / f"{name}.key"
    if not certificate.exists():
        _private_key(key)
        _sign(certificate, key, f"/O={group}/CN={user}" if group else f"/CN={user}", addresses)
    return certificate, key


def _sign(certificate: Path, key: Path, subject: str, addresses: tuple[str, ...]) -> None:
    request, extensions, signed = (certificate.with_suffix(suffix) for suffix in (".csr", ".ext", ".new"))
    lines = ["keyUsage=critical,digitalSignature,keyEncipherment", "extendedKeyUsage=clientAuth,serverAuth"]
    if addresses:
        lines.append("subjectAltName=" + ",".join(_alternative_name(address) for address in addresses))
    extensions.write_text("\n".join(lines))
    run("openssl", "req", "-new", "-key", key, "-subj", subject, "-out", request)
    run(
        *("openssl", "x509", "-req", "-in", request, "-CA", CA, "-CAkey", CA_KEY, "-CAcreateserial"),
        *("-days", "365", "-extfile", extensions, "-out", signed),
    )
    signed.rename(certificate)
    request.unlink()
    extensions.unlink()


def _private_key(path: Path) -> None:
    # In the older of the two formats, the only one that the API server takes for a service account key.
    run("openssl", "ecparam", "-genkey", "-noout", "-name", "prime256v1", "-out", path)


def _alternative_name(address: str) -> str:
    return f"IP:{address}" if address.replace(".", "").isdigit() else f"DNS:{address}"
