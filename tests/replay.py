"""A test server of HTTP/1.1 that answers byte for byte what a script says, cut where it says, and keeps books of what was asked."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, Self
from urllib.parse import parse_qsl, urlsplit

import orjson

WIRE = Path(__file__).parent / "data" / "wire"

Kind = Literal["list", "watch"]


@dataclass(frozen=True)
class Request:
    """One line of the books; a GET of one object counts as a list of its path."""

    kind: Kind
    path: str
    query: Mapping[str, str]
    raw_query: str
    headers: Mapping[str, str]
    at: float


class Peer:
    """One connection of a client, as an answer sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes, cut: int = 0) -> None:
        """In pieces of `cut` bytes, each a packet of its own as far as the network lets it be."""
        for start in range(0, len(data), cut or len(data) or 1):
            self.writer.write(data[start : start + (cut or len(data))])
            await self.writer.drain()
            await asyncio.sleep(0)

    async def until_closed(self) -> None:
        with suppress(ConnectionError):
            while await self.reader.read(65536):
                pass

    def reset(self) -> None:
        """TCP RST, whatever is still on its way."""
        opened: socket.socket = self.writer.get_extra_info("socket")
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class Answer(Protocol):
    async def give(self, peer: Peer) -> bool:
        """Whether the connection may be used for another request."""


@dataclass(frozen=True)
class Bytes:
    """A whole response, and what comes after it."""

    data: bytes
    cut: int = 0
    then: Literal["keep", "close", "hang", "reset"] = "keep"
    when: asyncio.Event | None = None
    """Wait for it before the first byte."""

    async def give(self, peer: Peer) -> bool:
        if self.when is not None:
            await self.when.wait()
        await peer.send(self.data, self.cut)
        if self.then == "hang":
            await peer.until_closed()
        elif self.then == "reset":
            peer.reset()
        return self.then == "keep"


