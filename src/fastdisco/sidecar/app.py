"""The routes of the web application."""

from __future__ import annotations

import html
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web
from prometheus_client.exposition import choose_encoder

from fastdisco.discovery import Discovery

from .health import Health
from .http_sd import HttpSD
from .service import Service
from .targets import active_targets

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>fastdisco</title>
<style>body {{ font-family: sans-serif; margin: 2em; }} td, th {{ padding: 0.2em 1.5em 0.2em 0; text-align: left; }}</style></head>
<body>
<h1>fastdisco</h1>
<ul>
<li><a href="api/v1/targets">api/v1/targets</a>: all targets, as Prometheus' API shows them; <code>?state=active</code>,
<code>dropped</code> or <code>any</code>; <code>?scrapePool=JOB</code></li>
<li><a href="sd">sd</a>: where Prometheus and vmagent poll each job's targets</li>
<li><a href="metrics">metrics</a>: of the discovery itself</li>
<li><a href="-/healthy">-/healthy</a>, <a href="-/ready">-/ready</a>: whether it runs; whether every job has synced</li>
</ul>
<table>
<tr><th>job</th><th>synced</th><th>targets</th></tr>
{rows}
</table>
{troubles}</body>
</html>
"""
_ROW = '<tr><td><a href="api/v1/targets?scrapePool={query}">{name}</a></td><td>{synced}</td><td>{targets}</td></tr>'


_TROUBLES = "<h2>Troubles</h2>\n<ul>\n{rows}\n</ul>\n"
_BODY_BYTES = 64 * 1024  # no request needs one
_STATES = ("active", "dropped", "any")


def make_health_app(service: Service) -> web.Application:
    """`/-/healthy` and `/-/ready` alone, for probes that have no credentials."""
    app = web.Application()
    Health(service.jobs).add_to(app)
    return app


def make_app(service: Service, *, lifecycle: bool = True) -> web.Application:
    """Serves the jobs that the service has at the time of a request; `lifecycle`: whether a request may reload the configuration."""
    options, prefix = service.options, service.options.route_prefix
    http_sd = HttpSD(
        service.jobs, service.exports, service.polls,
        sync_wait=options.sync_wait, max_staleness=options.max_staleness, base_url=options.external_url,
    )  # fmt: skip
    routes = _Routes(service.discovery, prefix)
    app = web.Application(client_max_size=_BODY_BYTES, middlewares=[_refuse_bad_host])
    app.router.add_get(f"{prefix}/", routes.page)
    if prefix:
        app.router.add_get(prefix, routes.to_page)
        app.router.add_get("/", routes.to_page)
    app.router.add_get(f"{prefix}/metrics", routes.metrics)
    app.router.add_get(f"{prefix}/api/v1/targets", routes.targets)
    app.router.add_get(f"{prefix}/sd", http_sd.index)
    app.router.add_get(f"{prefix}/sd/{{job:(?s:.+)}}", http_sd.targets)
    Health(service.jobs).add_to(app, prefix)
    if service.reload is not None:
        for method in ("POST", "PUT"):
            app.router.add_route(method, f"{prefix}/-/reload", service.reload.on_request if lifecycle else routes.no_lifecycle)
    app.router.add_get(f"{prefix}/api/v1/status/config", service.shown_configuration)
    return app


@web.middleware
async def _refuse_bad_host(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers that name URLs are made of it."""
    try:
        request.url.origin()
    except ValueError:
        return web.Response(status=400, text="the Host of the request is no host and port\n")
    return await handler(request)


class _Routes:
    def __init__(self, discovery: Discovery, prefix: str) -> None:
        self._discovery = discovery
        self._home = f"{prefix}/"

    async def page(self, request: web.Request) -> web.Response:
        state = self._discovery.status()
        rows = []
        for name, status in state["jobs"].items():
            query = html.escape(str(request.url.with_query(scrapePool=name).raw_query_string).removeprefix("scrapePool="))
            synced = "yes" if status["synced"] else "no"
            rows.append(_ROW.format(query=query, name=html.escape(name), synced=synced, targets=f"{status['scrape_works']:,}"))
        troubles = "\n".join(f"<li>{html.escape(text)}</li>" for text in dict.fromkeys(_troubles(state)))
        page = _PAGE.format(rows="\n".join(rows), troubles=_TROUBLES.format(rows=troubles) if troubles else "")
        return web.Response(text=page, content_type="text/html")

    async def metrics(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(self._discovery.metrics.registry), headers={"Content-Type": content_type})

    async def targets(self, request: web.Request) -> web.StreamResponse:
        """In pieces: the answer may be a gigabyte, and is never whole in memory."""
        state = request.query.get("state", "").lower() or "any"
        if state not in _STATES:
            return _bad_data(f'invalid parameter "state": must be one of {", ".join(_STATES)}, not {state!r}')
        pool = request.query.get("scrapePool", "")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if request.method != "HEAD":
            with suppress(ConnectionError):  # the client may leave at any time
                await self._write_targets(response, state, pool)
        return response

    async def _write_targets(self, response: web.StreamResponse, state: str, pool: str) -> None:
        await response.write(b'{"status":"success","data":{"activeTargets":[')
        if state in ("active", "any"):
            separator = b""
            async for some in active_targets(self._discovery, pool):
                await response.write(separator + some)
                separator = b","
        # How many are dropped is known for each job; which, `fastdisco explain` tells.
        counts = {name: count for name, count in (await self._discovery.dropped_counts()).items() if not pool or pool == name}
        await response.write(b'],"droppedTargets":[],"droppedTargetCounts":' + orjson.dumps(counts, option=orjson.OPT_SORT_KEYS) + b"}}")
        await response.write_eof()

    async def no_lifecycle(self, _request: web.Request) -> web.Response:
        return web.Response(status=403, text="reloading by a request is not enabled: see --web.enable-lifecycle\n")

    async def to_page(self, _request: web.Request) -> web.Response:
        raise web.HTTPFound(self._home)


def _bad_data(reason: str) -> web.Response:
    """As Prometheus' API refuses a request."""
    body = orjson.dumps({"status": "error", "errorType": "bad_data", "error": reason})
    return web.Response(status=400, body=body, content_type="application/json")


def _troubles(state: dict[str, Any]) -> Iterator[str]:
    """What the API server refuses, and what went wrong last where nothing has gone right since."""
    for watcher in chain.from_iterable(group["watchers"] for group in state["groups"]):
        if watcher["refused"]:
            yield f"{watcher['path']} is refused: {watcher['refused']}"
        elif watcher["last_error"]:
            yield f"{watcher['path']} ({watcher['state']}): {watcher['last_error']}"
