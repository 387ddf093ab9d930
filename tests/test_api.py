"""The session of one connection: what it sends, what it gives, and what it makes of failure."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
import uvloop

from fastdisco.api import ApiClient, api_error
from fastdisco.auth import Connection
from fastdisco.config import Authorization, TLSConfig
from fastdisco.errors import ApiError, NetworkError
from fastdisco.metrics import Metrics

from .replay import WATCH_HEAD, Answer, Bytes, Peer, Request, Server, Stream, chunk, listing, response, status

TLS = Path(__file__).parent / "data" / "tls"
PATH = "/api/v1/pods"


@asynccontextmanager
async def client_of(server: Server, **options: Any) -> AsyncIterator[ApiClient]:
    names = ("authorization", "tls_config", "headers", "proxy_url")
    connection = Connection(options.pop("url", server.url), **{name: options.pop(name) for name in names if name in options})
    client = ApiClient(connection, **options)
    try:
        async with asyncio.timeout(20):
            yield client
    finally:
        await client.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server() as made:
        yield made


async def test_what_is_sent(server: Server) -> None:
    """JSON without compression, under our own name, with parameters that arrive as they were meant."""
    server.on("list", PATH, listing(1))
    params = {"labelSelector": "a in (b,c),d!=e+f", "continue": "x/y+z=", "resourceVersion": "0"}
    async with client_of(server, headers=("X-Team: a",)) as client:
        await client.get(PATH, params)
    [request] = server.requests
    assert request.query == params
    assert request.headers["accept"] == "application/json"
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["user-agent"].startswith("fastdisco")
    assert request.headers["x-team"] == "a"
    assert "authorization" not in request.headers


async def test_the_address_may_have_a_prefix(server: Server) -> None:
    """As behind Rancher."""
    server.on("list", "/k8s/clusters/c1" + PATH, Bytes(response(200, b"{}")))
    async with client_of(server, url=server.url + "/k8s/clusters/c1") as client:
        assert await client.get(PATH) == b"{}"


async def test_a_body_comes_in_chunks_and_whole(server: Server) -> None:
    """All bytes in their order, however large."""
    data = orjson.dumps(["x" * 1000] * 3000)
    server.on("list", PATH, Bytes(response(200, data)))
    async with client_of(server) as client:
        async with client.stream(PATH) as body:
            assert body.status == 200
            chunks = [piece async for piece in body]
        assert b"".join(chunks) == data == await client.get(PATH)
        assert len(server.connections) == 1


async def test_a_prefix_of_a_body_is_never_taken_for_the_whole(server: Server) -> None:
    """Too few bytes, a chunk without end, a reset."""
    server.on(
        "list",
        PATH,
        Bytes(response(200, b"[1", {"Content-Length": "10"}), then="close"),
        Bytes(WATCH_HEAD + chunk(b"[1"), then="close"),
        Bytes(WATCH_HEAD + b"5\r\n[1", then="reset"),
    )
    async with client_of(server) as client:
        for _ in range(3):
            with pytest.raises(NetworkError) as caught:
                await client.get(PATH)
            assert caught.value.kind == "reset"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (status(403, "Forbidden", "pods is forbidden"), "status code 403: pods is forbidden"),
        (Bytes(response(403, orjson.dumps({"kind": "Status", "message": "no"}, option=orjson.OPT_INDENT_2))), "status code 403: no"),
        (Bytes(response(502, b"<html>\n<h1>Bad Gateway</h1>\n</html>")), "status code 502: <html> <h1>Bad Gateway</h1> </html>"),
        (Bytes(response(500, b"")), "status code 500"),
        (Bytes(response(500, b"\xff\xfe" + b"x" * (1 << 20))), "status code 500: \ufffd\ufffdx"),
        (Bytes(response(500, b"[]")), "status code 500: []"),
        (Bytes(response(500, b'{"message":5,"details":[],"code":"x"}')), "status code 500"),
        (Bytes(response(503, b"half", {"Content-Length": "99"}), then="close"), "status code 503: half"),
        (Bytes(response(503, b"half", {"Content-Length": "99"}), then="hang"), "status code 503: half"),
    ],
)
async def test_an_error_says_what_the_server_said(server: Server, answer: Answer, message: str) -> None:
    """A Status, on one line or many, or whatever a proxy put in its place; a bounded part of it, and no waiting for the rest."""
    server.on("list", PATH, answer)
    async with client_of(server, read_timeout=0.1) as client:
        with pytest.raises(ApiError) as caught:
            await client.get(PATH)
    assert str(caught.value).startswith(message)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [
        ("7", {}, 7.0),
        ("7", {"retryAfterSeconds": 3}, 7.0),
        (None, {"retryAfterSeconds": 3}, 3.0),
        ("0", {}, None),
        ("soon", {}, None),
        (None, {}, None),
        (None, {"retryAfterSeconds": "x"}, None),
    ],
)
def test_how_long_the_server_wants_to_be_left_alone(header: str | None, details: dict[str, object], seconds: float | None) -> None:
    """By its header, or by the Status."""
    assert api_error(429, orjson.dumps({"details": details}), header).retry_after == seconds


def test_a_date_says_it_too() -> None:
    """Proxies send it that way; dates in the past say nothing."""
    now = datetime.now(UTC)
    wait = api_error(503, b"", format_datetime(now + timedelta(seconds=100), usegmt=True)).retry_after
    assert wait is not None
    assert 90 < wait <= 100
    assert api_error(503, b"", format_datetime(now - timedelta(seconds=100), usegmt=True)).retry_after is None


@pytest.mark.parametrize(
    ("body", "too_large", "expired"),
    [
        ({"code": 504, "details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}}, True, False),
        ({"code": 504, "details": {"causes": [{"message": "Too large resource version"}]}}, True, False),
        ({"code": 504, "message": "Timeout: Too large resource version: 105, current: 100"}, True, False),
        ({"code": 504, "message": "Timeout"}, False, False),
        ({"code": 410, "reason": "Expired"}, False, True),
        ({"code": 410}, False, True),
        ({"reason": "Gone"}, False, True),
        ({"code": "410"}, False, False),
        ({}, False, False),
    ],
)
def test_an_error_event_is_understood(body: dict[str, object], too_large: bool, expired: bool) -> None:
    """In the forms of servers of all ages."""
    error = api_error(0, orjson.dumps(body))
    assert (error.too_large, error.expired) == (too_large, expired)


async def test_a_rotated_token_is_read_again_at_once_on_401(server: Server, tmp_path: Path) -> None:
    """One quick second try with what is in the file now."""
    file = tmp_path / "token"
    file.write_text("T1")

    def check(request: Request) -> Answer | None:
        if request.headers["authorization"] == "Bearer T2":
            return Bytes(response(200, b"{}"))
        file.write_text("T2")
        return status(401, "Unauthorized")

    server.choose(check)
    metrics = Metrics()
    async with client_of(server, authorization=Authorization(credentials_file=str(file)), metrics=metrics) as client:
        assert await client.get(PATH) == b"{}"
    assert metrics.requests == {"401": 1, "200": 1}


@pytest.mark.parametrize("authorization", [Authorization(credentials="T"), None])
async def test_401_is_tried_once_more_and_no_more(server: Server, authorization: Authorization | None) -> None:
    """A clock that is behind may refuse a good token once; without credentials there is nothing to try."""
    server.on("list", PATH, status(401, "Unauthorized", "Unauthorized"))
    async with client_of(server, authorization=authorization) as client:
        with pytest.raises(ApiError, match="Unauthorized"):
            await client.get(PATH)
    assert len(server.requests) == (2 if authorization else 1)


async def test_a_token_file_that_never_was_is_told(server: Server, tmp_path: Path) -> None:
    """The message names the file, and no request is made."""
    metrics = Metrics()
    async with client_of(server, authorization=Authorization(credentials_file=str(tmp_path / "no")), metrics=metrics) as client:
        with pytest.raises(NetworkError, match=f"cannot read {tmp_path}/no"):
            await client.get(PATH)
    assert not server.requests
    assert metrics.requests == {"error": 1}


@pytest.mark.parametrize(
    "options",
    [
        {"url": "http://127.0.0.1:99999"},
        {"url": "http://[x"},
        {"url": f"http://{'a' * 64}.example"},
        {"headers": ("A: b\nc",)},
        {"proxy_url": "http://u:SECRET@[x"},
    ],
)
async def test_a_request_that_cannot_be_made_is_a_failure_like_any_other(server: Server, options: dict[str, Any]) -> None:
    """Whatever the libraries below make of it; it is counted, and shows no secret."""
    metrics = Metrics()
    async with client_of(server, **options, metrics=metrics) as client:
        with pytest.raises(NetworkError) as caught:
            await client.get(PATH)
    assert caught.value.kind == "connect"
    assert "SECRET" not in str(caught.value)
    assert metrics.requests == {"error": 1}


async def test_kinds_of_failure(server: Server) -> None:
    """Nobody listens; nobody answers; nobody goes on; it takes too long; it is no HTTP."""
    server.on(
        "list",
        PATH,
        Bytes(b"", then="hang"),
        Bytes(response(200, b"[", {"Content-Length": "9"}), then="hang"),
        Bytes(response(200, b"[", {"Content-Length": "9"}), then="hang"),
        Bytes(b"220 smtp\r\n\r\n", then="close"),
    )

    async def read(read_timeout: float | None, total_timeout: float | None) -> None:
        async with client.stream(PATH, read_timeout=read_timeout, total_timeout=total_timeout) as body:
            async for _ in body:
                pass

    async def kind(read_timeout: float | None = None, total_timeout: float | None = None) -> str:
        with pytest.raises(NetworkError) as caught:
            await read(read_timeout, total_timeout)
        return caught.value.kind

    async with client_of(server) as client:
        assert await kind(read_timeout=0.05) == "silent"
        assert await kind(read_timeout=0.05) == "silent"
        assert await kind(total_timeout=0.05) == "timeout"
        assert await kind(read_timeout=5.0) == "reset"
        await server.refuse()
        assert await kind(read_timeout=5.0) == "connect"


async def test_a_connection_that_cannot_be_made_times_out(server: Server) -> None:
    """TCP is there and TLS never comes."""
    url = server.url.replace("http:", "https:")
    async with client_of(server, url=url, tls_config=TLSConfig(insecure_skip_verify=True), connect_timeout=0.05) as client:
        with pytest.raises(NetworkError) as caught:
            await client.get(PATH)
    assert caught.value.kind == "timeout"


async def test_any_number_of_watches_beside_each_other(server: Server) -> None:
    """The connector has no limit at which later requests would wait in silence."""
    streams = [Stream() for _ in range(150)]
    server.on("watch", PATH, *streams)

    async def watch() -> None:
        async with client.stream(PATH, {"watch": "1"}) as body:
            async for _ in body:
                pass

    async with client_of(server) as client:
        tasks = [asyncio.ensure_future(watch()) for _ in streams]
        await asyncio.gather(*(stream.opened.wait() for stream in streams))
        for stream in streams:
            stream.end()
        await asyncio.gather(*tasks)


def server_tls(name: str, ca: str | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / f"{name}.pem", TLS / f"{name}.key")
    if ca is not None:
        context.load_verify_locations(TLS / f"{ca}.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def config(**options: Any) -> TLSConfig:
    return TLSConfig(**({"ca_file": str(TLS / "ca.pem")} | options))


@pytest.mark.parametrize(
    ("name", "tls_config", "trusted"),
    [
        ("server", config(), True),
        ("server", config(ca_file="", ca=(TLS / "ca.pem").read_text()), True),
        ("server", config(server_name="kubernetes"), True),
        ("server", config(server_name="elsewhere"), False),
        ("server2", config(), False),
        ("elsewhere", config(), False),
        ("elsewhere", config(server_name="elsewhere"), True),
        ("elsewhere", TLSConfig(insecure_skip_verify=True), True),
        ("server", TLSConfig(), False),
    ],
)
async def test_whom_it_trusts(name: str, tls_config: TLSConfig, trusted: bool) -> None:
    """The cluster's own simple authority is enough; a wrong authority or a wrong name never is."""
    async with Server(server_tls(name)) as server:
        server.on("list", PATH, Bytes(response(200, b"{}")))
        async with client_of(server, tls_config=tls_config) as client:
            if trusted:
                assert await client.get(PATH) == b"{}"
            else:
                with pytest.raises(NetworkError, match="cannot trust") as caught:
                    await client.get(PATH)
                assert caught.value.kind == "connect"


