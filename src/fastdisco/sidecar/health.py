"""Whether it runs, and whether there is something to serve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from .jobs import Jobs


class Health:
    """`/-/healthy` and `/-/ready`."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    async def healthy(self, _request: web.Request) -> web.Response:
        """As long as the loop turns."""
        return web.Response(text="fastdisco is healthy.\n")

    async def ready(self, request: web.Request) -> web.Response:
        """Whether each job has synced, or will not: the server has refused it, and a probe that waits would wait for ever.

        `?job=NAME`: whether that one has synced.
        """
        if (name := request.query.get("job")) is not None:
            job = self._jobs.get(name)
            if job is None:
                return web.Response(status=404, text=f"there is no job {name}\n")
            waiting = [] if job.is_synced else [name]
        else:
            waiting = sorted(job.name for job in self._jobs if not job.is_settled)
        if waiting:
            return web.Response(status=503, text=f"fastdisco is not ready: not synced yet: {', '.join(waiting)}.\n")
        return web.Response(text="fastdisco is ready.\n")

    def add_to(self, app: web.Application, prefix: str = "") -> None:
        """Its routes."""
        app.router.add_get(f"{prefix}/-/healthy", self.healthy)
        app.router.add_get(f"{prefix}/-/ready", self.ready)
