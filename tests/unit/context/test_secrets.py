"""Names of files that are never served, and names that only sound like them."""

import pytest

from monkeycode_lsp.context import secrets

SECRET = [
    ".env",
    ".env.local",
    ".ENV",
    "prod.env",
    ".envrc",
    ".env.production.local",
    "id_rsa",
    "ID_RSA",
    "id_ed25519.bak",
    "server.pem",
    "server.pem~",
    "#server.key#",
    ".#.env",
    ".env.swp",
    "x.KEY",
    "cert.p12",
    "AuthKey_X.p8",
    "release.keystore",
    "vault.kdbx",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    "credentials",
    "secrets",
    "terraform.tfvars",
    "terraform.tfstate",
    "terraform.tfstate.backup",
    ".terraformrc",
    ".docker/config.json",
    "gh/hosts.yml",
    "my.kubeconfig",
    "kubeconfig",
    ".kube/config",
    ".ssh/config",
    ".aws/credentials",
    ".azure/x",
    "service-account-7.json",
    "client_secret_1.json",
    "credentials.json",
    "credentials.yml.enc",
    "secrets.yaml",
    "db.secret.yml",
    "k8s/secret.yaml",
    ".bash_history",
    ".psql_history",
    "fish_history",
    "wallet.dat",
    "login.keyring",
    "logins.json",
    "key4.db",
    "cookies.sqlite",
    "backup.dump",
    "db_dump.sql",
    "passwords.txt",
    "config/master.key",
    ".vault-token",
    "vault.yml",
    "wg0.conf",
    "office.ovpn",
    "secrets/a.txt",
    ".gnupg/x",
    "monkeycode.toml",
    ".monkeycode.toml",
    "a\\.ssh\\config",
    ".env.",
    "id_rsa::$DATA",
    ".env\x00.py",
]
SERVED = [
    "secrets.py",
    "secrets/manager.go",
    "test_credentials.py",
    "credentials.ts",
    ".env.example",
    ".env.sample",
    "prod.env.example",
    "environment.py",
    "env.py",
    "id_rsa.pub",
    "keys.py",
    "secret_sauce.py",
    "password-policy.json",
    "config.json",
    "settings.json",
    "package.json",
    "Dockerfile",
    "tokenizer.json",
    "history.py",
    "keyboard.keymap",
    "auth.py",
    "main.tf",
    "shadow.css",
    "cookies.js",
    "notes.txt",
    "docker/config.json",
    "schema.sql",
    "vault.go",
    "Makefile",
    "CHANGELOG",
    "gcloud/main.py",
    "keyrings/list.rs",
    "pem.py",
    "monkey.toml",
    "secretary.yaml",
]


@pytest.mark.parametrize("name", SECRET)
def test_names_that_tell_of_secrets(name):
    assert secrets.is_secret(f"/w/{name}")
    assert secrets.is_secret(name)


@pytest.mark.parametrize("name", SERVED)
def test_names_that_only_sound_like_it(name):
    assert not secrets.is_secret(f"/w/{name}")


def test_the_users_own_patterns_come_first():
    assert secrets.is_secret("/w/.env.example", ["*.EXAMPLE"])
    assert not secrets.is_secret("/w/a.py", ["*.vault"])


@pytest.mark.parametrize(
    "uri",
    [
        "file:///w/%2Eenv", "file:///w/.env#x", "file:///w/.env?x", "file:///w/a#/.env", "file:///w/a?b/id_rsa", "vscode-notebook-cell:/w/.env#W0",
        "untitled:.env", "vscode-remote://ssh-remote+h/w/.ENV", "file://[::1/w/.env", "file:///c%3A/Users/x/.SSH/config", "file:///w\\.env", "file:///w/.env%00.py",
    ],
)  # fmt: skip
def test_a_uri_hides_no_name(uri):
    assert secrets.is_secret_uri(uri)


@pytest.mark.parametrize("uri", ["file:///w/a.py#x", "file:///w/a.py?.env", "untitled:Untitled-1", "", "file:", "\ud800:\ud800"])
def test_other_uris_are_served(uri):
    assert not secrets.is_secret_uri(uri)
