"""`--web.config.file`: who may ask, over what, and what every answer says besides."""

from __future__ import annotations

import asyncio
import base64
import logging
import resource
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import bcrypt
import pytest
import yaml
from aiohttp import web

from fastdisco.errors import ConfigError
from fastdisco.sidecar.connection import Limits
from fastdisco.sidecar.listening import Listener, default_limits, listen
from fastdisco.sidecar.passwords import NOBODY, Passwords, TooManyError
from fastdisco.sidecar.rate_limit import RateLimit
from fastdisco.sidecar.web_config import WebConfig

from .rig import eventually

TLS = Path(__file__).parent / "data" / "tls"
SERVER = {"cert_file": str(TLS / "server.pem"), "key_file": str(TLS / "server.key")}
CLIENTS = {"client_ca_file": str(TLS / "ca.pem"), "client_auth_type": "RequireAndVerifyClientCert"}
HASHED = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
HEADERS = {"X-Frame-Options": "deny", "Content-Security-Policy": "default-src 'self'"}


def written(folder: Path, **content: Any) -> Path:
    file = folder / "web.yml"
    file.write_text(yaml.safe_dump(content))
    return file


@asynccontextmanager
async def serving(config: WebConfig, **limits: Any) -> AsyncIterator[str]:
    """A page, one that is begun and never done, one without end, and one that waits until nobody takes that; gives where."""

    async def hello(_: web.Request) -> web.StreamResponse:
        return web.Response(text="hello")

    async def held(request: web.Request) -> web.StreamResponse:
        await web.StreamResponse().prepare(request)
        await asyncio.Event().wait()
        raise AssertionError

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 1_000_000)
        finally:
            ended.set()

    async def after(_: web.Request) -> web.StreamResponse:
        await ended.wait()
        return web.Response()

    ended = asyncio.Event()

    app = web.Application()
    app.router.add_get("/", hello)
    app.router.add_get("/held", held)
    app.router.add_get("/endless", endless)
    app.router.add_get("/after-endless", after)
    config.protect(app)
    listening = listen(("127.0.0.1", 0), "--flag")
    listener = Listener(app, listening, tls=config.tls, limits=Limits(**limits))
    await listener.start()
    try:
        yield f"{'https' if config.tls() else 'http'}://127.0.0.1:{listening.getsockname()[1]}/"
    finally:
        await listener.stop()


async def status(
    url: str, *, user: tuple[str, str] | None = None, tls: ssl.SSLContext | None = None, headers: dict[str, str] | None = None
) -> int:
    given = {"Authorization": "Basic " + base64.b64encode(":".join(user).encode()).decode()} if user else headers
    async with aiohttp.ClientSession() as session, session.get(url, ssl=tls or False, headers=given) as answer:
        return answer.status


def client_context(certificate: str = "", **options: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(TLS / "ca.pem"))
    context.check_hostname = False
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # which newer Pythons set: certificates of tests say no more than they must
    if certificate:
        context.load_cert_chain(TLS / f"{certificate}.pem", TLS / f"{certificate}.key")
    for name, value in options.items():
        setattr(context, name, value)
    return context


async def test_without_a_file_everybody_may_ask() -> None:
    """On loopback, which is where it listens unless told otherwise."""
    async with serving(WebConfig.read(None)) as url:
        assert await status(url) == 200


async def test_users_are_asked_for_their_passwords(tmp_path: Path) -> None:
    """In every spelling that is wrong the answer is the same; headers are in all answers."""
    async with serving(WebConfig.read(written(tmp_path, basic_auth_users={"ann": HASHED}, http_server_config={"headers": HEADERS}))) as url:
        assert await status(url, user=("ann", "secret")) == 200
        for user in (("ann", "Secret"), ("ann", ""), ("bob", "secret"), ("", ""), ("ann", "x" * 100)):
            assert await status(url, user=user) == 401
        for header in ("Bearer secret", "Basic", "Basic !", "Basic é", "basic " + base64.b64encode(b"\xff").decode()):
            assert await status(url, headers={"Authorization": header}) == 401
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, 'Basic realm="fastdisco"')
            assert {name: answer.headers[name] for name in HEADERS} == HEADERS


