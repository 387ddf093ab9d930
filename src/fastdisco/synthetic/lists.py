"""Lists: which state a request means, pages of it, and its bytes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import orjson

from fastdisco.synthetic.faults import Fault
from fastdisco.synthetic.http import Buffer, Connection
from fastdisco.synthetic.options import Options, Token, expired
from fastdisco.synthetic.resources import Route
from fastdisco.synthetic.selectors import parse_selectors
from fastdisco.synthetic.status import too_large, too_old
from fastdisco.synthetic.store import Entry, Store, Table

_PER_CHUNK = 128  # about 1 MB of pods
_TAIL = b"]}\n"


async def serve_list(store: Store, route: Route, options: Options, connection: Connection) -> None:
    """Answer a list; the unfiltered whole is framed once per state and namespace."""
    table = store.tables[route.resource.plural]
    matches = parse_selectors(options.labels, options.fields, route.resource)
    state = _state(table, store.version, options)
    limit = options.limit if options.token is not None or options.version != 0 else 0
    fault = connection.fault
    if matches is None and not limit and options.token is None and state is None and fault is None:
        key = ("frames", route.namespace, route.version, route.metadata_only, store.version)
        frames = table.cache.get(key)
        if frames is None:
            entries = table.ordered(route.namespace)[1]
            frames = table.cache[key] = _frames(_head(route, store.version), [route.body(entry.body) for entry in entries])
        await connection.start()
        await connection.frames(frames)
        return
    version = store.version if state is None else state
    keys, entries = table.ordered(route.namespace) if state is None else table.at(state, route.namespace)
    first = bisect_left(keys, options.token.start) if options.token is not None else 0
    page: list[Entry] = entries[first:]
    last = len(entries)
    if matches is not None or limit:
        page = []
        for position in range(first, len(entries)):
            entry = entries[position]
            if matches is None or matches(entry):
                if limit and len(page) == limit:
                    last = position
                    break
                page.append(entry)
    token, remaining = "", None
    if last < len(entries):
        token = Token(version, keys[last - 1] + "\0").encode()
        remaining = len(entries) - last if matches is None else None
    head = _head(route, version, token, remaining)
    await _send(connection, head, [route.body(entry.body) for entry in page], fault)


def _state(table: Table, current: int, options: Options) -> int | None:
    """The older version that is asked for; `None`: the present state."""
    if options.token is not None:
        version = options.token.version
        if version >= 0 and version < table.compacted:
            raise expired(options.token.start)
        return version if 0 <= version < current else None
    version = options.version or 0
    if version > current:
        raise too_large(version, current)
    exact = options.match == "Exact" or (not options.match and options.limit > 0)
    if not exact or version in (0, current):
        return None
    if version < table.compacted:
        raise too_old(version, table.compacted)
    return version


def _head(route: Route, version: int, token: str = "", remaining: int | None = None) -> bytes:
    metadata: dict[str, str | int] = {"resourceVersion": str(version)}
    if token:
        metadata["continue"] = token
        if remaining is not None:
            metadata["remainingItemCount"] = remaining
    kind, api_version = route.kind.encode(), route.api_version.encode()
    return b'{"kind":"%bList","apiVersion":"%b","metadata":%b,"items":[' % (kind, api_version, orjson.dumps(metadata))


def _frames(head: bytes, bodies: Sequence[bytes]) -> list[list[bytes]]:
    """The whole body as ready chunks, the last one included; the objects themselves are not copied."""
    if not bodies:
        return [_chunk([head + _TAIL]), [b"0\r\n\r\n"]]
    frames = [_chunk([head + bodies[0][1:], *bodies[1:_PER_CHUNK]])]
    frames += [_chunk(bodies[start : start + _PER_CHUNK]) for start in range(_PER_CHUNK, len(bodies), _PER_CHUNK)]
    return [*frames, [*_chunk([_TAIL]), b"0\r\n\r\n"]]


def _chunk(buffers: Sequence[bytes]) -> list[bytes]:
    return [b"%x\r\n" % sum(map(len, buffers)), *buffers, b"\r\n"]


async def _send(connection: Connection, head: bytes, bodies: list[bytes], fault: Fault | None) -> None:
    """A list that is not cached, or that a fault spoils."""
    buffers: list[Buffer]
    if fault is not None and fault.null_items:
        buffers = [head[:-1] + b"null}\n"]
    elif bodies:
        buffers = [head + bodies[0][1:], *bodies[1:], _TAIL]
    else:
        buffers = [head + _TAIL]
    cut = fault is not None and fault.truncate is not None
    if fault is not None and fault.truncate is not None:
        buffers = _truncated(buffers, fault.truncate)
    await connection.start()
    for start in range(0, len(buffers), _PER_CHUNK):
        await connection.chunk(buffers[start : start + _PER_CHUNK])
    if cut and fault is not None:
        await connection.wind_up(fault.ending)
    else:
        await connection.finish()


def _truncated(buffers: list[Buffer], size: int) -> list[Buffer]:
    kept: list[Buffer] = []
    for buffer in buffers:
        if size <= 0:
            break
        kept.append(buffer[:size])
        size -= len(buffer)
    return kept
