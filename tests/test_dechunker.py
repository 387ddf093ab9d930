"""Chunked transfer coding taken off, against aiohttp's parser, which sees every byte where ours takes most of them."""

from __future__ import annotations

import asyncio

from aiohttp import ClientPayloadError, StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import HttpResponseParser
from hypothesis import example, given
from hypothesis import strategies as st

from fastdisco._dechunker import Dechunker

from .replay import WATCH_HEAD, chunk

LAST = b"0\r\n\r\n"


def parsed(body: bytes) -> tuple[bytes, str]:
    """The data of a chunked body and what comes of it: "whole", "partial" or "broken"."""
    loop = asyncio.new_event_loop()
    try:
        parser = HttpResponseParser(ResponseHandler(loop), loop, 1 << 20, payload_exception=ClientPayloadError, response_with_body=True)
        [(_, payload)], _, _ = parser.feed_data(WATCH_HEAD)
        try:
            parser.feed_data(body)
        except HttpProcessingError:
            return buffered(payload), "broken"
        return buffered(payload), "broken" if payload.exception() else "whole" if payload.is_eof() else "partial"
    finally:
        loop.close()


def buffered(payload: StreamReader) -> bytes:
    return b"".join(payload._buffer)


def taken(body: bytes, cuts: list[int], size: int = 64, received: int = 0) -> tuple[bytes, bytes]:
    """What a Dechunker gives of a body that arrives in pieces of these sizes, round and round, and what it leaves."""
    dechunker = Dechunker(size, body[:received])
    found, at, turn = bytearray(), received, 0
    while not dechunker.stuck:
        room = dechunker.room()
        piece = body[at : at + min(len(room), cuts[turn % len(cuts)])]
        room[: len(piece)] = piece
        at += len(piece)
        turn += 1
        assert dechunker.received(len(piece)) == (len(piece) < len(room))
        while (view := dechunker.take()) is not None:
            assert len(view)
            found += view
        if not piece:
            break
    assert dechunker.take() is None
    return bytes(found), dechunker.rest() + body[at:]


def size_lines(size: int) -> st.SearchStrategy[bytes]:
    return st.builds(
        lambda zeros, upper, extension: b"0" * zeros + (b"%X" if upper else b"%x") % size + extension + b"\r\n",
        st.integers(0, 4),
        st.booleans(),
        st.sampled_from([b""] * 9 + [b";a", b";a=b", b';a="b\t"']),
    )


chunks = st.binary(min_size=1, max_size=200).flatmap(lambda data: size_lines(len(data)).map(lambda line: line + data + b"\r\n"))
ends = st.sampled_from([LAST, b"00\r\nA: b\r\nC: d\r\n\r\n", b"0;a=b\r\n\r\n", b""])
bodies = st.tuples(st.lists(chunks, max_size=20).map(b"".join), ends).map(b"".join)
cuts = st.lists(st.integers(1, 300), min_size=1, max_size=5)
sizes = st.integers(64, 2000)


@given(bodies, cuts, sizes, st.integers(0, 100))
@example(chunk(b"a") + LAST, [1], 64, 0)
def test_a_body_is_found_however_it_is_cut(body: bytes, cuts: list[int], size: int, received: int) -> None:
    """What was taken, and what a whole parser makes of the rest, are the body."""
    data, rest = taken(body, cuts, size, min(received, len(body)))
    more, end = parsed(rest)
    assert (data + more, end) == parsed(body)


@given(bodies, st.integers(0), st.binary(max_size=3), st.integers(0, 3), cuts, sizes)
@example(b"3\r\nabc0\r\n\r\n", 0, b"", 0, [1], 64)  # no line end after the data: the last chunk is none
@example(b"3\r\nabc\n0\r\n\r\n", 0, b"", 0, [100], 64)
@example(b"3\nabc\r\n" + LAST, 0, b"", 0, [100], 64)
@example(b"\r\n" + LAST, 0, b"", 0, [100], 64)
@example(b"f" * 15 + b"\r\nabc", 0, b"", 0, [7], 64)
@example(b"f" * 16 + b"\r\nabc", 0, b"", 0, [7], 64)
@example(b"1" + b"0" * 16 + b"\r\nabc", 0, b"", 0, [7], 64)
@example(b"-1\r\nabc\r\n", 0, b"", 0, [7], 64)
@example(b"0x1\r\na\r\n", 0, b"", 0, [7], 64)
@example(b"5 \r\nabcde\r\n" + LAST, 0, b"", 0, [7], 64)
def test_what_breaks_rules_is_judged_as_by_a_whole_parser(body: bytes, at: int, put: bytes, over: int, cuts: list[int], size: int) -> None:
    """Bytes put in or taken out anywhere: the same data, and the same end."""
    place = at % (len(body) + 1)
    broken = body[:place] + put + body[place + over :]
    data, rest = taken(broken, cuts, size)
    more, end = parsed(rest)
    assert (data + more, end) == parsed(broken)


def test_plain_chunks_are_left_to_nobody() -> None:
    """All but the last chunk, and what comes after it."""
    assert taken(chunk(b"a" * 100) + chunk(b"b" * 5) + LAST + b"HTTP", [1000], 1000) == (b"a" * 100 + b"b" * 5, LAST + b"HTTP")


def test_small_chunks_come_together_and_a_large_one_alone() -> None:
    """As many events as wait are one piece; what is large is not moved for that."""
    dechunker = Dechunker(1 << 20, chunk(b"a\n") * 1000 + chunk(b"b" * 100_000) + chunk(b"c\n") * 2)
    pieces = [bytes(view) for view in iter(dechunker.take, None)]
    assert pieces == [b"a\n" * 1000, b"b" * 100_000 + b"c\n" * 2]


def test_the_last_byte_of_a_chunk_waits_for_its_line_end() -> None:
    """Else nobody could be told any more that the line end is missing."""
    dechunker = Dechunker(100, b"3\r\nabc")
    view = dechunker.take()
    assert view is not None
    assert bytes(view) == b"ab"
    assert dechunker.take() is None
    assert dechunker.rest() == b"1\r\nc"
    dechunker.room()[:2] = b"\r\n"
    assert dechunker.received(2)
    view = dechunker.take()
    assert view is not None
    assert bytes(view) == b"c"
