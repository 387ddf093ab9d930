"""`--web.config.file`: who may ask, over what, and what every answer says besides."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import bcrypt
import pytest
import yaml
from aiohttp import web

from fastdisco.errors import ConfigError
from fastdisco.sidecar.listening import Listener, listen
from fastdisco.sidecar.passwords import NOBODY, Passwords
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
async def serving(config: WebConfig, **options: Any) -> AsyncIterator[str]:
    """One page that says who asks; gives where."""

    async def hello(_: web.Request) -> web.StreamResponse:
        return web.Response(text="hello")

    app = web.Application()
    app.router.add_get("/", hello)
    config.protect(app)
    listening = listen(("127.0.0.1", 0), "--flag")
    listener = Listener(app, listening, tls=config.tls(), **options)
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
        for header in ("Bearer secret", "Basic", "Basic !", "basic " + base64.b64encode(b"\xff").decode()):
            assert await status(url, headers={"Authorization": header}) == 401
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, 'Basic realm="fastdisco"')
            assert {name: answer.headers[name] for name in HEADERS} == HEADERS


async def test_a_password_is_checked_once_and_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check takes a tenth of a second and more: many who ask with the same one wait for one; who guesses waits for all before."""
    import threading

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


async def test_there_are_only_so_many_connections() -> None:
    """One more is closed at once; those that are open go on, and when one of them ends there is room again."""
    async with serving(WebConfig.read(None), most=3) as url:
        port = int(url.rstrip("/").rpartition(":")[2])
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for _, writer in held:
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert [await reader.readline() for reader, _ in held] == [b"HTTP/1.1 200 OK\r\n"] * 3
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        writer.close()
        held[0][1].close()
        async with asyncio.timeout(10):
            while True:
                try:
                    assert await status(url) == 200
                    break
                except aiohttp.ClientError:
                    await asyncio.sleep(0.01)
        for _, writer in held:
            writer.close()


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
