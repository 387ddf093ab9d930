"""One list or one watch: pages, chunks, what is bad in them, and how fast it is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from fastdisco._core import Store, Symbols
from fastdisco._json import Decoder
from fastdisco.api import ApiClient
from fastdisco.auth import Connection
from fastdisco.metrics import Metrics
from fastdisco.url_watcher import Timings, URLWatcher

from .replay import (
    WATCH_HEAD,
    Bytes,
    Server,
    Stream,
    chunk,
    event,
    listing,
    pod,
    response,
    status,
)
from .rig import PODS, QUICK, eventually, rig, script


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server() as made:
        yield made


async def test_an_unknown_event_is_counted_and_skipped(server: Server) -> None:
    """What a later server may invent ends nothing."""
    stream = Stream()
    script(server, [listing(1)], [stream])
    async with rig(server) as it:
        stream.send(event("SHUFFLED", pod("p1", 2)), event("ADDED", pod("p2", 3)))
        await it.until(lambda: it.names() == {"p2"})
        assert it.metrics.role("pod").decode_errors == 1


async def test_a_bad_object_is_skipped_counted_and_named(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """The others of the list and the rest of the stream are kept; the log has its name."""
    stream = Stream()
    script(server, [listing(5, pod("p1", 1), pod("p2", 2) | {"status": {"podIP": 7}}, pod("p3", 3))], [stream])
    async with rig(server) as it:
        await it.until(lambda: it.watcher.listed)
        assert it.names() == {"p1", "p3"}
        stream.send(b"{nonsense\n", event("ADDED", pod("p4", 6)))
        await it.until(lambda: "p4" in it.names())
        assert it.metrics.role("pod").decode_errors == 2
    assert any("default/p2" in line for line in caplog.messages)


async def test_log_lines_about_bad_objects_are_few(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """A thousand bad objects are a thousand in the metrics, not in the log."""
    stream = Stream()
    script(server, [listing(5, *(pod(f"p{i}", i) | {"status": []} for i in range(1000)))], [stream])
    async with rig(server) as it:
        await it.until(lambda: it.watcher.listed)
        assert it.metrics.role("pod").decode_errors == 1000
    assert sum("skipped the pod" in line for line in caplog.messages) <= 5


@pytest.mark.parametrize(
    "broken",
    [
        Bytes(response(200, b'{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"p9","namespace":"default"}}')),
        Bytes(response(200, b'{"metadata":{"resourceVersion":"7"},"items":[', {"Content-Length": "9999"}), then="close"),
        Bytes(WATCH_HEAD + chunk(b'{"metadata":{"resourceVersion":"7"},"items":['), then="reset"),
        Bytes(response(200, b"")),
        Bytes(response(200, b"<html>please log in</html>")),
        Bytes(response(200, b'{"metadata":{},"items":[]}')),
        Bytes(response(200, b'{"items":[]}')),
        status(500, "InternalError"),
        Bytes(response(503, b"upstream unavailable")),
        Bytes(b"", then="close"),
        Bytes(b"", then="reset"),
        Bytes(b"SSH-2.0-OpenSSH_9.2\r\n", then="close"),
    ],
    ids=["no-end", "cut", "reset", "empty", "html", "no-version", "no-metadata", "500", "503", "closed", "reset-at-once", "no-http"],
)  # fmt: skip
async def test_a_failed_list_leaves_everything_as_it_was(server: Server, broken: Bytes) -> None:
    """Truncated, empty, versionless or refused: it is tried again, and nothing is ever removed because of it."""
    good = listing(100, pod("p1", 10), pod("p2", 20))
    script(server, [good, broken, broken, listing(140, pod("p1", 10))], [status(410, "Expired"), Stream()])
    async with rig(server) as it:
        for count in (3, 4):
            await server.wait_for("list", PODS, count)
            assert it.names() == {"p1", "p2"}
        await server.wait_for("watch", PODS, 2)
        assert it.names() == {"p1"}


async def test_pages_are_followed_with_nothing_but_the_token(server: Server) -> None:
    """A continue is followed although no limit was sent; the token stands alone with selectors."""
    script(server, [listing(9, pod("p1", 1), token="a/b+c="), listing(9, token="next"), listing(9, pod("p2", 2))], [Stream()])
    async with rig(server, params={"fieldSelector": "spec.nodeName=n"}) as it:
        assert (await server.wait_for("watch", PODS, 1)).query["resourceVersion"] == "9"
        assert [request.query.get("continue") for request in server.asked("list", PODS)] == [None, "a/b+c=", "next"]
        assert server.asked("list", PODS)[1].query == {"fieldSelector": "spec.nodeName=n", "continue": "a/b+c="}
        assert it.names() == {"p1", "p2"}


async def test_an_expired_page_starts_over_without_pages(server: Server) -> None:
    """The inconsistent token that the Status offers is not used."""
    script(server, [listing(9, pod("p1", 1), token="t"), status(410, "Expired"), listing(10, pod("p2", 2))], [Stream()])
    async with rig(server, list_limit=1) as it:
        await server.wait_for("watch", PODS, 1)
        assert [request.query.get("limit") for request in server.asked("list", PODS)] == ["1", "1", None]
        assert it.names() == {"p2"}


async def test_half_a_line_again_and_again_is_silence(server: Server) -> None:
    """Bytes that never become a line do not keep a dead watch alive."""

    class Trickle:
        async def give(self, peer: Any) -> bool:
            await peer.send(WATCH_HEAD + chunk(b'{"type":"'))
            while True:
                await peer.send(chunk(b"A"))
                await asyncio.sleep(0.01)

    script(server, [listing(100)], [Trickle()])
    async with rig(server, timings=Timings(silent_after=0.08)) as it:
        await server.wait_for("watch", PODS, 2)
        assert it.restarts("silent") >= 1


async def test_a_list_without_a_byte_is_given_up(server: Server) -> None:
    """An answer that never comes is a failed list, tried again on a new connection."""
    script(server, [Bytes(b"", then="hang"), Bytes(listing(1).data[:-5], then="hang"), listing(100)], [Stream()])
    async with rig(server, timings=Timings(first_backoff=0.001, longest_backoff=0.01, read_timeout=0.05)) as it:
        await it.until(lambda: it.watcher.listed)
        assert len(server.asked("list", PODS)) == 3


async def test_lists_in_flight_are_capped(server: Server) -> None:
    """Fifty watchers that start over together do not ask for fifty lists at a time."""
    metrics, store = Metrics(), Store(Symbols())
    client = ApiClient(Connection(server.url), metrics=metrics, lists_in_flight=3)
    watchers = []
    for number in range(50):
        path = f"/api/v1/namespaces/n{number}/pods"
        script(server, [listing(1)], [Stream()], path)
        watchers.append(URLWatcher("pod", f"n{number}", (path,), {}, client, Decoder(store, "pod"), metrics, timings=QUICK))
    for watcher in watchers:
        watcher.start()
    async with asyncio.timeout(20):
        for watcher in watchers:
            await server.wait_for("watch", watcher.path, 1)
    assert server.most_lists <= 3
    assert len(server.connections) >= 50
    for watcher in watchers:
        await watcher.stop()
    await client.close()


async def test_a_burst_is_read_without_holding_the_loop(server: Server) -> None:
    """Chunks of any size are decoded slice by slice; others have their turns in between."""
    script(server, [listing(100, *(pod(f"p{i}", i, filler="x" * 1000) for i in range(2000)))], [Stream()])
    turns = 0
    async with rig(server, timings=Timings(feed_slice=4096, apply_slice=10)) as it:
        while not it.watcher.listed:
            await asyncio.sleep(0)
            turns += 1
    assert turns > 400


LAST = orjson.dumps(event("ADDED", pod("p2", 3)))
"""A whole line that no newline follows."""


@pytest.mark.parametrize("ending", ["reset", "resync"])
async def test_a_last_line_without_a_newline_is_told_however_the_watch_ends(server: Server, ending: str) -> None:
    """Its object is in the store and its version reached: no later event would tell of it."""
    stream, later = Stream(), Stream()
    script(server, [listing(1), Bytes(b"", then="hang")], [stream, later])
    async with rig(server) as it:
        stream.send(event("ADDED", pod("p1", 2)))
        await it.until(lambda: it.names() == {"p1"})
        before = it.metrics.role("pod").bytes_received
        stream.send(LAST)
        await eventually(lambda: it.metrics.role("pod").bytes_received > before)
        assert it.names() == {"p1"}
        told = it.changes
        if ending == "reset":
            stream.cut()
        else:
            it.watcher.resync()
        await eventually(lambda: it.names() == {"p1", "p2"})
        assert it.changes == told + 1
        assert it.watcher.resource_version == "3"


async def test_an_error_in_a_last_line_is_none_of_the_next_watch(server: Server) -> None:
    """The watch that was cut off there has failed already; the next one starts with nothing taken over."""
    stream, later = Stream(), Stream()
    script(server, [listing(1)], [stream, later])
    async with rig(server) as it:
        stream.send(event("ADDED", pod("p1", 2)))
        await it.until(lambda: it.names() == {"p1"})
        before = it.metrics.role("pod").bytes_received
        stream.send(orjson.dumps({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}))
        await eventually(lambda: it.metrics.role("pod").bytes_received > before)
        stream.cut()
        later.send(event("ADDED", pod("p2", 3)))
        await it.until(lambda: it.names() == {"p1", "p2"})
        assert it.restarts("gone") == 0
