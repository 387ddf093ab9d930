"""One HTTP session per connection: bytes of lists, watches and objects; whatever goes wrong is an ApiError or a NetworkError."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from copy import copy
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import orjson
from yarl import URL

from .auth import Connection, Credentials, Trust
from .chunk_reader import ChunkReader, Connector
from .config import without_secrets
from .errors import ApiError, NetworkError
from .metrics import Metrics
from .version import __version__

# As much as is decoded between two turns of the loop; events that wait are taken together, so that what they changed is rendered together.
_READ_BUFFER = 1 << 20
# administrators tell clients apart by it; one that starts like a browser's or curl's would get pretty-printed JSON
_USER_AGENT = f"fastdisco/{__version__}"
_ERROR_BODY = 64 << 10  # a Status is far below 1 KiB; whatever is longer is a proxy's page
_QUOTED = 300  # characters of such a page in a log line
_FAILURES = (aiohttp.ClientError, OSError, ValueError)  # ValueError: a request that cannot be made, such as to no valid host name
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))  # below the idle limits of load balancers (240 s, 350 s)


class ApiClient:
    """The session of one connection; made inside the running loop that uses it."""

    def __init__(
        self,
        connection: Connection,
        *,
        metrics: Metrics | None = None,
        connect_timeout: float = 10.0,
        read_timeout: float = 30.0,
        lists_in_flight: int = 8,
    ) -> None:
        self.connection = connection
        self.lists = asyncio.Semaphore(lists_in_flight)
        """To be held while a list is read: it spares the server's memory when many watchers start over together."""
        self._metadata_only = False
        self._base = connection.api_server
        self._metrics = metrics
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        self._credentials = Credentials(connection)
        self._trust = Trust(connection.tls_config) if self._base.startswith("https:") else None
        self._session = aiohttp.ClientSession(
            connector=Connector(limit=0, socket_factory=_open_socket),
            headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": _USER_AGENT},
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        params: Mapping[str, str] | None = None,
        *,
        read_timeout: float | None = None,
        total_timeout: float | None = None,
    ) -> AsyncIterator[Body]:
        """The body of a successful answer, as it arrives; left early, its connection is cut at once.

        `read_timeout` bounds the seconds without a byte, `total_timeout` the whole; None: no bound.
        """
        body = await self._request(path, params or {}, self._timeout(read_timeout, total_timeout))
        try:
            yield body
        finally:
            body.abort()

    async def get(self, path: str, params: Mapping[str, str] | None = None, *, total_timeout: float | None = None) -> bytes:
        """A whole body."""
        async with self.stream(path, params, read_timeout=self._read_timeout, total_timeout=total_timeout) as body:
            return b"".join([bytes(chunk) async for chunk in body])

    def metadata_only(self) -> ApiClient:
        """The same session, asking for no more of objects than their metadata; a server that cannot do that sends all of them."""
        client = copy(self)
        client._metadata_only = True
        return client

    async def close(self) -> None:
        """Cut what is still open."""
        await self._session.close()

    def _timeout(self, read: float | None, total: float | None) -> aiohttp.ClientTimeout:
        # aiohttp's `sock_connect` covers TCP and TLS together; `connect` covers the answer of a proxy as well.
        return aiohttp.ClientTimeout(total=total, sock_read=read, sock_connect=self._connect_timeout, connect=3 * self._connect_timeout)

    async def _request(self, path: str, params: Mapping[str, str], timeout: aiohttp.ClientTimeout) -> Body:
        """After a 401 the credentials are read again and tried once more: they may have been rotated a moment ago."""
        body = await self._send(path, params, timeout)
        if body.status == 401 and self._credentials.refused():
            body.abort()
            body = await self._send(path, params, timeout)
        if not 200 <= body.status < 300:
            try:
                raise api_error(body.status, await self._read_error(body), body.headers.get("Retry-After"))
            finally:
                body.abort()
        return body

    async def _send(self, path: str, params: Mapping[str, str], timeout: aiohttp.ClientTimeout) -> Body:
        try:
            response = await self._session.get(
                URL(self._base + path),
                params=params,
                headers=self._credentials.headers() | (_metadata_of(params) if self._metadata_only else {}),
                timeout=timeout,
                read_bufsize=_READ_BUFFER,
                ssl=await self._trust.context() if self._trust else True,
                server_hostname=(self._trust and self.connection.tls_config.server_name) or None,
                proxy=self.connection.proxy_url or None,
            )
        except NetworkError:
            self._count("error")
            raise
        except _FAILURES as error:
            self._count("error")
            raise _network_error(error) from error
        self._count(str(response.status))
        return Body(response)

    async def _read_error(self, body: Body) -> bytes:
        """As much as explains the error; what cannot be read any more is not waited for."""
        read = bytearray()
        try:
            async with asyncio.timeout(self._read_timeout):
                async for chunk in body:
                    read += chunk
                    if len(read) >= _ERROR_BODY:
                        break
        except (NetworkError, TimeoutError):
            pass
        return bytes(read[:_ERROR_BODY])

    def _count(self, code: str) -> None:
        if self._metrics is not None:
            self._metrics.count_request(code)


