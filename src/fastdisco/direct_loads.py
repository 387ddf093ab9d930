"""Objects that labels need and the cache lacks: loaded one by one, in the background, and only where that can help."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING

from .errors import ApiError, DecodeError, NetworkError

if TYPE_CHECKING:
    from .metrics import Metrics

Wanted = tuple[str, str, str]
"""Kind, namespace and name."""

_AT_ONCE = 8
_MISS_AGE = 60.0  # seconds that a missing object is not asked for again; its ADDED event brings it sooner
_MOST = 1000  # objects asked for within that time: loads fill gaps that a watch is about to fill, and must not become a list

logger = logging.getLogger("fastdisco")


class DirectLoads:
    """Loads missing objects of one group: a few at a time, each once, and not again for a while if it does not exist."""

    def __init__(
        self,
        fetch: Callable[[Wanted], Awaitable[bytes]],
        is_here: Callable[[Wanted], bool],
        deliver: Callable[[Wanted, bytes], None],
        metrics: Metrics,
        *,
        at_once: int = _AT_ONCE,
        miss_age: float = _MISS_AGE,
        most: int = _MOST,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._fetch = fetch
        self._is_here = is_here
        self._deliver = deliver
        self._metrics = metrics
        self._at_once = at_once
        self._miss_age = miss_age
        self._most = most
        self._clock = clock
        self._waiting: deque[Wanted] = deque()
        self._under_way: dict[Wanted, asyncio.Task[None]] = {}
        self._known: dict[Wanted, float] = {}  # when each may be asked for again, in the order of time

    def want(self, wanted: Wanted) -> None:
        """An object is missing; nothing happens if it is being loaded, or was asked for lately, or if too many are missing."""
        now = self._clock()
        while self._known:
            oldest = next(iter(self._known))
            if self._known[oldest] > now:
                break
            del self._known[oldest]
        if wanted not in self._known and len(self._known) < self._most:
            self._known[wanted] = now + self._miss_age
            self._waiting.append(wanted)
            self._go_on()

    async def stop(self) -> None:
        """No delivery comes afterwards, and nothing is asked for; it may be called again, as after a stop that was cut short."""
        self._waiting.clear()
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        # The group's own methods would keep it, and its store, until the next full collection.
        self._fetch, self._is_here, self._deliver = _fetch_nothing, lambda _: True, lambda *_: None

    def _go_on(self) -> None:
        while self._waiting and len(self._under_way) < self._at_once:
            wanted = self._waiting.popleft()
            if self._is_here(wanted):  # its watch was faster
                continue
            self._under_way[wanted] = asyncio.get_running_loop().create_task(self._load(wanted))

    async def _load(self, wanted: Wanted) -> None:
        totals = self._metrics.role(wanted[0])
        try:
            totals.direct_loads += 1
            self._deliver(wanted, await self._fetch(wanted))
        except ApiError as error:
            if error.code == 404:
                totals.direct_load_misses += 1
            else:
                totals.direct_load_errors += 1
                logger.debug("cannot load %s: %s", "/".join(wanted), error)
        except (NetworkError, DecodeError) as error:
            totals.direct_load_errors += 1
            logger.debug("cannot load %s: %s", "/".join(wanted), error)
        finally:
            del self._under_way[wanted]
            self._go_on()


async def _fetch_nothing(wanted: Wanted) -> bytes:
    raise NetworkError("reset", f"nothing is loaded any more, nor {'/'.join(wanted)}")