async def test_a_password_is_checked_once_and_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check takes a tenth of a second and more: many who ask with the same one wait for one; who guesses waits for all before."""
    checks: list[tuple[bytes, int]] = []
    checkpw = bcrypt.checkpw

    def counted(password: bytes, hashed: bytes) -> bool:
        checks.append((password, threading.get_ident()))
        return checkpw(password, hashed)  # ValueError if it is none

    monkeypatch.setattr("fastdisco.sidecar.passwords.bcrypt.checkpw", counted)
    passwords = Passwords({"ann": HASHED})
    header = "Basic " + base64.b64encode(b"ann:secret").decode()
    wrong = "Basic " + base64.b64encode(b"ann:other").decode()
    assert await asyncio.gather(*(passwords.allow(header) for _ in range(20))) == [True] * 20
    assert [await passwords.allow(wrong) for _ in range(3)] == [False] * 3
    assert [password for password, _ in checks] == [b"secret", b"other"]
    assert threading.get_ident() not in {thread for _, thread in checks}
    # who is not there takes as long as who is: a hash of the usual cost is looked at
    assert checkpw(b"secret", NOBODY) is False
    assert not await passwords.allow("Basic " + base64.b64encode(b"nobody:secret").decode())
    assert len(checks) == 3


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class Held:
    """Checks of passwords, none of which ends before it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.checked: list[bytes] = []
        self.go = threading.Event()
        monkeypatch.setattr("fastdisco.sidecar.passwords.bcrypt.checkpw", self._check)

    def _check(self, password: bytes, _hashed: bytes) -> bool:
        self.go.wait(10)
        self.checked.append(password)
        return password == b"secret"


async def test_who_guesses_has_a_share_of_the_queue_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many passwords of an address, and so many in all; those that wait with the same one count once, and others still get in."""
    held = Held(monkeypatch)
    passwords = Passwords({"ann": HASHED})
    same = [asyncio.create_task(passwords.allow(basic("ann", "0"), "a")) for _ in range(50)]
    guesses = [asyncio.create_task(passwords.allow(basic("ann", str(number)), "a")) for number in range(1, 100)]
    await asyncio.sleep(0)
    user = asyncio.create_task(passwords.allow(basic("ann", "secret"), "b"))
    await asyncio.sleep(0)
    others = [asyncio.create_task(passwords.allow(basic("ann", f"x{number}"), str(number))) for number in range(100)]
    await asyncio.sleep(0)
    held.go.set()
    assert await asyncio.gather(*same) == [False] * 50
    assert await user
    found = await asyncio.gather(*guesses, *others, return_exceptions=True)
    assert [sum(isinstance(one, TooManyError) for one in some) for some in (found[:99], found[99:])] == [96, 73]
    assert len(held.checked) == 32
    assert await passwords.allow(basic("ann", "secret"), "a")


async def test_the_password_of_who_has_gone_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless somebody else who is still there waits for the same."""
    held = Held(monkeypatch)
    passwords = Passwords({"ann": HASHED})
    asked = [
        asyncio.create_task(passwords.allow(basic("ann", password), "a", lambda gone=gone: gone))  # type: ignore[misc]
        for password, gone in (("1", False), ("2", True), ("secret", True), ("secret", False))
    ]
    await asyncio.sleep(0)
    held.go.set()
    assert await asyncio.gather(*asked) == [False, False, True, True]
    assert held.checked == [b"1", b"secret"]


