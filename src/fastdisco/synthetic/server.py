"""The synthetic API server, in process: routes requests to lists, watches, single objects, writes and control."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import ssl
from typing import TYPE_CHECKING, Any, Self

import orjson

from fastdisco.synthetic.books import Books
from fastdisco.synthetic.control import Control
from fastdisco.synthetic.faults import Fault, Faults
from fastdisco.synthetic.http import Connection, HangupError, Request
from fastdisco.synthetic.lists import serve_list
from fastdisco.synthetic.objects import whole
from fastdisco.synthetic.options import parse_options, truth
from fastdisco.synthetic.resources import RESOURCES, Route, Versions, parse_path
from fastdisco.synthetic.status import StatusError, no_object, no_resource, too_large
from fastdisco.synthetic.watches import Watch, refusal
from fastdisco.synthetic.writes import create, delete, replace

if TYPE_CHECKING:
    from fastdisco.synthetic.cluster import Cluster

_VERSION = (
    b'{\n  "major": "1",\n  "minor": "37",\n  "gitVersion": "v1.37.2-synthetic",\n  "gitCommit": "",\n  "gitTreeState": "",\n'
    b'  "buildDate": "1970-01-01T00:00:00Z",\n  "goVersion": "",\n  "compiler": "",\n  "platform": "linux/amd64"\n}'
)
_HEALTH = ("/readyz", "/livez", "/healthz")


class SyntheticServer:
    """Serves a cluster on 127.0.0.1 within the running loop; what tests do to it is in `control`.

    `bookmark_interval` and `watch_seconds` (the longest life of a watch, 0: as asked) are in seconds;
    with `watch_list` the server offers initial events, as servers since 1.34 do; `token` is required if it is not empty.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        token: str = "",
        bookmark_interval: float = 60.0,
        watch_seconds: float = 0.0,
        watch_list: bool = True,
        v1: bool = True,
        v1beta1: bool = False,
        cert_file: str = "",
        key_file: str = "",
    ) -> None:
        self.cluster = cluster
        self.store = cluster.store
        self.token = token
        self.bookmark_interval = bookmark_interval
        self.watch_seconds = watch_seconds
        self.watch_list = watch_list
        self.versions = Versions(v1, v1beta1)
        self.books = Books()
        self.faults = Faults()
        self.watches: set[Watch] = set()
        self.control = Control(self)
        self.url = ""
        self._tls: ssl.SSLContext | None = None
        if cert_file:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.load_certificate(cert_file, key_file)
        self._connections: set[Connection] = set()
        self._listener: asyncio.Server | None = None

    async def start(self, port: int = 0) -> None:
        """Listen; `url` is known afterwards."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            lambda: Connection(self._serve, self.books, self._connections), "127.0.0.1", port, ssl=self._tls
        )
        port = self._listener.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{port}"

    def load_certificate(self, cert_file: str, key_file: str) -> None:
        """The certificate of connections that are still to come; `ValueError` without TLS."""
        if self._tls is None:
            raise ValueError("the server was started without a certificate")
        self._tls.load_cert_chain(cert_file, key_file or None)

    async def close(self) -> None:
        """Stop listening and cut all connections, at once."""
        self.control.stop()
        if self._listener is not None:
            self._listener.close()
        tasks = [connection.abandon() for connection in list(self._connections)]
        await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)
        if self._listener is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._listener.wait_closed(), 1)
            self._listener = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def _serve(self, connection: Connection, request: Request) -> None:
        if request.path.startswith("/control/"):
            self.books.discard(connection.number)
            await self.control.answer(connection, request)
            return
        route = parse_path(request.path)
        verb = _verb(request, route)
        record = request.record = self.books.begin(
            verb, connection.number, request.method, request.target, request.path, request.query, request.headers
        )
        connection.on_head = lambda code: record.update(status=code)
        try:
            connection.fault = fault = self.faults.take(request.path, verb)
            if fault is not None:
                await _meet(connection, fault)
                if fault.status:
                    return
            await self._answer(connection, request, route)
        finally:
            self.books.end(record)

    async def _answer(self, connection: Connection, request: Request, route: Route | tuple[str, str] | None) -> None:
        if request.path.startswith(_HEALTH):
            await connection.send(200, b"ok", content_type="text/plain; charset=utf-8")
            return
        if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
            raise StatusError(401, "Unauthorized")
        if request.path == "/version":
            await connection.send(200, _VERSION)
            return
        if route is None:
            raise no_resource()
        if isinstance(route, tuple):
            await connection.send(200, self._resources(*route))
            return
        if not self.versions.serves(route.resource.group, route.version):
            raise no_resource()
        if request.method != "GET":
            await self._write(connection, request, route)
        elif route.name:
            await connection.send(200, self._get(request, route) + b"\n")
        else:
            partial = "as=PartialObjectMetadata" in request.headers.get("accept", "")
            await self._collection(connection, request, dataclasses.replace(route, metadata_only=partial))

    async def _collection(self, connection: Connection, request: Request, route: Route) -> None:
        options = parse_options(request.query, watch_list=self.watch_list)
        if not options.watch:
            await serve_list(self.store, route, options, connection)
            return
        watch = Watch(self.store, route, options, connection, interval=self.bookmark_interval, longest=self.watch_seconds)
        self.watches.add(watch)
        try:
            await watch.run()
        finally:
            self.watches.discard(watch)

    def _get(self, request: Request, route: Route) -> bytes:
        entry = self.store.tables[route.resource.plural].entries.get(route.key)
        version = request.query.get("resourceVersion") or "0"
        if version.isdecimal() and int(version) > self.store.version:
            raise too_large(int(version), self.store.version)
        if entry is None:
            raise no_object(route.resource.plural, route.resource.group, route.name)
        return whole(route.resource, entry, route.version)

    async def _write(self, connection: Connection, request: Request, route: Route) -> None:
        try:
            item: Any = orjson.loads(request.body) if request.body else None
        except orjson.JSONDecodeError as error:
            raise StatusError(400, f"the body of the request could not be read: {error}") from None
        if request.method == "POST" and not route.name:
            await connection.send(201, create(self.store, route, item) + b"\n")
        elif request.method == "PUT" and route.name:
            await connection.send(200, replace(self.store, route, item) + b"\n")
        elif request.method == "DELETE" and route.name:
            await connection.send(200, delete(self.store, route) + b"\n")
        else:
            raise StatusError(405, "the server does not allow this method on the requested resource", details={})

    def _resources(self, group: str, version: str) -> bytes:
        """What `/api/v1` and `/apis/<group>/<version>` list."""
        served = [resource for resource in RESOURCES.values() if resource.group == group]
        if not served or not self.versions.serves(group, version):
            raise no_resource()
        resources = [
            {
                "name": resource.plural,
                "singularName": resource.singular,
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": ["create", "delete", "get", "list", "update", "watch"],
            }
            for resource in served
        ]
        listing = {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": resources,
        }
        return orjson.dumps(listing)


def _verb(request: Request, route: Route | tuple[str, str] | None) -> str:
    if request.method != "GET":
        return "write"
    if not isinstance(route, Route) or route.name:
        return "get"
    return "watch" if truth(request.query.get("watch", "")) else "list"


async def _meet(connection: Connection, fault: Fault) -> None:
    """What a fault does before the request is looked at: wait, hang, refuse."""
    if fault.delay:
        await asyncio.sleep(fault.delay)
    if fault.hang:
        await asyncio.get_running_loop().create_future()
        raise HangupError
    if not fault.status:
        return
    headers = [] if fault.retry_after is None else [("Retry-After", str(fault.retry_after))]
    if fault.body in ("text", "none"):
        body = fault.message.encode() if fault.body == "text" else b""
        await connection.send(fault.status, body, headers, "text/plain; charset=utf-8")
        return
    details: dict[str, Any] | None = None
    if fault.cause:
        details = {"causes": [{"reason": fault.cause, "message": fault.message}]}
        if fault.retry_after is not None and str(fault.retry_after).isdecimal():
            details["retryAfterSeconds"] = int(fault.retry_after)
    refused = refusal({"code": fault.status, "message": fault.message, "reason": fault.reason, "details": details})
    await connection.send(fault.status, refused.body(pretty=fault.body == "pretty") + b"\n", headers)
