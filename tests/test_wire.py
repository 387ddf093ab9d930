"""What real API servers sent (Kubernetes 1.20 and 1.37), byte for byte: the right objects, errors and recoveries, however it is cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import pytest

from fastdisco._core import Store, Symbols
from fastdisco._json import Decoder, decode_object
from fastdisco.api import ApiClient, api_error
from fastdisco.auth import Connection
from fastdisco.errors import ApiError
from fastdisco.recovery import State

from .replay import WIRE, Server, Stream, listing, recording
from .rig import PODS, rig, script

KINDS = {
    "pods": "pod", "nodes": "node", "services": "service", "endpoints": "endpoints", "endpointslices": "endpointslice",
    "ingresses": "ingress", "namespaces": "namespace",
}  # fmt: skip
LISTS = sorted(
    str(path.relative_to(WIRE)) for folder in (WIRE, WIRE / "1.37") for path in folder.glob("list-*.json") if path.stem.count("-") == 1
)
WATCHES = {
    "watch-pods.http": "pod", "watch-endpoints.http": "endpoints", "watch-rv0.http": "pod", "watch-server-sigterm.http": "pod",
    "watch-rv-too-large.http": "pod", "1.37/watch-pods.http": "pod", "1.37/watch-pods-gzip-asked.http": "pod",
    "1.37/watch-history.http": "pod", "1.37/watch-rv-too-large.http": "pod",
}  # fmt: skip
ERRORS = {
    "401-bad-token.http": (401, "Unauthorized"), "403-anonymous.http": (403, "pods is forbidden: User"), "404-pod.http": (404, "not found"),
    "404-unknown-group-version.http": (404, "could not find the requested resource"), "list-bad-selector.http": (400, "unable to parse"),
    "list-bad-field-selector.http": (400, "field label not supported"), "watch-bad-rv.http": (500, "invalid syntax"),
    "list-410-expired-continue.http": (410, "too old"), "list-rv-too-large.http": (504, "Too large resource version"),
    "1.37/401-bad-token.http": (401, "Unauthorized"), "1.37/403-no-rights.http": (403, "pods is forbidden: User"),
    "1.37/list-410-expired-continue.http": (410, "too old"), "1.37/list-rv-too-large.http": (504, "Too large resource version"),
    "1.37/watchlist-no-match-422.http": (422, "sendInitialEvents"),
}  # fmt: skip
PERIOD = 509
"""Cuts come at this distance, once for each place at which they can begin: together they are at every byte."""

Objects = dict[tuple[str, str], dict[str, Any]]


def kind_of(name: str) -> str:
    return KINDS[name.rpartition("/")[2].removeprefix("list-").partition("-")[0].partition(".")[0]]


def body_of(name: str) -> bytes:
    """What is left of a recorded response without HTTP."""
    raw = (WIRE / name).read_bytes()
    if not name.endswith(".http"):
        return raw
    head, _, rest = raw.partition(b"\r\n\r\n")
    if b"Transfer-Encoding: chunked" not in head:
        return rest
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        body, rest = body + rest[:length], rest[length + 2 :]
    return body


def key_of(obj: Mapping[str, Any]) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def listed(body: bytes) -> Objects:
    return {key_of(item): item for item in orjson.loads(body)["items"]}


def watched(body: bytes, objects: Objects) -> tuple[Objects, str]:
    """The objects after the events, and the newest version; the initial events of a watch at 0 come in any order of versions."""
    after, version = dict(objects), 0
    for line in body.splitlines():
        event = orjson.loads(line)
        if event["type"] != "ERROR":
            version = max(version, int(event["object"]["metadata"]["resourceVersion"]))
        if event["type"] == "DELETED":
            after.pop(key_of(event["object"]), None)
        elif event["type"] in ("ADDED", "MODIFIED"):
            after[key_of(event["object"])] = event["object"]
    return after, str(version or "")


def differences(kept: Any, sent: Any, path: str = "") -> Iterator[str]:
    """Where something kept is not what was sent; what labels do not need is not kept."""
    if isinstance(kept, Mapping):
        for key, value in kept.items():
            if not isinstance(sent, Mapping) or key not in sent:
                yield f"{path}.{key} was not sent"
            else:
                yield from differences(value, sent[key], f"{path}.{key}")
    elif isinstance(kept, list) and path.rpartition(".")[2] in ("conditions", "ownerReferences") and isinstance(sent, list):
        for one in kept:  # only the one that decides is kept
            if not any(not list(differences(one, other)) for other in sent):
                yield f"{path} has {one}"
    elif isinstance(kept, list):
        if not isinstance(sent, list) or len(kept) != len(sent):
            yield f"{path} has {kept} for {sent}"
        else:
            for index, (one, other) in enumerate(zip(kept, sent, strict=True)):
                yield from differences(one, other, f"{path}[{index}]")
    elif kept != sent:
        yield f"{path} is {kept!r} for {sent!r}"


def check(kind: str, store: Store, expected: Objects) -> None:
    """The store holds these objects and no others, and what it keeps of them is what was sent."""
    assert store.objects(kind) == len(expected)
    for (namespace, name), sent in expected.items():
        kept = store.get(kind, namespace, name)
        assert kept is not None, (namespace, name)
        assert list(differences(kept, sent)) == []
        for field in ("labels", "annotations"):
            assert kept["metadata"].get(field, {}) == sent["metadata"].get(field, {})
        if kind == "pod":
            assert kept["status"].get("podIP") == sent["status"].get("podIP")
            assert [c["name"] for c in kept["spec"]["containers"]] == [c["name"] for c in sent["spec"]["containers"]]
            assert [c.get("ports", []) for c in kept["spec"]["containers"]] == [
                [{field: port[field] for field in ("name", "containerPort", "protocol") if field in port} for port in c.get("ports", [])]
                for c in sent["spec"]["containers"]
            ]


def pieces(body: bytes, period: int, first: int = 0) -> Iterator[bytes]:
    if first:
        yield body[:first]
    for start in range(first, len(body), period):
        yield body[start : start + period]


def read_list(kind: str, *pages: bytes, period: int = 1 << 30, first: int = 0) -> tuple[Decoder, Store]:
    store = Store(Symbols())
    decoder = Decoder(store, kind)
    decoder.begin_list()
    for number, page in enumerate(pages):
        if number:
            decoder.begin_page()
        for piece in pieces(page, period, first):
            decoder.feed(piece)
        _, token = decoder.end_page()
        assert bool(token) == (number < len(pages) - 1)
    while decoder.apply_list(5):
        pass
    assert decoder.take_errors() == []
    return decoder, store


def read_watch(kind: str, body: bytes, *, period: int = 1 << 30, first: int = 0) -> tuple[Decoder, Store]:
    store = Store(Symbols())
    decoder = Decoder(store, kind)
    decoder.begin_watch()
    lines = sum(decoder.feed(piece) for piece in pieces(body, period, first))
    assert decoder.end_watch() == lines == body.count(b"\n")
    assert decoder.take_errors() == []
    return decoder, store


@pytest.mark.parametrize("name", [*LISTS, "list-pods-gzip.http"])
def test_a_list_leads_to_its_objects_wherever_it_is_cut(name: str) -> None:
    """Whole, byte by byte, and with a cut at every byte; the version is the list's own."""
    kind, body = kind_of(name), body_of(name)
    expected = listed(body)
    for period in (1 << 30, 1, 2, 3, 64):
        decoder, store = read_list(kind, body, period=period)
        check(kind, store, expected)
        assert decoder.resource_version == orjson.loads(body)["metadata"]["resourceVersion"]
        assert decoder.list_counts == (len(expected), 0, 0)
    for first in range(PERIOD):
        _, store = read_list(kind, body, period=PERIOD, first=first)
        assert store.objects(kind) == len(expected)
        if first % 100 == 0:
            check(kind, store, expected)


