"""The state machine of one API path, against a server that does what it is told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from fastdisco.totals import Live
from fastdisco.url_watcher import State, Timings

from .replay import (
    Answer,
    Bytes,
    Request,
    Server,
    Stream,
    bookmark,
    error_event,
    event,
    listing,
    pod,
    response,
    status,
    watching,
)
from .rig import PODS, eventually, rig, script


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server() as made:
        yield made


async def test_lists_from_the_cache_then_watches_from_the_version_of_the_list(server: Server) -> None:
    """The first list takes what the server has in its cache; the watch starts at the list's own version, not at an object's."""
    script(server, [listing(9000, pod("p1", 10), pod("p2", 20))], [Stream()])
    async with rig(server, params={"labelSelector": "app in (a,b)"}) as it:
        watch = await server.wait_for("watch", PODS, 1)
        first = server.asked("list", PODS)[0]
        assert first.query == {"resourceVersion": "0", "resourceVersionMatch": "NotOlderThan", "labelSelector": "app in (a,b)"}
        assert watch.query["labelSelector"] == "app in (a,b)"
        assert watch.raw_query.endswith("watch=1&allowWatchBookmarks=1&timeoutSeconds=1539&resourceVersion=9000")
        assert it.names() == {"p1", "p2"}
        assert (it.watcher.listed, it.watcher.settled, it.watcher.state) == (True, True, State.WATCHING)


async def test_events_change_the_store_and_the_version(server: Server) -> None:
    """Added, modified and deleted objects, and bookmarks, move the version; a watch that was cut resumes there, without a list."""
    first, second = Stream(), Stream()
    script(server, [listing(100, pod("p1", 10))], [first, second])
    async with rig(server) as it:
        first.send(event("ADDED", pod("p2", 101)), event("DELETED", pod("p1", 102)), event("MODIFIED", pod("p2", 103, a="b")))
        await it.until(lambda: it.watcher.resource_version == "103")
        assert it.names() == {"p2"}
        first.send(bookmark(150))
        await it.until(lambda: it.watcher.resource_version == "150")
        first.send(b'{"type":"ADDED","object":{"meta')
        first.cut()
        assert (await server.wait_for("watch", PODS, 2)).query["resourceVersion"] == "150"
        assert len(server.asked("list", PODS)) == 1
        assert it.restarts("reset") == 1
        assert it.names() == {"p2"}
        assert it.metrics.role("pod").decode_errors == 0


async def test_a_healthy_watch_that_ends_is_resumed_at_once(server: Server) -> None:
    """One line is proof enough; nobody waits, nothing is logged as trouble."""
    script(server, [listing(1)], [watching(bookmark(5)), Stream()])
    async with rig(server, timings=Timings(first_backoff=3600.0, longest_backoff=3600.0)) as it:
        assert (await server.wait_for("watch", PODS, 2)).query["resourceVersion"] == "5"
        assert it.restarts("end") == 1


async def test_a_watch_that_ends_at_once_and_brought_nothing_backs_off(server: Server) -> None:
    """An empty stream again and again is no reason to hammer the server."""
    script(server, [listing(1)], [watching()])
    async with rig(server, timings=Timings(first_backoff=3600.0, longest_backoff=3600.0)) as it:
        await server.wait_for("watch", PODS, 1)
        await eventually(lambda: it.watcher.state is State.BACKING_OFF)
        assert it.watcher.next_retry is not None
        assert it.watcher.status()["state"] == "backing off"


async def test_gone_as_an_event_lists_again_at_the_last_version(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """410 inside the stream: one list that is no older than what is known, the difference applied, counted and logged once."""
    caplog.set_level(logging.INFO, "fastdisco")
    script(
        server,
        [listing(100, pod("p1", 10), pod("p2", 20)), listing(140, pod("p1", 10), pod("p3", 130))],
        [watching(error_event(410, "Expired", "too old resource version: 100 (120)")), Stream()],
    )
    async with rig(server, timings=Timings(first_backoff=3600.0, longest_backoff=3600.0)) as it:
        assert (await server.wait_for("watch", PODS, 2)).query["resourceVersion"] == "140"
        assert server.asked("list", PODS)[1].query == {"resourceVersion": "100", "resourceVersionMatch": "NotOlderThan"}
        assert it.names() == {"p1", "p3"}
        assert it.metrics.role("pod").stale_resource_versions == it.restarts("gone") == 1
        assert it.store.counters("pod")[:3] == (3, 1, 1)
    assert sum("too old resource version" in line for line in caplog.messages) == 1
    assert f"reloaded 2 objects from {PODS}: added 1, updated 1, removed 1" in caplog.messages


@pytest.mark.parametrize("reason", ["Expired", "Gone"])
async def test_gone_as_a_status_is_the_same_and_a_second_one_backs_off(server: Server, reason: str) -> None:
    """The first 410 lists at once; when the cached list leads to 410 again, it waits and then asks for the newest state."""
    script(server, [listing(100), listing(110), listing(200)], [status(410, reason), status(410, reason), Stream()])
    async with rig(server) as it:
        assert (await server.wait_for("watch", PODS, 3)).query["resourceVersion"] == "200"
        assert server.asked("list", PODS)[2].query == {}
        assert it.restarts("gone") == 2


async def test_a_version_ahead_of_the_server_is_tried_once_more_then_given_up(server: Server) -> None:
    """504 ResourceVersionTooLarge: after a moment the same version, then the newest state though its version is lower."""

    def too_large(request: Request) -> Answer | None:
        if request.query.get("resourceVersion") == "500":
            return status(504, "Timeout", "Timeout: Too large resource version: 500", cause="ResourceVersionTooLarge", retry_after="0")
        return None

    script(server, [listing(500, pod("p1", 10)), listing(400, pod("p2", 20))], [Stream()])
    server.choose(too_large)
    async with rig(server) as it:
        assert (await server.wait_for("watch", PODS, 3)).query["resourceVersion"] == "400"
        assert [request.query["resourceVersion"] for request in server.asked("watch", PODS)] == ["500", "500", "400"]
        assert [request.query for request in server.asked("list", PODS)][1:] == [{}]
        assert it.names() == {"p2"}


async def test_a_list_behind_what_is_known_is_treated_alike(server: Server) -> None:
    """A re-sync that is refused as too large asks for the newest state in the end; targets stay meanwhile."""
    too_large = status(504, "Timeout", "Timeout: Too large resource version: 500, current: 400", cause="ResourceVersionTooLarge")
    script(server, [listing(500, pod("p1", 10)), too_large, too_large, listing(400, pod("p1", 10))], [status(410, "Expired"), Stream()])
    async with rig(server) as it:
        await server.wait_for("list", PODS, 4)
        assert it.names() == {"p1"}
        assert (await server.wait_for("watch", PODS, 2)).query["resourceVersion"] == "400"
        assert [request.query.get("resourceVersion") for request in server.asked("list", PODS)] == ["0", "500", "500", None]


async def test_an_error_event_resumes_at_the_same_version(server: Server) -> None:
    """500 and 429 inside the stream are the server's trouble: no list, the cache stays."""
    script(
        server,
        [listing(100, pod("p1", 10))],
        [watching(error_event(500, "InternalError", "no leader")), watching(error_event(429, "TooManyRequests")), Stream()],
    )
    async with rig(server) as it:
        assert (await server.wait_for("watch", PODS, 3)).query["resourceVersion"] == "100"
        assert len(server.asked("list", PODS)) == 1
        assert it.restarts("error") == 2
        assert it.names() == {"p1"}