async def test_a_client_certificate_is_shown() -> None:
    """To a server that asks for one."""
    async with Server(server_tls("server", ca="ca")) as server:
        server.on("list", PATH, Bytes(response(200, b"{}")))
        async with client_of(server, tls_config=config(cert_file=str(TLS / "client.pem"), key_file=str(TLS / "client.key"))) as client:
            assert await client.get(PATH) == b"{}"
        async with client_of(server, tls_config=config()) as client:
            with pytest.raises(NetworkError):
                await client.get(PATH)


async def test_a_new_authority_is_taken_for_new_connections(tmp_path: Path) -> None:
    """The CA file changes with the server's certificate; nobody restarts anything."""
    file = tmp_path / "ca.crt"
    file.write_bytes((TLS / "ca.pem").read_bytes())
    async with Server(server_tls("server")) as one, Server(server_tls("server2")) as two:
        for server in (one, two):
            server.on("list", PATH, Bytes(response(200, b"{}"), then="close"))
        async with client_of(one, tls_config=TLSConfig(ca_file=str(file))) as client:
            await client.get(PATH)
            client._base = two.url
            with pytest.raises(NetworkError):
                await client.get(PATH)
            file.write_bytes((TLS / "ca2.pem").read_bytes())
            await client.get(PATH)


