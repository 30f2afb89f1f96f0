"""Throw-away certificates for servers on loopback."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = "IP:127.0.0.1, DNS:localhost"


@dataclass(frozen=True)
class Issued:
    """A certificate and its key."""

    cert: Path
    key: Path

    def context(self, *, alpn: tuple[str, ...] = (), clients_of: Path | None = None) -> ssl.SSLContext:
        """For a server that shows it; `clients_of`: it wants to know who asks."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, self.key)
        if alpn:
            context.set_alpn_protocols(list(alpn))
        if clients_of is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients_of)
        return context


@dataclass(frozen=True)
class Authority:
    """A throw-away certificate authority and a server context that it vouches for."""

    ca_file: Path
    server: ssl.SSLContext
    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Authority | None:
        """None where there is no openssl to make one with."""
        if shutil.which("openssl") is None:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        _settings(folder, HERE)
        _openssl(folder, "req", "-x509", *_NEW_KEY, "-keyout", "ca.key", "-out", "ca.pem", *_CA)
        return cls(folder / "ca.pem", _signed(folder, "server", days=2).context(), folder)

    def issue(self, name: str, *, names: str = HERE, days: int = 2, password: str = "") -> Issued:
        """A certificate for `names`; with fewer than no days it has expired; with a password its key is locked."""
        _settings(self.folder, names)
        issued = _signed(self.folder, name, days=days)
        if password:
            locked = self.folder / f"{name}.locked.key"
            _openssl(self.folder, "pkey", "-in", issued.key.name, "-aes256", "-passout", f"pass:{password}", "-out", locked.name)
            return Issued(issued.cert, locked)
        return issued

    def self_signed(self, name: str) -> Issued:
        """A certificate that nobody vouches for but itself."""
        _settings(self.folder, HERE)
        files = ("-keyout", f"{name}.key", "-out", f"{name}.pem")
        _openssl(self.folder, "req", "-x509", *_NEW_KEY, *files, "-days", "2", "-subj", "/CN=127.0.0.1", "-extensions", "server")
        return Issued(self.folder / f"{name}.pem", self.folder / f"{name}.key")


def _signed(folder: Path, name: str, *, days: int) -> Issued:
    _openssl(folder, "req", "-new", *_NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=127.0.0.1")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", str(days), "-extfile", "settings", "-extensions", "server")
    _openssl(folder, "x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.pem")
    return Issued(folder / f"{name}.pem", folder / f"{name}.key")


def _settings(folder: Path, names: str) -> None:
    (folder / "settings").write_text(_OPENSSL + f"subjectAltName = {names}\n", encoding="ascii")


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-config", "settings")
_CA = ("-days", "2", "-subj", "/CN=Throw-away CA", "-extensions", "ca")
_OPENSSL = """\
[req]
distinguished_name = name
[name]
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""
