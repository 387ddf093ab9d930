"""What tests, demos and benchmarks do to a running server: `POST /control/<name>` with the arguments as a JSON object.

Each public method of `Control` is one endpoint, also reachable by GET and DELETE where its docstring says so;
the answer is its result as JSON, or 400 with `{"error": …}`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from fastdisco.synthetic.changes import CHANGES, Changes
from fastdisco.synthetic.churn import Churn
from fastdisco.synthetic.digests import target_digest
from fastdisco.synthetic.faults import Fault
from fastdisco.synthetic.http import Connection, Request
from fastdisco.synthetic.resources import Route, resource_named
from fastdisco.synthetic.status import StatusError
from fastdisco.synthetic.writes import delete, put

if TYPE_CHECKING:
    from fastdisco.synthetic.server import SyntheticServer

_SETTINGS = ("bookmark_interval", "watch_seconds", "watch_list", "token")


class Control:
    """The control of one server, in process or over HTTP."""

    def __init__(self, server: SyntheticServer) -> None:
        self._server = server
        self._store = server.store
        self._changes: Changes | None = None
        self._churn: Churn | None = None
        self._names = (
            *("requests", "faults", "watches", "apply", "compact", "rewind", "settings", "state"),
            *("churn", "burst", "release", "turnover", "certificate", "targets", "apps"),
        )

    def stop(self) -> None:
        """End the churn, when the server closes."""
        if self._churn is not None:
            self._churn.stop()

    async def answer(self, connection: Connection, request: Request) -> None:
        """Serve one control request."""
        name = request.path.removeprefix("/control/").strip("/")
        if name not in self._names:
            raise StatusError(404, f"no such control: {name}; there are {', '.join(self._names)}")
        try:
            given: Any = orjson.loads(request.body) if request.body else None
            result = self._call(getattr(self, name), request.method, given)
            if asyncio.iscoroutine(result):
                result = await result
        except (ValueError, KeyError, TypeError, StatusError) as error:
            await connection.send(400, orjson.dumps({"error": f"{type(error).__name__}: {error}"}))
            return
        await connection.send(200, orjson.dumps(result))

    def _call(self, method: Callable[..., Any], http: str, given: Any) -> Any:
        if http == "GET":
            return method()
        if http == "DELETE":
            return method(clear=True)
        if isinstance(given, list):
            return method(given)
        return method(**(given or {})) if given or method.__name__ != "requests" else method(clear=True)

    def requests(self, *, clear: bool = False) -> dict[str, Any]:
        """The books (GET); POST or DELETE clears them and returns what they held."""
        report = orjson.loads(orjson.dumps(self._server.books.report())) if clear else self._server.books.report()
        if clear:
            self._server.books.clear()
        return report

    def faults(self, rules: Sequence[Mapping[str, Any]] | None = None, *, add: bool = False, clear: bool = False, **rule: Any) -> list[Any]:
        """Set the faults: a JSON array of rules, or one rule as an object, replaces all; with `add` they come after the others.

        GET lists the rules with what is left of their counts, DELETE removes them. A rule's keys are the fields of `Fault`.
        """
        if clear:
            self._server.faults.set(())
        elif rules is not None or rule:
            self._server.faults.set([*(rules or ()), *((rule,) if rule else ())], add=add)
        return self._server.faults.report()

    def watches(self, path: str = "/", ending: str = "", **fault: Any) -> dict[str, Any]:
        """Make all open watches under `path` end: `ending` and further keys as in `Fault` (`mid_line`, `error`, `lines`).

        Without `ending` (GET): only count them.
        """
        met = [watch for watch in self._server.watches if watch.path.startswith(path)]
        if ending:
            for watch in met:
                watch.command(Fault(ending=ending, **fault))
        return {"count": len(met)}

    def apply(self, changes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Many writes in one turn, in this order: `{"put": "pods", "object": {…}}` or `{"delete": "pods", "key": "ns/name"}`."""
        for change in changes:
            if "put" in change:
                put(self._store, Route(resource_named(change["put"]), "v1"), change["object"])
            else:
                namespace, _, name = str(change["key"]).rpartition("/")
                delete(self._store, Route(resource_named(change["delete"]), "v1", namespace, name))
        return {"resourceVersion": self._store.version}

    def churn(
        self,
        rate: float | None = None,
        *,
        kinds: Sequence[str] = ("pods",),
        mix: Mapping[str, float] | None = None,
        change: str = "ready",
        follow: bool = True,
        clear: bool = False,
    ) -> dict[str, Any]:
        """A steady `rate` of changes per second of these `kinds`, `mix` weighing modified, added and deleted; 0 or DELETE stops.

        GET tells the rate and the number of events so far. `change` and `follow`: see `Changes`.
        """
        if self._churn is None:
            self._churn = Churn(self._model())
        if clear or rate is not None:
            shares = dict(mix or {"modified": 1.0})
            if set(shares) - {"modified", "added", "deleted"} or sum(shares.values()) <= 0 or change not in CHANGES:
                raise ValueError("mix: weights of modified, added, deleted; change: ready, annotation, touch")
            self._churn.start(0 if clear or rate is None else rate, _plurals(kinds), shares, change, follow=follow)
        return {"rate": self._churn.rate, "events": self._churn.events, "resourceVersion": self._store.version}

    async def burst(
        self,
        events: int,
        *,
        kinds: Sequence[str] = ("pods",),
        change: str = "ready",
        turned: float = 0.0,
        marker: str = "",
        app: str = "",
        hold: bool = False,
    ) -> dict[str, Any]:
        """This many changes at once: watches see none before all are made, and with `hold` none before `release`.

        `change`: see `Changes`; `turned`, `marker` and `app`: see `Changes.burst`.
        """
        plurals = _plurals(kinds)
        for plural in plurals:
            self._store.tables[plural].hold()
        try:
            count = await self._model().burst(plurals, events, change, turned=turned, marker=marker, app=app)
        finally:
            if not hold:
                self.release()
        return {"events": count, "resourceVersion": self._store.version}

    def release(self) -> dict[str, Any]:
        """Let watches see the bursts that were held, as fast as they can; tells when, in nanoseconds of the machine's monotonic clock."""
        now = time.monotonic_ns()
        for table in self._store.tables.values():
            table.release()
        return {"time": now, "resourceVersion": self._store.version}

    def targets(self, app: str = "", *, ready: bool = False) -> dict[str, Any]:
        """How many targets the pods now give in the role pod, or those of one app, or ready ones; and a digest of them: see `digests`."""
        return target_digest(self._server.cluster, app, ready=ready)

    def apps(self) -> dict[str, int]:
        """The apps of a made cluster, by their label `app`, and how many pods each has."""
        return {app.name: len(app.pods) for app in self._server.cluster.apps}

    async def turnover(self, *, follow: bool = True) -> dict[str, Any]:
        """Delete all pods and create as many with new names; answers when all is done."""
        count = await self._model().turnover(follow=follow)
        return {"events": count, "resourceVersion": self._store.version}

    def _model(self) -> Changes:
        if self._changes is None:
            self._changes = Changes(self._server.cluster)
        return self._changes

    def compact(self) -> dict[str, Any]:
        """Forget the history: watches and continue tokens from older versions get 410; open watches go on."""
        self._store.compact()
        return {"resourceVersion": self._store.version}

    def rewind(self, to: int, *, end_watches: bool = True) -> dict[str, Any]:
        """Set the resource version back, as after a restored backup; open watches end unless told otherwise."""
        self._store.rewind(to)
        if end_watches:
            self.watches(ending="end")
        return {"resourceVersion": to}

    def settings(self, *, v1: bool | None = None, v1beta1: bool | None = None, **settings: Any) -> dict[str, Any]:
        """Change `bookmark_interval`, `watch_seconds`, `watch_list`, `token` or the served versions; open watches keep theirs."""
        if unknown := set(settings) - set(_SETTINGS):
            raise ValueError(f"unknown settings: {', '.join(sorted(unknown))}")
        for name, value in settings.items():
            setattr(self._server, name, value)
        versions = self._server.versions
        versions.v1 = versions.v1 if v1 is None else v1
        versions.v1beta1 = versions.v1beta1 if v1beta1 is None else v1beta1
        return {name: getattr(self._server, name) for name in _SETTINGS} | {"v1": versions.v1, "v1beta1": versions.v1beta1}

    def certificate(self, cert_file: str, key_file: str) -> dict[str, Any]:
        """Present another certificate to new connections of a server that was started with one."""
        self._server.load_certificate(cert_file, key_file)
        return {}

    def state(self) -> dict[str, Any]:
        """The version, the number of objects of each resource, the open watches, the process."""
        return {
            "resourceVersion": self._store.version,
            "objects": {plural: len(table.entries) for plural, table in self._store.tables.items()},
            "watches": len(self._server.watches),
            "pid": os.getpid(),
        }


def _plurals(kinds: Sequence[str]) -> list[str]:
    return [resource_named(kind).plural for kind in kinds]