def test_pages_lead_to_one_list() -> None:
    """Two recorded pages; the third, which the recording does not have, is a list without items."""
    first, second = body_of("list-pods-page1.json"), body_of("list-pods-page2.json")
    last = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"402"},"items":null}'
    _, store = read_list("pod", first, second, last, period=1000)
    check("pod", store, listed(first) | listed(second))


@pytest.mark.parametrize("name", WATCHES)
def test_a_watch_leads_to_its_objects_wherever_it_is_cut(name: str) -> None:
    """Events, bookmarks and the end; the version is that of the last line."""
    kind, body = WATCHES[name], body_of(name)
    expected, version = watched(body, {})
    for period in (1 << 30, 1, 2, 3, 64):
        decoder, store = read_watch(kind, body, period=period)
        check(kind, store, expected)
        assert decoder.resource_version == version
        assert decoder.unknown_events == 0
    for first in range(PERIOD):
        _, store = read_watch(kind, body, period=PERIOD, first=first)
        assert store.objects(kind) == len(expected)
        if first % 100 == 0:
            check(kind, store, expected)


@pytest.mark.parametrize("name", ["watch-410.http", "1.37/watch-410.http"])
def test_an_error_event_is_told_and_changes_nothing(name: str) -> None:
    """Whole or cut anywhere, the Status comes out as it was sent."""
    body = body_of(name)
    for period in (1 << 30, *range(1, 64)):
        decoder, store = read_watch("pod", body, period=period)
        [raw] = decoder.take_statuses()
        error = api_error(0, raw)
        assert (error.code, error.reason, error.expired) == (410, "Expired", True)
        assert "too old resource version" in str(error)
        assert store.objects("pod") == 0
        assert decoder.resource_version == ""


