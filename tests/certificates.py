"""Throw-away certificates for servers on loopback."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Authority:
    """A throw-away certificate authority and a server context that it vouches for."""

    ca_file: Path
    server: ssl.SSLContext

    @classmethod
    def make(cls, folder: Path) -> Authority | None:
        """None where there is no openssl to make one with."""
        openssl = shutil.which("openssl")
        if openssl is None:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "settings").write_text(_OPENSSL, encoding="ascii")

        def run(*arguments: str) -> None:
            subprocess.run([openssl, *arguments], cwd=folder, check=True, capture_output=True)

        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-config", "settings")
        run("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=Throw-away CA", "-extensions", "ca")
        run("req", "-new", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=127.0.0.1")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "settings", "-extensions", "server")
        run("x509", "-req", "-in", "server.csr", *signed, "-out", "server.pem")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem", folder / "server.key")
        return cls(folder / "ca.pem", context)


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
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1, DNS:localhost
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""