@dataclass
class Stream:
    """A watch that the test feeds while it is open."""

    opened: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """The client is gone."""
    _queue: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)

    def send(self, *lines: object) -> None:
        """Events as mappings, or raw bytes; each is one HTTP chunk."""
        for line in lines:
            raw = line if isinstance(line, bytes) else orjson.dumps(line) + b"\n"
            self._queue.put_nowait(chunk(raw))

    def end(self) -> None:
        """As the server ends a watch."""
        self._queue.put_nowait(b"0\r\n\r\n")

    def cut(self) -> None:
        """A TCP reset in the middle."""
        self._queue.put_nowait(None)

    async def give(self, peer: Peer) -> bool:
        await peer.send(WATCH_HEAD)
        self.opened.set()
        gone = asyncio.ensure_future(peer.until_closed())
        try:
            while True:
                following = asyncio.ensure_future(self._queue.get())
                await asyncio.wait([gone, following], return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    following.cancel()
                    return False
                data = following.result()
                if data is None:
                    peer.reset()
                    return False
                await peer.send(data)
                if data == b"0\r\n\r\n":
                    return False
        finally:
            gone.cancel()
            self.closed.set()


WATCH_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


class Server:
    """Answers by script: for each kind and path the answers in turn, the last one again and again; unknown paths get 404."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.url = ""
        self.most_lists = 0
        """The greatest number of lists in flight at one time."""
        self.connections: set[Peer] = set()
        self._tls = tls
        self._port = 0
        self._lists = 0
        self._script: dict[tuple[Kind, str], list[Answer]] = defaultdict(list)
        self._choose: Callable[[Request], Answer | None] = lambda _: None
        self._changed = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.refuse()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def listen(self) -> None:
        """Again at the same port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, ssl=self._tls, backlog=1000)
        self._port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    async def refuse(self) -> None:
        """Nobody listens any more, and open connections are cut."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for peer in list(self.connections):
            peer.writer.transport.abort()

    def on(self, kind: Kind, path: str, *answers: Answer) -> None:
        """These follow the answers that the path has already, whose last no longer repeats."""
        self._script[kind, path] += answers

    def choose(self, choose: Callable[[Request], Answer | None]) -> None:
        """Asked before the script, at each request."""
        self._choose = choose

    def asked(self, kind: Kind, path: str) -> list[Request]:
        return [request for request in self.requests if (request.kind, request.path) == (kind, path)]

    async def wait_for(self, kind: Kind, path: str, count: int) -> Request:
        """The `count`th request of the sort, as soon as it has come."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.asked(kind, path)) >= count)
        return self.asked(kind, path)[count - 1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        peer = Peer(reader, writer)
        self.connections.add(peer)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._one(peer):
                    pass
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            self.connections.discard(peer)
            writer.transport.abort()

    async def _one(self, peer: Peer) -> bool:
        head = (await peer.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        target = urlsplit(head[0].split(" ")[1])
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        query = dict(parse_qsl(target.query, keep_blank_values=True))
        kind: Kind = "watch" if query.get("watch") in ("1", "true") else "list"
        request = Request(kind, target.path, query, target.query, headers, asyncio.get_running_loop().time())
        answer = self._choose(request) or self._next(kind, target.path)
        self._lists += kind == "list"
        self.most_lists = max(self.most_lists, self._lists)
        async with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        try:
            return await answer.give(peer)
        finally:
            self._lists -= kind == "list"

    def _next(self, kind: Kind, path: str) -> Answer:
        answers = self._script.get((kind, path))
        if not answers:
            return status(404, "NotFound", "the server could not find the requested resource")
        return answers.pop(0) if len(answers) > 1 else answers[0]


def chunk(data: bytes) -> bytes:
    """One chunk of chunked transfer."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def response(code: int, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    """A whole response with its length."""
    lines = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
    head = "\r\n".join([f"HTTP/1.1 {code} Reason", *(f"{name}: {value}" for name, value in lines.items())])
    return head.encode() + b"\r\n\r\n" + body


def recording(name: str, **how: Any) -> Bytes:
    """A recorded response, or a recorded list body as a response."""
    data = (WIRE / name).read_bytes()
    return Bytes(data if name.endswith(".http") else response(200, data), **how)


def status(code: int, reason: str = "", message: str = "", *, cause: str = "", retry_after: str = "", **how: Any) -> Bytes:
    """An error as kube-apiserver tells it."""
    headers = {"Retry-After": retry_after} if retry_after else None
    return Bytes(response(code, orjson.dumps(status_of(code, reason, message, cause)), headers), **how)


def status_of(code: int, reason: str = "", message: str = "", cause: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code}
    found |= {"message": message, "reason": reason} | ({"details": {"causes": [{"reason": cause}]}} if cause else {})
    return found


def listing(version: int | str, *objects: Mapping[str, Any], token: str = "", **how: Any) -> Bytes:
    """A list of these objects."""
    metadata = {"resourceVersion": str(version)} | ({"continue": token} if token else {})
    return Bytes(response(200, orjson.dumps({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": objects})), **how)


def watching(*events: object, **how: Any) -> Bytes:
    """A watch that brings these events and ends as servers end watches."""
    raw = b"".join(chunk(event if isinstance(event, bytes) else orjson.dumps(event) + b"\n") for event in events)
    return Bytes(WATCH_HEAD + raw + b"0\r\n\r\n", **how)


def pod(name: str, version: int, **labels: str) -> dict[str, Any]:
    """As little of a pod as makes a difference."""
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(version), "labels": labels}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Running", "podIP": "10.0.0.1"}}


def event(kind: str, obj: Mapping[str, Any]) -> dict[str, Any]:
    """A line of a watch."""
    return {"type": kind, "object": obj}


def bookmark(version: int) -> dict[str, Any]:
    return event("BOOKMARK", {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": str(version), "creationTimestamp": None}})


def error_event(code: int, reason: str = "", message: str = "", cause: str = "") -> dict[str, Any]:
    return event("ERROR", status_of(code, reason, message, cause))