def test_a_single_object_is_what_a_list_has_of_it() -> None:
    """The answer to a GET and the item of a list give the same mapping."""
    body = body_of("get-pod.http")
    sent = orjson.loads(body)
    kept = decode_object("pod", body)
    assert list(differences(kept, sent)) == []
    assert kept["metadata"]["name"] == sent["metadata"]["name"]
    assert kept["status"]["podIP"] == sent["status"]["podIP"]


@pytest.mark.parametrize("name", ERRORS)
async def test_an_error_is_told_by_its_status(name: str) -> None:
    """Code, message and, where the server gives them, cause and delay; cut or whole."""
    code, message = ERRORS[name]
    for cut in (0, 1, 7):
        async with Server() as server:
            server.on("list", PODS, recording(name, cut=cut))
            client = ApiClient(Connection(server.url))
            with pytest.raises(ApiError, match=message) as caught:
                await client.get(PODS)
            await client.close()
        assert caught.value.code == code
        assert caught.value.expired == (code == 410)
        assert caught.value.too_large == (code == 504)
        assert caught.value.retry_after == (1.0 if code == 504 else None)


@pytest.mark.parametrize("cut", [0, 3, 13, 1000, 65536])
@pytest.mark.parametrize("folder", ["", "1.37/"])
async def test_a_recorded_life_of_a_watcher(folder: str, cut: int) -> None:
    """A list, a watch to its end, 410 in the next one, and the list again, over HTTP: the objects of each stage."""
    whole = recording(folder + "list-pods.json", cut=cut)
    at_last = listed(body_of(folder + "list-pods.json"))
    # The list of 1.37 was recorded after its watch.
    first, before = (listing(300), Objects()) if folder else (whole, at_last)
    after, version = watched(body_of(folder + "watch-pods.http"), before)
    watches = [recording(folder + name, cut=cut) for name in ("watch-pods.http", "watch-410.http")]
    async with Server() as server:
        script(server, [first, whole], [*watches, Stream()])
        async with rig(server) as it:
            assert (await server.wait_for("watch", PODS, 2)).query["resourceVersion"] == version
            check("pod", it.store, after)
            await server.wait_for("watch", PODS, 3)
            check("pod", it.store, at_last)
            assert [request.query["resourceVersion"] for request in server.asked("list", PODS)] == ["0", version]
            assert (it.restarts("gone"), it.restarts("error"), it.restarts("decode")) == (1, 0, 0)
            assert it.metrics.role("pod").decode_errors == 0


@pytest.mark.parametrize("name", [name for name in LISTS if "pods" not in name])
async def test_lists_of_every_kind_over_http(name: str) -> None:
    """Each kind by its path, in chunks of a few bytes."""
    kind, path = kind_of(name), f"/api/{name}"
    async with Server() as server:
        script(server, [recording(name, cut=100)], [Stream()], path)
        async with rig(server, kind=kind, paths=(path,)) as it:
            await server.wait_for("watch", path, 1)
            check(kind, it.store, listed(body_of(name)))


@pytest.mark.parametrize("folder", ["", "1.37/"])
async def test_recorded_refusals_and_the_way_out_of_them(folder: str) -> None:
    """Forbidden is settled; a version that is too large, then an expired page, end in a whole list."""
    forbidden = recording("403-anonymous.http" if not folder else "1.37/403-no-rights.http")
    async with Server() as server:
        script(
            server,
            [
                forbidden,
                listing(99999999),
                recording(folder + "list-rv-too-large.http"),
                recording(folder + "list-rv-too-large.http"),
                recording("list-pods-page1.json"),
                recording(folder + "list-410-expired-continue.http"),
                recording(folder + "list-pods.json"),
            ],
            [recording(folder + "watch-410.http"), Stream()],
        )
        async with rig(server) as it:
            await it.until(lambda: it.watcher.refused)
            await server.wait_for("watch", PODS, 2)
            assert it.watcher.state is State.WATCHING
            check("pod", it.store, listed(body_of(folder + "list-pods.json")))
            assert [request.query.get("resourceVersion") for request in server.asked("list", PODS)] == [
                "0", "0", "99999999", "99999999", None, None, None,
            ]  # fmt: skip


async def test_a_recorded_shutdown_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    """SIGTERM to the server in the middle of a watch cuts it short: resumed at the last version, without a list or a word."""
    _, version = watched(body_of("watch-server-sigterm.http"), {})
    async with Server() as server:
        script(server, [recording("list-pods.json")], [recording("watch-server-sigterm.http", then="close"), Stream()])
        async with rig(server) as it:
            assert (await server.wait_for("watch", PODS, 2)).query["resourceVersion"] == version
            assert len(server.asked("list", PODS)) == 1
            assert it.restarts("reset") == 1
    assert caplog.messages == []
