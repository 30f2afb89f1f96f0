"""Files that are never served, read or quoted, by their name (pure).  The language id says nothing: `.env` is often shellscript.

The name of a data file may tell by a word that it holds secrets; code of the same name only deals with them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

SECRET_FILES = (
    ".env", ".env.*", ".env-*", ".env_*", "*.env", ".envrc", ".envrc.*", ".flaskenv", ".dev.vars",  # environments
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "id_xmss*", "ssh_host_*_key", "*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.der",
    "*.jks", "*.keystore", "*.bks", "*.ppk", "*.pvk", "*.snk", "*.asc", "*.gpg", "*.pgp", "*.age", "*.ovpn", "wg[0-9]*.conf", "*.mobileprovision",  # keys
    "*.kdbx", "*.kdb", "*.keychain", "*.keychain-db", "*.keyring", "*.agilekeychain", "*.opvault", "*.psafe3", "secring.*", "wallet.dat", "*.wallet", "utc--*",  # safes
    ".netrc", "_netrc", ".authinfo*", ".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf", ".npmrc", ".pypirc", ".htpasswd", "htpasswd", ".git-credentials", ".gitcookies",
    ".dockercfg", ".dockerconfigjson", "kubeconfig", "*.kubeconfig", ".terraformrc", "terraform.rc", "credentials.tfrc.json", "*.tfvars", "*.tfvars.json", "*.tfstate", "*.tfstate.*",
    "application_default_credentials.json", "service-account*.json", "service_account*.json", "serviceaccount*.json", "auth.json", ".boto", ".s3cfg", ".passwd-s3fs", "rclone.conf",
    ".vault-token", ".vault_pass*", "vault_pass*", "vault.yml", "vault.yaml", "*.vault", "?*.sops.*", "keystore.properties", "key.properties", "msmtprc", ".msmtprc", ".fetchmailrc",  # accounts
    "credentials", "secrets", "passwords", "passwd", "shadow", "tokens", ".token", ".credentials", ".secrets", ".secret", "*.secret", "*.secrets", "*.credentials", "*.password", "*.passwd",
    ".*_history", "*.history", "fish_history", "consolehost_history.txt", ".lesshst", ".viminfo",  # what was typed
    "login data", "web data", "cookies", "cookies.txt", "cookies.sqlite", "logins.json", "signons.sqlite", "key[34].db",  # a browser's profile
    "*.dump", "*.dmp", "dump.sql", "*[-_.]dump.sql", "*.sql.bak",  # a database's content
    "monkeycode.toml", ".monkeycode.toml",
)  # fmt: skip
SECRET_FOLDERS = frozenset(
    {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".oci", ".aliyun", ".password-store", ".keychain", "private-keys-v1.d"}
)
_FILES_IN = frozenset({".docker/config.json", ".cargo/credentials.toml", "gh/hosts.yml", ".m2/settings.xml", ".m2/settings-security.xml", ".config/hub", ".bundle/config"})  # fmt: skip
"""Names that tell only together with their folder's."""
_TELLING_FOLDERS = frozenset({"gcloud", "keyrings", "secrets", ".secrets", "credentials", ".credentials"})
"""Whose files are secret unless they are code."""
_DATA = frozenset({".json", ".json5", ".jsonc", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".config", ".properties", ".plist", ".xml", ".txt", ".csv", ".tsv", ".enc", ".db", ".sqlite", ".sql", ".sh", ".ps1"})  # fmt: skip
_TELLING = frozenset({"secret", "secrets", "credential", "credentials", "creds"})
_TELLING_ALONE = _TELLING | {"password", "passwords", "passwd", "apikey", "apikeys"}
"""As a whole part between dots: `password-policy.json` holds none."""
_CODE = frozenset({
    ".py", ".pyi", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte", ".go", ".rs", ".java", ".kt", ".kts", ".scala", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".fs", ".vb",
    ".swift", ".m", ".mm", ".rb", ".php", ".pl", ".lua", ".r", ".jl", ".dart", ".ex", ".exs", ".erl", ".hs", ".ml", ".clj", ".zig", ".nim", ".md", ".rst", ".html", ".css", ".scss", ".tf",
})  # fmt: skip
_PUBLIC = ("*.pub", "*.example", "*.sample", "*.template", "*.tmpl", ".env.dist", ".env.defaults", ".env.*.example", "example.env", "sample.env", "template.env", "*.example.*", "*.asc.txt")  # fmt: skip
_COPY = re.compile(r"(?:~|#|\.(?:bak|backup|old|orig|save|sw[a-p]|tmp|copy|rej)|[ ._-]copy(?: \d+)?| \(\d+\))+\Z")
"""What editors and people put behind the name of a copy."""


def is_secret(path: str, extra: Sequence[str] = ()) -> bool:
    """Whether the file at `path` looks like it holds secrets.  `extra`: more patterns for its name."""
    return _is_secret(path, tuple(extra))


def is_secret_uri(uri: str, extra: Sequence[str] = ()) -> bool:
    """The same of a document, in whatever way its URI is written."""
    return any(is_secret(path, extra) for path in paths(uri))


def paths(uri: str) -> tuple[str, ...]:
    """What a URI may mean as a path: some editors write `#` and `?` of a name as they are."""
    after = uri.partition(":")[2]
    try:
        path = urlsplit(uri).path
    except ValueError:
        path = after
    return (unquote(path),) if "/" not in after[after.find(path) + len(path) :] else (unquote(path), unquote(after))


@lru_cache(maxsize=4_096)
def _is_secret(path: str, extra: tuple[str, ...]) -> bool:
    pure = PurePosixPath(path.lower().replace("\\", "/").partition("\0")[0])
    name = pure.name.partition("::")[0].rstrip(". ")  # Windows opens the same file by those
    names = {name, _COPY.sub("", name.removeprefix(".#").removeprefix("#"))}
    if any(_matches(tuple(pattern.lower() for pattern in extra), name) for name in names):
        return True
    if _matches(_PUBLIC, name):
        return False
    parents = pure.parent.parts
    return (
        any(_matches(SECRET_FILES, name) or _is_telling(name) or "/".join((*parents[-1:], name)) in _FILES_IN for name in names)
        or not SECRET_FOLDERS.isdisjoint(parents)
        or (not _TELLING_FOLDERS.isdisjoint(parents) and pure.suffix not in _CODE)
    )


def _is_telling(name: str) -> bool:
    if PurePosixPath(name).suffix not in _DATA:
        return False
    return not _TELLING_ALONE.isdisjoint(name.split(".")) or not _TELLING.isdisjoint(re.split(r"[-_. ]", name))


def _matches(patterns: Sequence[str], name: str) -> bool:
    return bool(patterns) and _any_of(tuple(patterns)).match(name) is not None


@lru_cache(maxsize=64)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)))
