"""`cache.sharedUrl`, read."""

from __future__ import annotations

import pytest

from monkeycode_lsp.errors import ConfigError
from monkeycode_lsp.recall.address import Address, parse


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://host", Address(host="host")),
        (" redis://host:7000/3\n", Address(host="host", port=7000, db=3)),
        ("redis://", Address(host="localhost")),
        ("redis://h?db=2", Address(host="h", db=2)),
        ("redis://:p%40ss%2Fword@h", Address(host="h", password="p@ss/word")),
        ("redis://:p:a@h", Address(host="h", password="p:a")),
        ("rediss://team:secret@h:6380/0", Address(host="h", port=6380, username="team", password="secret", tls=True)),
        ("redis://[::1]:7000", Address(host="::1", port=7000)),
        ("rediss://h?ssl_ca_certs=/a/ca.pem", Address(host="h", tls=True, ca_file="/a/ca.pem")),
        ("rediss://h?ssl_certfile=/c&ssl_keyfile=/k", Address(host="h", tls=True, cert_file="/c", key_file="/k")),
        ("unix:///run/redis.sock", Address(path="/run/redis.sock")),
        ("unix:///run/redis.sock?db=1&password=x", Address(path="/run/redis.sock", db=1, password="x")),
        ("unix://user:x@/run/redis.sock", Address(path="/run/redis.sock", username="user", password="x")),
    ],
)
def test_what_redis_urls_look_like(url, address):
    assert parse(url) == address


@pytest.mark.parametrize(
    "url",
    [
        "host:6379",
        "http://:hunter2@host",
        "redis://:hunter2@host:port",
        "redis://:hunter2@host:99999",
        "redis://:hunter2#@host",
        "redis://:hunter2[@host",
        "redis://:hunter2@host/db0",
        "redis://:hunter2@host/-1",
        "redis://:hunter2@host?decode_responses=yes",
        "redis://:hunter2@host?ssl_ca_certs=/a",
        "rediss://:hunter2@host?ssl_cert_reqs=none",
        "redis://host?hunter2=1",
        "unix://:hunter2@",
        "unix://run/redis.sock?password=hunter2",
    ],
)
def test_a_url_that_cannot_be_used_is_explained_without_its_password(url):
    with pytest.raises(ConfigError, match=r"cache\.sharedUrl") as caught:
        parse(url)
    assert "hunter2" not in str(caught.value)
    assert "redis://host:6379/0" in str(caught.value)


def test_its_name_and_its_repr_hold_no_password():
    address = parse("rediss://team:hunter2@[::1]:6380/0?ssl_password=hunter2")
    assert address.name == "[::1]:6380"
    assert "hunter2" not in repr(address)
    assert parse("unix:///run/r.sock?password=hunter2").name == "/run/r.sock"
