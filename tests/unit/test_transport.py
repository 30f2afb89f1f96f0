"""Frames out of bytes."""

from monkeycode_lsp.transport import MOST_FRAME_BYTES, Frames


def frame(body):
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def test_a_length_that_nobody_means_does_not_make_us_deaf():
    frames = Frames()
    assert frames.feed(b"Content-Length: 99999999999999\r\n\r\n" + frame(b"{}") + frame(b"[]")) == [b"{}", b"[]"]


def test_the_body_of_a_frame_that_is_too_long_is_passed_over():
    frames = Frames()
    assert frames.feed(b"Content-Length: %d\r\n\r\n" % (MOST_FRAME_BYTES + 1)) == []
    for _ in range(100):
        assert frames.feed(b'{"text": "' + b"x" * 65_536) == []
    assert len(frames._buffer) < 200_000
    assert frames.feed(b'"}' + frame(b"{}")) == [b"{}"]


def test_bodies_may_come_in_any_pieces_with_any_headers():
    frames, found = Frames(), []
    data = b"content-type: x\r\nCONTENT-LENGTH:  2\r\n\r\n{}" + frame("é".encode())
    for at in range(len(data)):
        found += frames.feed(data[at : at + 1])
    assert found == [b"{}", "é".encode()]
