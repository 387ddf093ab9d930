"""A steady rate of changes, until it is told otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from fastdisco.synthetic.changes import Changes

_TICK = 0.002  # seconds: a thousand changes a second come two at a time
_MOST = 5_000  # events at once, after the loop was busy with something else


class Churn:
    """Events at a rate, spread evenly over the resources; one background task while the rate is not 0."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._task: asyncio.Task[None] | None = None
        self.rate = 0.0
        self.events = 0  # in all, those of what follows included

    def start(self, rate: float, plurals: Sequence[str], mix: Mapping[str, float], change: str, *, follow: bool) -> None:
        """Begin, or go on at another rate: `rate` changes per second, without what follows from them.

        `mix` weighs `modified`, `added` and `deleted`; the last two concern pods alone, other objects are always modified.
        """
        self.stop()
        if rate > 0:
            self.rate = rate
            self._task = asyncio.get_running_loop().create_task(self._run(rate, plurals, mix, change, follow))

    def stop(self) -> None:
        """End at once."""
        self.rate = 0.0
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self, rate: float, plurals: Sequence[str], mix: Mapping[str, float], change: str, follow: bool) -> None:
        loop = asyncio.get_running_loop()
        began, done = loop.time(), 0
        total = sum(mix.values())
        added, deleted = mix.get("added", 0.0) / total, mix.get("deleted", 0.0) / total
        while True:
            await asyncio.sleep(_TICK)
            due = int((loop.time() - began) * rate) - done
            for _ in range(min(due, _MOST)):
                plural = plurals[done % len(plurals)]
                done += 1
                where = (done // len(plurals) * 0.6180339887498949) % 1  # evenly spread, without chance
                if plural == "pods" and where < added:
                    self.events += self._changes.add_pod(follow=follow)
                elif plural == "pods" and where < added + deleted:
                    self.events += self._changes.delete_pod(follow=follow)
                else:
                    self.events += self._changes.modify(plural, change, follow=follow)