async def test_guesses_do_not_push_out_what_is_known_of_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are; and of wrong ones those are remembered that were asked for last."""
    held = Held(monkeypatch)
    held.go.set()
    passwords = Passwords({"ann": HASHED})
    for guess in ("secret", "often", *(str(number) for number in range(999)), "often", "one", "two"):
        await passwords.allow(basic("ann", guess))
    held.checked.clear()
    assert [await passwords.allow(basic("ann", password)) for password in ("secret", "often", "0")] == [True, False, False]
    assert held.checked == [b"0"]


async def test_with_too_many_passwords_to_check_a_request_is_put_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """503 and when to come again, rather than 401, which would say that the password is wrong."""
    held = Held(monkeypatch)
    async with serving(WebConfig.read(written(tmp_path, basic_auth_users={"ann": HASHED}))) as url:
        asked = [asyncio.create_task(status(url, user=("ann", str(number)))) for number in range(5)]
        done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED, timeout=10)
        assert [task.result() for task in done] == [503]
        held.go.set()
        assert sorted(await asyncio.gather(*asked)) == [401, 401, 401, 401, 503]


async def test_tls_is_spoken_with_the_versions_that_are_allowed(tmp_path: Path) -> None:
    """1.2 at least, unless the file says otherwise."""
    async with serving(WebConfig.read(written(tmp_path, tls_server_config=SERVER))) as url:
        assert await status(url, tls=client_context()) == 200
        with pytest.raises(aiohttp.ClientError):
            await status(url.replace("https", "http"))
    newest = {**SERVER, "min_version": "TLS13"}
    async with serving(WebConfig.read(written(tmp_path, tls_server_config=newest))) as url:
        assert await status(url, tls=client_context()) == 200
        with pytest.raises(aiohttp.ClientError):
            await status(url, tls=client_context(maximum_version=ssl.TLSVersion.TLSv1_2))
    suite = {
        **SERVER,
        "max_version": "TLS12",
        "cipher_suites": ["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"],
    }
    async with serving(WebConfig.read(written(tmp_path, tls_server_config=suite))) as url:
        assert await status(url, tls=client_context()) == 200
        with pytest.raises(aiohttp.ClientError):
            await status(url, tls=client_context(minimum_version=ssl.TLSVersion.TLSv1_3))


async def test_clients_show_certificates_where_that_is_asked_for(tmp_path: Path) -> None:
    """Of the authority that the file names, and with one of its names."""
    async with serving(WebConfig.read(written(tmp_path, tls_server_config=SERVER | CLIENTS))) as url:
        assert await status(url, tls=client_context("client")) == 200
        with pytest.raises(aiohttp.ClientError):
            await status(url, tls=client_context())
    given = SERVER | CLIENTS | {"client_auth_type": "VerifyClientCertIfGiven"}
    async with serving(WebConfig.read(written(tmp_path, tls_server_config=given))) as url:
        assert await status(url, tls=client_context()) == 200
    other = SERVER | CLIENTS | {"client_allowed_sans": ["elsewhere"]}
    async with serving(WebConfig.read(written(tmp_path, tls_server_config=other))) as url:
        assert await status(url, tls=client_context("client")) == 403


async def test_files_that_change_are_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A renewed certificate and new users, without a restart; a mistake leaves what there was."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_bytes((TLS / "server.pem").read_bytes())
    key.write_bytes((TLS / "server.key").read_bytes())
    tls = {"cert_file": "cert.pem", "key_file": "key.pem"}
    config = WebConfig.read(written(tmp_path, tls_server_config=tls))
    async with serving(config) as url:

        async def shown() -> bytes:
            port = int(url.rstrip("/").rpartition(":")[2])
            return ssl.PEM_cert_to_DER_cert(await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port)))

        following = asyncio.create_task(config.keep_fresh(0.01))
        try:
            first = await shown()
            written(tmp_path, tls_server_config=tls, basic_auth_users={"ann": "plain"})
            async with asyncio.timeout(10):
                await eventually(lambda: caplog.records)
            assert "basic_auth_users.ann: must be a bcrypt hash" in caplog.records[0].getMessage()
            assert await status(url) == 200
            cert.write_bytes((TLS / "server2.pem").read_bytes())
            key.write_bytes((TLS / "server2.key").read_bytes())
            written(tmp_path, tls_server_config=tls, basic_auth_users={"ann": HASHED})
            async with asyncio.timeout(10):
                while await status(url) != 401:
                    pass
            assert await shown() != first
            assert await status(url, user=("ann", "secret")) == 200
        finally:
            following.cancel()


async def test_an_authority_that_is_replaced_is_trusted_no_longer(tmp_path: Path) -> None:
    """By connections made from then on; clients of the new one are let in."""
    authority = tmp_path / "ca.pem"
    authority.write_bytes((TLS / "ca.pem").read_bytes())
    config = WebConfig.read(written(tmp_path, tls_server_config=SERVER | CLIENTS | {"client_ca_file": str(authority)}))
    old, new = client_context("client"), client_context("server2")
    async with serving(config) as url:
        assert await status(url, tls=old) == 200
        with pytest.raises(aiohttp.ClientError):
            await status(url, tls=new)
        following = asyncio.create_task(config.keep_fresh(0.01))
        try:
            authority.write_bytes((TLS / "ca2.pem").read_bytes())
            async with asyncio.timeout(10):
                while True:
                    try:
                        assert await status(url, tls=new) == 200
                        break
                    except aiohttp.ClientError:
                        pass
            with pytest.raises(aiohttp.ClientError):
                await status(url, tls=old)
        finally:
            following.cancel()


async def test_a_file_that_is_good_again_is_said_to_be(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Also where it says what it said before the mistake."""
    caplog.set_level(logging.INFO)
    file = written(tmp_path, basic_auth_users={"ann": HASHED})
    config = WebConfig.read(file)
    following = asyncio.create_task(config.keep_fresh(0.01))
    try:
        async with asyncio.timeout(10):
            written(tmp_path, basic_auth_users={"ann": "plain"})
            await eventually(lambda: not config.successful)
            before = config.last_success
            written(tmp_path, basic_auth_users={"ann": HASHED})
            await eventually(lambda: config.successful)
    finally:
        following.cancel()
    assert config.last_success > before
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    assert caplog.records[1].getMessage() == f"what {file} says is followed from now on"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"tls": {}}, "tls: unknown key"),
        ({"tls_server_config": {"cert_file": "x"}}, "tls_server_config.key_file: missing"),
        ({"tls_server_config": SERVER | {"key_file": str(TLS / "client.key")}}, "tls_server_config: cannot be used: "),
        ({"tls_server_config": SERVER | {"cert_file": "none.pem"}}, "tls_server_config: cannot read "),
        ({"tls_server_config": SERVER | {"min_version": "TLS14"}}, "tls_server_config.min_version: must be one of TLS10, TLS11, TLS12, "),
        ({"tls_server_config": SERVER | {"client_auth_type": "RequireAnyClientCert"}}, "tls_server_config.client_auth_type: must be "),
        ({"tls_server_config": SERVER | {"client_auth_type": "VerifyClientCertIfGiven"}}, "tls_server_config.client_ca_file: missing"),
        ({"tls_server_config": SERVER | {"cipher_suites": ["AES"]}}, "tls_server_config.cipher_suites: 'AES' is no suite of TLS 1.2"),
        ({"tls_server_config": SERVER | {"curve_preferences": ["X25519"]}}, "tls_server_config.curve_preferences: not supported"),
        ({"tls_server_config": SERVER | {"certs": 1}}, "tls_server_config.certs: unknown key"),
        ({"basic_auth_users": {"ann": "secret"}}, "basic_auth_users.ann: must be a bcrypt hash"),
        ({"basic_auth_users": ["ann"]}, "basic_auth_users: must be a mapping"),
        ({"http_server_config": {"headers": {"Server": "x"}}}, "http_server_config.headers.Server: must be one of "),
        ({"rate_limit": {"burst": "x"}}, "rate_limit.burst: must be a number of requests, not 'x'"),
        ({"rate_limit": {"burst": 1, "interval": "x"}}, "rate_limit.interval: must be a duration such as 30s or 5m, not 'x'"),
        ({"http_server_config": {"http3": True}}, "http_server_config.http3: unknown key"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_key(tmp_path: Path, content: dict[str, Any], reason: str) -> None:
    """And the file; a password that is written where its hash belongs is not."""
    file = written(tmp_path, **content)
    with pytest.raises(ConfigError) as caught:
        WebConfig.read(file)
    assert str(caught.value).startswith(f"{file}: {reason}")
    assert "'secret'" not in str(caught.value)


async def connected(url: str, sent: bytes = b"", **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rstrip("/").rpartition(":")[2]), **options)
    writer.write(sent)
    return reader, writer


