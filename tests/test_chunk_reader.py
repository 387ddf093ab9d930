"""Bodies in chunks by a connection of our own: by both loops, in the clear and by TLS, as aiohttp alone would give them."""

from __future__ import annotations

import asyncio
import gc
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import uvloop

from fastdisco._dechunker import Dechunker
from fastdisco.api import ApiClient, Body
from fastdisco.auth import Connection
from fastdisco.chunk_reader import ChunkReader
from fastdisco.config import TLSConfig
from fastdisco.errors import NetworkError

from .replay import WATCH_HEAD, Answer, Bytes, Peer, Server, Stream, chunk
from .test_api import PATH, TLS, server_tls

LAST = b"0\r\n\r\n"
PIECES = [bytes([65 + index % 26]) * size for index, size in enumerate([1, 2, 15, 16, 17, 5000, 70_000, 255, 256, 300_000] * 3)]
DATA = b"".join(PIECES)
FRAMES = b"".join(map(chunk, PIECES))
FEW = PIECES[:4]

Test = Callable[[Server, ApiClient], Awaitable[None]]


@asynccontextmanager
async def talk(tls: bool, **options: Any) -> AsyncIterator[tuple[Server, ApiClient]]:
    async with Server(server_tls("server") if tls else None) as server, asyncio.timeout(20):
        client = ApiClient(Connection(server.url, tls_config=TLSConfig(ca_file=str(TLS / "ca.pem")), **options))
        try:
            yield server, client
        finally:
            await client.close()


@pytest.fixture(params=["asyncio", "asyncio-tls", "uvloop", "uvloop-tls"])
def run(request: pytest.FixtureRequest) -> Callable[[Test], None]:
    """Runs a test of a server and a client, by each loop."""
    loop, _, tls = request.param.partition("-")
    runner: Callable[[Coroutine[Any, Any, None]], None] = uvloop.run if loop == "uvloop" else asyncio.run

    async def main(test: Test) -> None:
        async with talk(bool(tls)) as (server, client):
            await test(server, client)

    return lambda test: runner(main(test))


def event_after(monkeypatch: pytest.MonkeyPatch, name: str, seen: Callable[[ChunkReader], bool]) -> asyncio.Event:
    """Set when a reader's method has been called and `seen` is so."""
    event, method = asyncio.Event(), getattr(ChunkReader, name)

    def call(reader: ChunkReader, *arguments: object) -> None:
        method(reader, *arguments)
        if seen(reader):
            event.set()

    monkeypatch.setattr(ChunkReader, name, call)
    return event


def reads_past_aiohttp(body: Body) -> bool:
    return body._chunks is not None


async def whole(body: Body) -> bytes:
    return b"".join([bytes(piece) async for piece in body])


@pytest.mark.parametrize(
    ("frames", "data", "cut"),
    [(FRAMES, DATA, 0), (FRAMES, DATA, 1000), (FRAMES, DATA, 65536), (b"".join(map(chunk, FEW)), b"".join(FEW), 1)],
)
def test_a_body_arrives_whole_and_its_connection_is_used_again(run: Callable[[Test], None], frames: bytes, data: bytes, cut: int) -> None:
    """However it is cut, its head too; many pages of a list cost one connection."""

    async def test(server: Server, client: ApiClient) -> None:
        server.on("list", PATH, Bytes(WATCH_HEAD + frames + LAST, cut=cut))
        for _ in range(3):
            async with client.stream(PATH, read_timeout=5, total_timeout=10) as body:
                assert reads_past_aiohttp(body)
                assert await whole(body) == data
        assert len(server.connections) == 1

    run(test)


@pytest.mark.parametrize(
    "frames",
    [
        FRAMES + b"0\r\nDigest: x\r\n\r\n",
        b"1;a=b\r\n" + FRAMES[3:] + LAST,
        FRAMES + b"0004;x\r\nABCD\r\n" + LAST,
    ],
    ids=["trailers", "extension", "late extension"],
)
def test_what_is_rare_in_chunks_is_understood(run: Callable[[Test], None], frames: bytes) -> None:
    """Trailers and extensions mean nothing, and break nothing."""

    async def test(server: Server, client: ApiClient) -> None:
        server.on("list", PATH, Bytes(WATCH_HEAD + frames))
        for _ in range(2):
            assert (await client.get(PATH)).startswith(DATA)
        assert len(server.connections) == 1

    run(test)


