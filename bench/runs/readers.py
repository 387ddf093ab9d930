"""What it costs to receive the bytes at all: a list of pods, read and thrown away."""

from __future__ import annotations

import asyncio
import time
from urllib.parse import urlsplit

from ..cases import Figures
from ..memory import peak
from .child import answer

PATH = "/api/v1/pods?resourceVersion=0"


async def measure(*, began: float, url: str, reader: str) -> Figures:
    """`reader`: `aiohttp`, or `protocol`, a bare one on uvloop; `wall` is from the start of the process."""
    asked = time.monotonic()
    received = await (_aiohttp(url) if reader == "aiohttp" else _protocol(url))
    now = time.monotonic()
    return {"wall": now - began, "cpu": time.process_time(), "peak": peak(), "throughput": received / 1e6 / (now - asked)}


async def _aiohttp(url: str) -> int:
    import aiohttp

    received = 0
    async with aiohttp.ClientSession(read_bufsize=1 << 18) as session, session.get(url + PATH, raise_for_status=True) as response:
        async for chunk in response.content.iter_any():
            received += len(chunk)
    return received


async def _protocol(url: str) -> int:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    class Reader(asyncio.Protocol):
        def __init__(self) -> None:
            self.received = 0

        def data_received(self, data: bytes) -> None:
            self.received += len(data)

        def connection_lost(self, _: Exception | None) -> None:
            ended.set_result(self.received)

    transport, _ = await loop.create_connection(Reader, "127.0.0.1", urlsplit(url).port or 0)
    transport.write(f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
    return await ended


if __name__ == "__main__":
    answer(measure)