async def test_a_proxy_is_used_if_it_is_named(server: Server) -> None:
    """It is asked for the whole address."""
    server.on("list", PATH, Bytes(response(200, b"{}")))
    async with client_of(server, url="http://203.0.113.1:8080", proxy_url=server.url) as client:
        assert await client.get(PATH) == b"{}"
    assert server.requests[0].headers["host"] == "203.0.113.1:8080"


class Flood:
    """Sends without end, and never says goodbye."""

    def __init__(self) -> None:
        self.cut = asyncio.Event()

    async def give(self, peer: Peer) -> bool:
        try:
            await peer.send(WATCH_HEAD)
            while True:
                await peer.send(chunk(b"x" * 65536))
        except ConnectionError:
            pass
        self.cut.set()
        return False


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("tls", [False, True])
def test_leaving_a_body_cuts_its_connection_at_once(run: Callable[[Coroutine[Any, Any, None]], None], tls: bool) -> None:
    """Also by TLS under uvloop, which else would wait for the peer's goodbye for up to 30 s."""

    async def leave() -> None:
        flood = Flood()
        async with Server(server_tls("server") if tls else None) as server:
            server.on("watch", PATH, flood)
            async with client_of(server, tls_config=config()) as client:
                async with client.stream(PATH, {"watch": "1"}) as body:
                    await anext(body)
                async with asyncio.timeout(5):
                    await flood.cut.wait()

    run(leave())