def _metadata_of(params: Mapping[str, str]) -> dict[str, str]:
    kind = "PartialObjectMetadata" if "watch" in params else "PartialObjectMetadataList"
    return {"Accept": f"application/json;as={kind};g=meta.k8s.io;v=v1,application/json"}


class Body:
    """An answer's bytes, in pieces as large as there are, each valid until the next; one that ends too early raises NetworkError."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._chunks: ChunkReader | None = getattr(response.connection and response.connection.protocol, "chunks", None)

    def __aiter__(self) -> AsyncIterator[bytes | memoryview]:
        return self

    async def __anext__(self) -> bytes | memoryview:
        try:
            if self._chunks is not None:
                if (taken := await self._chunks.read()) is not None:
                    return taken
                self._chunks = None
            chunk = await self._response.content.readany()
        except (*_FAILURES, RuntimeError) as error:  # RuntimeError: the session has been closed meanwhile
            raise _network_error(error) from error
        if not chunk:
            raise StopAsyncIteration
        return chunk

    def abort(self) -> None:
        """Cut the connection unless all has been read; whoever waits for a chunk gets a NetworkError."""
        connection = self._response.connection
        if self._chunks is not None:
            self._chunks.close()
        # Closing would wait for the peer's TLS goodbye, under uvloop for up to 30 s.
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._response.close()


def api_error(code: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """The error that an answer means: its body may be a Status, and need not be. A code in the Status counts if `code` is 0."""
    status = _mapping(_parse(body))
    details = _mapping(status.get("details"))
    causes = details.get("causes")
    cause = _mapping(causes[0]) if isinstance(causes, list) and causes else {}
    stated = status.get("code")
    message = _text(status.get("message"))
    page = "" if status else " ".join(body[:_QUOTED].decode("utf-8", "replace").split())
    return ApiError(
        code or (stated if isinstance(stated, int) else 0),
        _text(status.get("reason")),
        # Servers before 1.18.6 name the cause in its message only.
        message or _text(cause.get("message")),
        retry_after=_seconds(retry_after) or _positive(details.get("retryAfterSeconds")),
        cause=_text(cause.get("reason")) or ("ResourceVersionTooLarge" if "Too large resource" in _text(cause.get("message")) else ""),
        text=message or page,
    )


def _network_error(error: BaseException) -> NetworkError:
    match error:
        case aiohttp.SocketTimeoutError():
            return NetworkError("silent", "the server has been silent for too long")
        case aiohttp.ConnectionTimeoutError():
            return NetworkError("timeout", "no connection to the server within the connect timeout")
        case TimeoutError():
            return NetworkError("timeout", "the answer took too long in all")
        case aiohttp.ClientConnectorCertificateError():
            return NetworkError("connect", f"cannot trust {error.host}:{error.port}: {error.certificate_error}")
        case aiohttp.ClientConnectorError():
            reason = str(error.os_error) or "the connection was closed"
            return NetworkError("connect", f"cannot connect to {error.host}:{error.port}: {reason}")
        case aiohttp.ClientHttpProxyError() | ssl.SSLError():
            return NetworkError("connect", str(error))
        case aiohttp.ClientPayloadError():
            return NetworkError("reset", "the answer ended too early")
        case aiohttp.InvalidURL():
            return NetworkError("connect", f"no valid URL: {without_secrets(str(error.url))}")
        case ValueError():
            return NetworkError("connect", f"the request cannot be made: {error}")
        case _:
            return NetworkError("reset", str(error) or type(error).__name__)


def _open_socket(address: tuple[Any, ...]) -> socket.socket:
    """A peer that vanished without a word is noticed after a minute."""
    family, kind, protocol, _, _ = address
    opened = socket.socket(family, kind, protocol)
    opened.setblocking(False)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        if hasattr(socket, option):
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return opened


def _parse(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _positive(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and value > 0 else None


def _seconds(retry_after: str | None) -> float | None:
    """Of a Retry-After header: seconds, or a date."""
    if not retry_after:
        return None
    try:
        return _positive(float(retry_after))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return _positive((when - datetime.now(UTC if when.tzinfo else None)).total_seconds())
