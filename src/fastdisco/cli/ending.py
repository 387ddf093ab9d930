"""How a command ends: by itself, or by Ctrl-C or SIGTERM, which cancel it so that it can clean up."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


async def until_signal(work: Coroutine[Any, Any, int]) -> int:
    """The exit code that `work` returns, cancelled or not; if a signal ended it without one, 128 and the signal's number.

    A second signal ends the program at once.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    caught: list[int] = []

    def stop(number: int) -> None:
        if caught:
            os._exit(128 + number)
        caught.append(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    try:
        return await task
    except asyncio.CancelledError:
        if not caught:
            raise
        return 128 + caught[0]


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Outside of a loop, SIGTERM raises as Ctrl-C does, so that a process that was started is ended."""

    def interrupt(_number: int, _frame: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