@pytest.mark.parametrize(
    ("sent", "then"),
    [
        (FRAMES, "close"),
        (FRAMES + b"5\r\nab", "close"),
        (FRAMES + b"0\r\n", "close"),
        (FRAMES + b"5\r\nab", "reset"),
        (FRAMES + b"x\r\n", "hang"),
        (FRAMES + b"3\r\nabc" + LAST, "hang"),
        (FRAMES + b"f" * 30, "hang"),
    ],
)
def test_a_body_that_ends_too_early_or_makes_no_sense_is_an_error(run: Callable[[Test], None], sent: bytes, then: Any) -> None:
    """What was read of it is never taken for the whole."""

    async def test(server: Server, client: ApiClient) -> None:
        server.on("list", PATH, Bytes(WATCH_HEAD + sent, then=then))
        with pytest.raises(NetworkError) as caught:
            await client.get(PATH)
        assert caught.value.kind == "reset"

    run(test)


@pytest.mark.parametrize("pieces", [[b"x" * 400_000], [b"x"] * 80_000], ids=["large", "small"])
def test_an_end_that_comes_with_the_last_bytes_is_seen(
    run: Callable[[Test], None], monkeypatch: pytest.MonkeyPatch, pieces: list[bytes]
) -> None:
    """The connection is lost before anybody has taken what it brought."""

    async def test(server: Server, client: ApiClient) -> None:
        server.on("list", PATH, Bytes(WATCH_HEAD + b"".join(map(chunk, pieces)) + LAST, then="close"))
        lost = event_after(monkeypatch, "connection_lost", lambda _: True)
        async with client.stream(PATH) as body:
            await lost.wait()
            assert await whole(body) == b"".join(pieces)

    run(test)


def test_a_server_that_falls_silent_is_left(run: Callable[[Test], None]) -> None:
    """After the seconds without a byte, or after those for the whole, whatever had come."""

    async def test(server: Server, client: ApiClient) -> None:
        server.on("list", PATH, Bytes(WATCH_HEAD + FRAMES + b"5\r\na", then="hang"))
        for read, total, kind in ((0.05, None, "silent"), (None, 0.2, "timeout")):
            with pytest.raises(NetworkError) as caught:
                async with client.stream(PATH, read_timeout=read, total_timeout=total) as body:
                    await whole(body)
            assert caught.value.kind == kind

    run(test)


class Sequence:
    """One answer after the other."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = answers

    async def give(self, peer: Peer) -> bool:
        return all([await answer.give(peer) for answer in self._answers])


class Flood:
    """Sends so many chunks, however long that takes."""

    def __init__(self, count: int, extension: bytes) -> None:
        self._count = count
        self._chunk = b"10000%b\r\n%b\r\n" % (extension, b"x" * 65536)

    async def give(self, peer: Peer) -> bool:
        await peer.send(WATCH_HEAD)
        for _ in range(self._count):
            await peer.send(self._chunk)
        await peer.send(LAST)
        return True


@pytest.mark.parametrize("extension", [b"", b";a=b"])
def test_a_reader_that_waits_lets_the_server_wait(run: Callable[[Test], None], monkeypatch: pytest.MonkeyPatch, extension: bytes) -> None:
    """No more than the buffer is received, that is not the server's silence, and nothing is missing afterwards."""

    async def test(server: Server, client: ApiClient) -> None:
        server.on("list", PATH, Flood(200, extension))
        paused = event_after(monkeypatch, "buffer_updated", lambda reader: reader._paused)
        async with client.stream(PATH, read_timeout=15) as body:
            await paused.wait()
            assert body._chunks is not None
            assert body._chunks._handler is not None
            assert body._chunks._handler._read_timeout_handle is None
            count = len(await whole(body))
        assert count == 200 * 65536

    run(test)


def test_who_waits_for_a_piece_may_be_cancelled(run: Callable[[Test], None]) -> None:
    """The connection is cut."""

    async def test(server: Server, client: ApiClient) -> None:
        stream = Stream()
        server.on("watch", PATH, stream)
        reading = asyncio.Event()

        async def read() -> None:
            async with client.stream(PATH, {"watch": "1"}) as body:
                reading.set()
                await whole(body)

        task = asyncio.ensure_future(read())
        await reading.wait()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await stream.closed.wait()

    run(test)


