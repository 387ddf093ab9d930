"""A configuration that changes while it runs: by a signal, by a request, or because its files have changed."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from aiohttp import web

from fastdisco.configuration import changed
from fastdisco.errors import FastdiscoError

from .loading import Options, load, report

if TYPE_CHECKING:
    from .jobs import Jobs

logger = logging.getLogger("fastdisco")

CHECK_SECONDS = 30.0


class Reload:
    """Reads the configuration again, one time after the other; what is bad leaves all as it is."""

    def __init__(self, options: Options, jobs: Jobs) -> None:
        self.successful = True
        self.last_success = time.time()
        """Unix time."""
        self._options = options
        self._jobs = jobs
        self._lock = asyncio.Lock()
        self._failed = ""  # what the log has heard of

    async def now(self) -> None:
        """FastdiscoError or OSError if the configuration is bad, and nothing has changed."""
        async with self._lock:
            try:
                configuration = await asyncio.to_thread(load, self._options)
                change = await self._jobs.apply(configuration)
            except (FastdiscoError, OSError) as error:
                self.successful = False
                if str(error) != self._failed:
                    logger.error("the configuration is bad, and the one before goes on: %s", error)
                self._failed = str(error)
                raise
            self.successful, self.last_success, self._failed = True, time.time(), ""
            logger.info(
                "reloaded %s: jobs added %d, removed %d, replaced %d, relabeled %d, kept %d",
                self._options.file, *map(len, (change.added, change.removed, change.replaced, change.relabeled, change.kept)),
            )  # fmt: skip
            await asyncio.to_thread(report, configuration)

    async def on_signal(self) -> None:
        """As `now`; a failure is in the log."""
        try:
            await self.now()
        except (FastdiscoError, OSError):
            pass

    async def on_request(self, _request: web.Request) -> web.Response:
        """`POST` or `PUT /-/reload`."""
        try:
            await self.now()
        except (FastdiscoError, OSError) as error:
            return web.Response(status=500, text=f"failed to reload the configuration: {error}\n")
        return web.Response(text="")

    async def when_changed(self, seconds: float = CHECK_SECONDS) -> None:
        """For ever: reloads when a file that was read is another one than before, or other files match; after a failure also when they are
        again what they were."""
        while True:
            await asyncio.sleep(seconds)
            try:
                if not self.successful or await asyncio.to_thread(changed, self._jobs.configuration):
                    await self.now()
            except (FastdiscoError, OSError) as error:
                logger.debug("the files of the configuration cannot be read: %s", error)
