"""Files that are never served, by their name (pure).  The language id says nothing: `.env` is often shellscript."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

SECRET_FILES = (
    ".env", ".env.*", "*.env", ".envrc",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.asc",
    ".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".pypirc", ".htpasswd", ".git-credentials", "credentials", "secrets", "*.tfvars", "*.tfstate", "service-account*.json", "kubeconfig", ".dockercfg",
    "monkeycode.toml", ".monkeycode.toml",
)  # fmt: skip
_DATA = frozenset({".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".properties", ".xml", ".txt", ".csv", ".enc", ".bak"})
_TELLING = frozenset({"secret", "secrets", "credential", "credentials", "password", "passwords"})
"""As the name of a data file; `secrets.py` is code."""
SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube", "secrets", ".secrets"})
_PUBLIC = ("*.pub", ".env.example", ".env.sample", ".env.template", "*.example")


def is_secret(path: str, extra: Sequence[str] = ()) -> bool:
    """Whether the file at `path` (`/` separated) looks like it holds secrets."""
    pure = PurePosixPath(path.lower())
    name = pure.name
    if any(fnmatchcase(name, pattern.lower()) for pattern in extra):
        return True
    if any(fnmatchcase(name, pattern) for pattern in _PUBLIC):
        return False
    if pure.suffix in _DATA and not _TELLING.isdisjoint(name.split(".")):
        return True
    return any(fnmatchcase(name, pattern) for pattern in SECRET_FILES) or not SECRET_FOLDERS.isdisjoint(pure.parent.parts)
