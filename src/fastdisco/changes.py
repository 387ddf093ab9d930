"""What a job tells its readers: one change a target, in order, and a snapshot for whoever was away."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

_MOST_WAITING = 10_000  # changes that a reader may be behind; then they are dropped for a snapshot


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a job's scrape works, or all of them at once."""

    kind: Literal["added", "updated", "removed", "snapshot"]
    version: int
    """Of the job, after the change; it rises."""
    work: Any = None
    """Added, or removed, or what an updated target is now."""
    old: Any = None
    """What an updated target was before."""
    works: tuple[Any, ...] = ()
    """Of a snapshot: all works."""


class Reader:
    """An asynchronous iterator over changes: first a snapshot, then what changes; it ends when the job stops.

    It never holds the job up: a reader that is too far behind gets a snapshot in the place of what it missed.
    """

    def __init__(self, snapshot: Callable[[], Change | None], leave: Callable[[Reader], None], most_waiting: int = _MOST_WAITING) -> None:
        self._snapshot = snapshot
        self._leave = leave
        self._most_waiting = most_waiting
        self._waiting: deque[Change] = deque()
        self._behind = True
        self._ended = False
        self._something = asyncio.Event()

    def put(self, change: Change) -> None:
        """Called by the job for each change."""
        if self._behind:
            return
        if len(self._waiting) >= self._most_waiting:
            self.fall_behind()
            return
        self._waiting.append(change)
        self._something.set()

    def fall_behind(self) -> None:
        """What waits is worth nothing any more: the next thing to read is a snapshot."""
        self._waiting.clear()
        self._behind = True
        self._something.set()

    def end(self) -> None:
        """The job has stopped: what waits can still be read."""
        self._ended = True
        self._something.set()

    def __aiter__(self) -> Reader:
        return self

    async def __anext__(self) -> Change:
        while True:
            if self._behind and not self._ended:
                change = self._snapshot()
                if change is not None:
                    self._behind = False
                    return change
            elif self._waiting:
                return self._waiting.popleft()
            if self._ended:
                raise StopAsyncIteration
            self._something.clear()
            await self._something.wait()

    async def aclose(self) -> None:
        """No longer read."""
        self.end()
        self._waiting.clear()
        self._leave(self)