async def is_closed(reader: asyncio.StreamReader) -> None:
    """Waits until the other side has ended it, one way or another."""
    with suppress(ConnectionError):
        await reader.read()


def ask(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


async def test_there_are_only_so_many_connections() -> None:
    """Above them the one that has waited longest for a request gives way; where all are being answered, a further one is closed at once."""
    async with serving(WebConfig.read(None), connections=3) as url, asyncio.timeout(10):
        idle = [await connected(url, ask("/")) for _ in range(3)]
        for reader, _ in idle:
            await reader.readuntil(b"hello")
        assert await status(url) == 200
        await is_closed(idle[0][0])
        for reader, writer in idle[1:]:
            writer.write(ask("/held"))
            await reader.readuntil(b"\r\n\r\n")
        reader, held = await connected(url, ask("/held"))
        await reader.readuntil(b"\r\n\r\n")
        reader, refused = await connected(url)
        await is_closed(reader)
        held.close()
        while True:
            try:
                assert await status(url) == 200
                break
            except aiohttp.ClientError:
                await asyncio.sleep(0)
        for _, writer in (*idle, (None, refused)):
            writer.close()


@pytest.mark.parametrize(("files", "connections"), [(256, 64), (1_000_000, 1000), (resource.RLIM_INFINITY, 1000)])
def test_connections_leave_files_for_the_rest(monkeypatch: pytest.MonkeyPatch, files: int, connections: int) -> None:
    """Watches of the API server need some, however many clients come."""
    monkeypatch.setattr("resource.getrlimit", lambda _: (files, resource.RLIM_INFINITY))
    assert default_limits() == Limits(connections=connections)


@pytest.mark.parametrize(
    ("sent", "limit"),
    [
        (b"", "head"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n", "head"),
        (ask("/") + b"GET / HTTP", "idle"),
        (ask("/"), "idle"),
        (ask("/endless"), "unread"),
    ],
)
async def test_who_does_not_go_on_is_sent_away(sent: bytes, limit: str) -> None:
    """Who asks nothing, or half of something, also after a request; and who does not read the answer."""
    async with serving(WebConfig.read(None), **{limit: 0.05}) as url, asyncio.timeout(10):
        reader, writer = await connected(url, sent, limit=1)
        if b"endless" in sent:
            assert await status(f"{url}after-endless") == 200
        else:
            await is_closed(reader)
        writer.close()
        assert await status(url) == 200


async def test_half_of_a_further_request_has_the_deadline_of_the_first() -> None:
    """From its first byte on; further bytes do not put it off."""
    async with serving(WebConfig.read(None), head=0.05) as url, asyncio.timeout(10):
        reader, writer = await connected(url, ask("/"))
        await reader.readuntil(b"hello")
        parts = iter((b"GET / HTTP/1.1\r\n", b"X-Long: "))
        closed = asyncio.create_task(is_closed(reader))
        while not closed.done():
            writer.write(next(parts, b"x"))
            await asyncio.wait([closed], timeout=0.01)
        writer.close()


async def test_a_request_that_takes_long_is_not_sent_away() -> None:
    """The deadlines are for clients, not for answers."""
    async with serving(WebConfig.read(None), head=0.01, idle=0.01) as url:
        reader, writer = await connected(url, ask("/held"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await reader.read()
        writer.close()


async def test_a_connection_without_its_handshake_counts_and_ends(tmp_path: Path) -> None:
    """It gives way as others do, and has a deadline of its own."""
    config = WebConfig.read(written(tmp_path, tls_server_config=SERVER))
    async with serving(config, connections=2) as url, asyncio.timeout(10):
        silent = [await connected(url) for _ in range(2)]
        assert await status(url, tls=client_context()) == 200
        await is_closed(silent[0][0])
        for _, writer in silent:
            writer.close()
    async with serving(config, handshake=0.05) as url, asyncio.timeout(10):
        reader, writer = await connected(url, b"\x16\x03")
        await is_closed(reader)
        writer.close()
        assert await status(url, tls=client_context()) == 200


@pytest.mark.parametrize("sent", [
    b"GET /?password=hunter2 HTTP/1.1\r\nAuthorization hunter2\r\n\r\n",
    b"GET /hunter2 HTP\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nhunter2\r\n",
])  # fmt: skip
async def test_a_request_that_cannot_be_read_is_no_error_and_nothing_of_it_is_logged(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """One line for many of them, with who it was: anybody can send them, and there may be a password in it."""
    with caplog.at_level(logging.INFO):
        async with serving(WebConfig.read(None)) as url, asyncio.timeout(10):
            for _ in range(3):
                reader, writer = await connected(url, sent)
                assert (await reader.readline()).split()[1] in (b"400", b"405")
                await is_closed(reader)
                writer.close()
    told = [record for record in caplog.records if record.name.startswith(("fastdisco", "aiohttp"))]
    assert [(record.levelname, record.getMessage(), record.exc_info) for record in told] == [
        ("INFO", "1 requests could not be read so far, the last one from 127.0.0.1", None)
    ]
    assert "hunter2" not in caplog.text


async def test_a_request_of_too_long_lines_is_refused() -> None:
    """A client cannot fill the memory by one."""
    async with serving(WebConfig.read(None)) as url:
        assert await status(url, headers={"X-Long": "x" * 20_000}) == 400
        assert await status(f"{url}?{'x' * 20_000}") == 400
        assert await status(url, headers={"X-Long": "x" * 10_000}) == 200


async def test_only_so_many_requests_are_answered_in_a_time(tmp_path: Path) -> None:
    """As many at once as the file says; then one in each interval."""
    async with serving(WebConfig.read(written(tmp_path, rate_limit={"burst": 2, "interval": "1h"}))) as url:
        assert [await status(url) for _ in range(3)] == [200, 200, 429]
    async with serving(WebConfig.read(written(tmp_path, rate_limit={"burst": 0, "interval": "1h"}))) as url:
        assert [await status(url) for _ in range(3)] == [200, 200, 200]
    times = iter((0.0, 0.0, 0.0, 0.0, 9.0, 10.0, 11.0, 100.0, 100.0, 100.0))
    limit = RateLimit(2, 10.0, lambda: next(times))
    assert [limit.take() for _ in range(9)] == [True, True, False, False, True, False, True, True, False]
