"""All that runs while `fastdisco run` does, put together."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from aiohttp import web

from .exports import Exports
from .file_sd import FileSD
from .http_sd import SYNC_WAIT_SECONDS
from .jobs import Jobs
from .metrics import SidecarMetrics
from .past import MAX_AGE_SECONDS, Past
from .polls import Polls
from .reload import Reload

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from fastdisco.configuration import Configuration
    from fastdisco.discovery import Discovery

    from .loading import Options
    from .query import Syntax
    from .web_config import WebConfig


logger = logging.getLogger("fastdisco")

ONCE_SECONDS = 60.0
"""How long `--once` waits for the first sync."""

_SETTLED_LOOK = 0.05
_AGAIN_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What flags say; seconds, and paths."""

    sync_wait: float = SYNC_WAIT_SECONDS
    max_staleness: float = 0.0
    """0: however old."""
    external_url: str = ""
    """Without a slash at its end; empty: as the request says."""
    route_prefix: str = ""
    """Before all paths; without a slash at its end."""
    file_sd_directory: Path | None = None
    file_sd_format: Syntax = "json"
    file_sd_mode: int = 0o644
    state: Path | None = None
    state_max_age: float = MAX_AGE_SECONDS
    auto_reload: float = 0.0
    """Between two looks at the files; 0: none."""


class Service:
    """The parts, which share one discovery. `reload` is None where no file says what the jobs are."""

    def __init__(self, discovery: Discovery, options: ServiceOptions | None = None, source: Options | None = None) -> None:
        self.options = options = options or ServiceOptions()
        self.discovery = discovery
        self.polls = Polls()
        self.exports = Exports(discovery)
        self.past = Past(options.state, options.state_max_age)
        self.jobs: Jobs = Jobs(discovery, self.exports, self.past)
        self.reload = Reload(source, self.jobs) if source is not None else None
        self.file_sd: FileSD | None = None
        if options.file_sd_directory is not None:
            self.file_sd = FileSD(
                options.file_sd_directory, self.jobs, self.exports, syntax=options.file_sd_format, mode=options.file_sd_mode
            )
        self.web_config: WebConfig | None = None
        """Of the server before it, if a file says anything of that."""
        self._tasks: list[asyncio.Task[None]] = []
        self.metrics = SidecarMetrics(self)

    async def start(self, configuration: Configuration | None, *, keep_files: bool = True) -> None:
        """Jobs first, then what follows from their targets; None: there are jobs already.

        ConfigError; FastdiscoError if the directory cannot be used.
        """
        if self.file_sd is not None:
            self.file_sd.prepare()
        await asyncio.to_thread(self.past.read)
        if configuration is not None:
            await self.jobs.apply(configuration)
            self.jobs.bury(self.past.names)
        if self.file_sd is not None:
            await self.file_sd.make_directories()
        if self.file_sd is not None and keep_files:
            self._go_on(self.file_sd.go_on)
        self._go_on(lambda: self.past.keep(self.jobs, self.exports))
        if (reload := self.reload) is not None and self.options.auto_reload:
            self._go_on(lambda: reload.when_changed(self.options.auto_reload))

    async def settled(self) -> None:
        """Waits until each job has synced, or will not: it has been refused."""
        while not all(job.is_settled for job in self.jobs):  # noqa: ASYNC110  a refusal has no event
            await asyncio.sleep(_SETTLED_LOOK)

    async def write_once(self, timeout: float | None, may_come: Callable[[], bool] = lambda: True) -> dict[str, str]:
        """Writes the file of each job when all have settled; gives those without one, and why. `timeout` None: a minute; 0: for ever.

        `may_come`: whether what has not settled may do so yet; else it is not waited for, unless that is for ever.
        """
        if self.file_sd is None:
            raise ValueError("no directory for files")
        limit = ONCE_SECONDS if timeout is None else timeout
        late = ""
        try:
            async with asyncio.timeout(limit or None):
                while not all(job.is_settled for job in self.jobs) and (not limit or may_come()):  # noqa: ASYNC110  as in `settled`
                    await asyncio.sleep(_SETTLED_LOOK)
        except TimeoutError:
            late = f"no first sync within {limit:g} s (--timeout SECONDS waits for longer): "
        await self.file_sd.write_changed()
        missing = {
            job.name: ("" if job.is_settled else late) + "; ".join(job.troubles or ["it has not synced"])
            for job in self.jobs
            if not job.is_synced
        }
        return missing | {name: f"its file could not be written: {reason}" for name, reason in self.file_sd.reported.items()}

    async def shown_configuration(self, _request: web.Request) -> web.Response:
        """`/api/v1/status/config`: what runs, as YAML without its secrets."""
        body = orjson.dumps({"status": "success", "data": {"yaml": self.jobs.configuration.text}})
        return web.Response(body=body, content_type="application/json")

    def _go_on(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._tasks.append(asyncio.create_task(_again_and_again(work)))

    async def stop(self) -> None:
        """Files stay as they are: who reads them goes on with what they say."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self.metrics.close()


async def _again_and_again(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """What goes on for ever does so, also after a mistake of ours."""
    while True:
        try:
            await work()
        except Exception:
            logger.exception("something that should go on has failed; it starts over")
        await asyncio.sleep(_AGAIN_SECONDS)