def test_who_waits_for_a_piece_is_told_of_an_abort(run: Callable[[Test], None]) -> None:
    """By a NetworkError; later readers are, too."""

    async def test(server: Server, client: ApiClient) -> None:
        server.on("watch", PATH, Stream())
        async with client.stream(PATH, {"watch": "1"}) as body:
            task = asyncio.ensure_future(whole(body))
            await asyncio.sleep(0)
            body.abort()
            for reader in (task, whole(body)):
                with pytest.raises(NetworkError) as caught:
                    await reader
                assert caught.value.kind == "reset"

    run(test)


@pytest.mark.parametrize("end", ["whole", "early", "left"])
def test_nothing_is_left_of_a_body(run: Callable[[Test], None], end: str) -> None:
    """Its buffer goes with it, without the garbage collector, and also where the connection stays."""

    def buffers() -> list[object]:
        return [found for found in gc.get_objects() if isinstance(found, Dechunker)]

    async def test(server: Server, client: ApiClient) -> None:
        server.on("list", PATH, Bytes(WATCH_HEAD + FRAMES + (LAST if end == "whole" else b""), then="hang" if end == "left" else "close"))

        async with client.stream(PATH) as body:
            assert buffers()
            with suppress(NetworkError):
                await (anext(body) if end == "left" else whole(body))
        assert not buffers()

    gc.disable()
    try:
        run(test)
    finally:
        gc.enable()


ODD = b"\r\n\r\n3\r\nabc\r\n"  # looks like the end of a head, and like a chunk


@pytest.mark.parametrize(
    ("head", "sent", "past_aiohttp"),
    [
        (WATCH_HEAD, chunk(ODD) + LAST, True),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + WATCH_HEAD, chunk(ODD) + LAST, True),
        (WATCH_HEAD.replace(b"\r\n", b"\n"), chunk(ODD) + LAST, False),
        (WATCH_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n"), chunk(gzip.compress(ODD)) + LAST, False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(ODD), ODD, False),
        (b"HTTP/1.0 200 OK\r\n\r\n", ODD, False),
    ],
    ids=["chunked", "continue", "bare newlines", "gzip", "length", "until closed"],
)
@pytest.mark.parametrize("cut", [0, 1])
def test_answers_of_every_form_are_read(run: Callable[[Test], None], head: bytes, sent: bytes, past_aiohttp: bool, cut: int) -> None:
    """By aiohttp alone where they are not in plain chunks."""

    async def test(server: Server, client: ApiClient) -> None:
        end = asyncio.Event()
        server.on(
            "list",
            PATH,
            Sequence(Bytes(head, cut=cut), Bytes(sent, cut=cut, when=end, then="close")),
            Bytes(head + sent, cut=cut, then="close"),
        )
        async with client.stream(PATH) as body:
            assert reads_past_aiohttp(body) == past_aiohttp
            end.set()
            assert await whole(body) == ODD
        assert await client.get(PATH) == ODD

    run(test)


@pytest.mark.parametrize("runner", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_tunnel_of_a_proxy_changes_nothing(runner: Callable[[Coroutine[Any, Any, None]], None]) -> None:
    """TLS to the server in what the proxy passes on."""

    tunnels = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tunnels.append(asyncio.current_task())
        target = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        host, _, port = target.rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        writer.close()

    async def main() -> None:
        proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        async with talk(True, proxy_url=url) as (server, client):
            server.on("list", PATH, Bytes(WATCH_HEAD + FRAMES + LAST))
            for _ in range(2):
                async with client.stream(PATH) as body:
                    assert reads_past_aiohttp(body)
                    assert await whole(body) == DATA
        proxy.close()
        await asyncio.gather(*filter(None, tunnels))

    runner(main())


async def test_without_what_it_relies_on_everything_is_read_by_aiohttp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of aiohttp costs speed and nothing else."""
    monkeypatch.setattr("fastdisco.chunk_reader._RELIED_ON", ("no_such_name",))
    async with talk(tls=False) as (server, client):
        server.on("list", PATH, Bytes(WATCH_HEAD + FRAMES + LAST))
        async with client.stream(PATH) as body:
            assert not reads_past_aiohttp(body)
            assert await whole(body) == DATA
