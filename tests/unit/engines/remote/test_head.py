"""What stands around an answer."""

from __future__ import annotations

import pytest

from monkeycode_lsp.engines.remote.http import head


@pytest.mark.parametrize("date", ["", "soon", "Fri, 31 Dec 99999999999 23:59:59 GMT", "9" * 9000])
def test_a_clock_that_cannot_be_read_is_not_told(date: str) -> None:
    assert head.read(200, date, sockname=None, certificate=None).date is None


@pytest.mark.parametrize("end", ["", "soon", "Dec 31 23:59:59 99999 GMT"])
def test_a_certificate_whose_end_cannot_be_read_has_none(end: str) -> None:
    assert head.read(200, "", sockname=None, certificate={"notAfter": end}).valid_until is None