async def test_an_error_500_that_goes_on_is_ended_by_a_list(server: Server) -> None:
    """A server that cannot get past one version is asked for a list."""
    failing = watching(error_event(500, "InternalError"))
    script(server, [listing(100), listing(200)], [failing, failing, Stream()])
    async with rig(server, timings=Timings(first_backoff=0.001, longest_backoff=0.001, error_500_for=0.0)):
        await server.wait_for("list", PODS, 2)
        assert server.asked("list", PODS)[1].query["resourceVersion"] == "100"


async def test_an_outage_keeps_everything_and_ends_by_itself(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """While nobody listens the cache stays and the log hears of it once; afterwards the watch goes on where it was."""
    stream, after = Stream(), Stream()
    script(server, [listing(100, pod("p1", 10))], [stream, after])
    async with rig(server) as it:
        stream.send(bookmark(100))
        await stream.opened.wait()
        await it.until(lambda: it.watcher._healthy)
        await server.refuse()
        await eventually(lambda: it.restarts("reset") >= 5)
        assert it.names() == {"p1"}
        assert "connect" in it.watcher.last_error.lower()
        await server.listen()
        await after.opened.wait()
        assert len(server.asked("list", PODS)) == 1
        after.send(bookmark(101))
        await it.until(lambda: it.watcher.last_error == "")
    assert sum(f"cannot watch {PODS}" in line for line in caplog.messages) == 1


async def test_retry_after_is_a_lower_bound(server: Server) -> None:
    """A server that asks for an hour gets it, whatever the own delay would be."""
    headers = {"Content-Type": "text/plain", "Retry-After": "3600"}
    script(server, [Bytes(response(429, b"Too many requests, please try again later.", headers))], [])
    async with rig(server) as it:
        await server.wait_for("list", PODS, 1)
        await eventually(lambda: it.watcher.next_retry is not None)
        assert it.watcher._recovery.delay >= 3600
        assert "please try again later" in it.watcher.last_error
        assert not it.watcher.settled


async def test_who_may_not_list_is_settled_and_asked_again(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """403 is final for now; when the permission comes, so do the objects."""
    allowed = asyncio.Event()
    script(server, [status(403, "Forbidden", "pods is forbidden"), Bytes(listing(7, pod("p1", 1)).data, when=allowed)], [Stream()])
    async with rig(server) as it:
        await it.until(lambda: it.watcher.settled)
        assert (it.watcher.listed, it.watcher.refused and it.watcher.refused.code) == (False, 403)
        assert "pods is forbidden" in str(it.watcher.refused)
        allowed.set()
        await it.until(lambda: it.watcher.listed)
        assert it.watcher.refused is None
        assert it.names() == {"p1"}
    assert sum("pods is forbidden" in line for line in caplog.messages) == 1


async def test_who_may_list_but_not_watch_is_told_so(server: Server) -> None:
    """The list stays, the watch is tried at the longest delay."""
    script(server, [listing(7, pod("p1", 1))], [status(403, "Forbidden", "cannot watch"), Stream()])
    async with rig(server) as it:
        await it.until(lambda: it.watcher.refused is not None)
        assert it.watcher.listed
        await it.until(lambda: it.watcher.refused is None)
        assert len(server.asked("list", PODS)) == 1


async def test_401_is_not_settled_and_retried(server: Server) -> None:
    """Credentials may come; nothing is removed meanwhile."""
    unauthorized = status(401, "Unauthorized", "Unauthorized")
    script(server, [unauthorized, unauthorized, listing(7, pod("p1", 1))], [Stream()])
    async with rig(server) as it:
        await it.until(lambda: it.watcher.listed)
        assert it.metrics.requests["401"] == 2


SLICES = ("/apis/discovery.k8s.io/v1/endpointslices", "/apis/discovery.k8s.io/v1beta1/endpointslices")


async def test_the_older_api_is_used_only_where_the_newer_does_not_exist(server: Server) -> None:
    """An old server: the group version is 404 as well. The newer one is tried again at each list."""
    script(server, [listing(1), listing(2)], [status(410, "Expired"), Stream()], SLICES[1])
    async with rig(server, kind="endpointslice", paths=SLICES) as it:
        await server.wait_for("watch", SLICES[1], 2)
        assert it.watcher.path == SLICES[1]
        assert [request.path for request in server.requests[:3]] == [SLICES[0], "/apis/discovery.k8s.io/v1", SLICES[1]]
        assert len(server.asked("list", SLICES[0])) == 2


async def test_a_spurious_404_does_not_lead_to_the_older_api(server: Server) -> None:
    """The group version is there, so the 404 is what it is; v1 is asked again."""
    script(server, [status(404), listing(1)], [Stream()], SLICES[0])
    server.on("list", "/apis/discovery.k8s.io/v1", Bytes(response(200, b"{}")))
    async with rig(server, kind="endpointslice", paths=SLICES) as it:
        await server.wait_for("watch", SLICES[0], 1)
        assert not server.asked("list", SLICES[1])
        assert it.watcher.listed


async def test_a_resource_that_no_version_has_is_refused(server: Server) -> None:
    """404 from all of them settles the watcher."""
    async with rig(server, kind="endpointslice", paths=SLICES) as it:
        await it.until(lambda: it.watcher.settled)
        assert it.watcher.refused is not None
        assert it.watcher.refused.code == 404


async def test_a_silent_watch_is_probed_and_resumed(server: Server) -> None:
    """Versions that have not gone back: the watch goes on from ours, by a new connection."""
    script(server, [listing(100), listing(120)], [Stream()])
    async with rig(server, timings=Timings(first_backoff=0.002, longest_backoff=0.01, silent_after=0.05)) as it:
        assert (await server.wait_for("watch", PODS, 2)).query["resourceVersion"] == "100"
        probe = server.asked("list", PODS)[1]
        assert probe.query == {"limit": "1"}
        assert it.restarts("silent") >= 1


async def test_a_silent_watch_of_a_server_that_was_set_back_lists_anew(server: Server) -> None:
    """etcd restored from a backup: the version went back, and only a list without a version finds that out."""
    script(server, [listing(1200, pod("p1", 10)), listing(1001, pod("p2", 1001))], [Stream()])
    async with rig(server, timings=Timings(first_backoff=0.002, longest_backoff=0.01, silent_after=0.05)) as it:
        assert (await server.wait_for("watch", PODS, 2)).query["resourceVersion"] == "1001"
        assert [request.query for request in server.asked("list", PODS)[1:3]] == [{"limit": "1"}, {}]
        assert it.names() == {"p2"}


async def test_a_bookmark_below_ours_lists_anew(server: Server) -> None:
    """Versions that go back inside a stream are noticed there; the watch is left at once."""
    stream = Stream()
    script(server, [listing(1200, pod("p1", 10)), listing(1001, pod("p2", 1001))], [stream, Stream()])
    async with rig(server) as it:
        stream.send(bookmark(1000))
        assert (await server.wait_for("watch", PODS, 2)).query["resourceVersion"] == "1001"
        assert server.asked("list", PODS)[1].query == {}
        await stream.closed.wait()
        assert it.names() == {"p2"}


async def test_a_watch_that_outlives_its_time_is_cut(server: Server) -> None:
    """The server should have ended it; it is cut and resumed, without a list."""
    stream = Stream()
    script(server, [listing(100)], [stream, Stream()])
    timings = Timings(api_server_timeout=1.0, watch_grace=-0.9, first_backoff=0.001, longest_backoff=0.01)
    async with rig(server, timings=timings) as it:
        await server.wait_for("watch", PODS, 2)
        await stream.closed.wait()
        assert it.restarts("timeout") >= 1
        assert len(server.asked("list", PODS)) == 1


async def test_resync_lists_again_at_the_last_version(server: Server) -> None:
    """On demand, in the middle of a quiet watch; the list is no older than what is known."""
    first = Stream()
    script(server, [listing(100, pod("p1", 10)), listing(130, pod("p2", 120))], [first, Stream()])
    async with rig(server) as it:
        await first.opened.wait()
        it.watcher.resync()
        assert (await server.wait_for("watch", PODS, 2)).query["resourceVersion"] == "130"
        assert server.asked("list", PODS)[1].query["resourceVersion"] == "100"
        assert it.names() == {"p2"}
        assert sum(it.metrics.role("pod").restarts.values()) == 0


async def test_resync_ends_a_delay(server: Server) -> None:
    """Who was refused is asked again at once."""
    script(server, [status(403, "Forbidden"), listing(1)], [Stream()])
    async with rig(server, timings=Timings(longest_backoff=3600.0)) as it:
        await it.until(lambda: it.watcher.settled)
        await eventually(lambda: it.watcher.next_retry is not None)
        it.watcher.resync()
        await it.until(lambda: it.watcher.listed)


async def test_relists_at_an_interval_if_asked_to(server: Server) -> None:
    """The scheduled relist needs no failure."""
    script(server, [listing(100), listing(101)], [Stream()])
    async with rig(server, relist_interval=0.01):
        assert (await server.wait_for("list", PODS, 3)).query["resourceVersion"] == "101"


async def test_a_mistake_in_the_machine_is_survived(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """An exception that nobody foresaw is logged with its traceback, counted, and the watcher starts over."""
    script(server, [listing(100, pod("p1", 10)), listing(100, pod("p1", 10))], [Stream()])
    async with rig(server, start=False) as it:
        tell = it.watcher._on_settled

        def fail() -> None:
            raise ZeroDivisionError

        it.watcher._on_settled = fail
        it.watcher.start()
        await server.wait_for("list", PODS, 1)
        await eventually(lambda: it.restarts("exception"))
        it.watcher._on_settled = tell
        await server.wait_for("watch", PODS, 1)
        assert it.names() == {"p1"}
    assert any(record.exc_info for record in caplog.records)


async def test_stopping_cuts_the_connection(server: Server) -> None:
    """Nothing is left open, nothing is called any more, and the store keeps what it has."""
    stream = Stream()
    script(server, [listing(100, pod("p1", 10))], [stream])
    async with rig(server) as it:
        await stream.opened.wait()
        await it.watcher.stop()
        assert it.watcher.state is State.STOPPED
        calls = it.changes
        await stream.closed.wait()
        assert it.changes == calls
        assert it.names() == {"p1"}


async def test_measures_itself(server: Server) -> None:
    """Bytes, lists and the last contact are known to the metrics."""
    script(server, [listing(100, pod("p1", 10))], [Stream()])
    async with rig(server) as it:
        await server.wait_for("watch", PODS, 1)
        live = Live()
        it.watcher.measure(live)
        assert live.role("pod").url_watchers == 1
        assert live.role("pod").oldest_contact == it.watcher.last_contact > 0
        assert it.metrics.role("pod").bytes_received > 100
        assert sum(it.metrics.role("pod").list_buckets) == 1
