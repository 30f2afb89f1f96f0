"""From a name to numeric addresses."""

from __future__ import annotations

import pytest

from monkeycode_lsp.recall.resolver import resolve


@pytest.mark.parametrize("number", ["127.0.0.1", "::1"])
def test_an_address_stays_what_it_is(number):
    assert resolve(number) in ([number], [])  # a system may know no IPv6


def test_this_machine_is_known():
    assert set(resolve("localhost")) & {"127.0.0.1", "::1"}


@pytest.mark.parametrize("host", ["nobody.invalid", "a" * 70, "a..b", "\ud800", "ho st", ""])
def test_what_has_no_address_is_no_error(host):
    assert isinstance(resolve(host), list)
