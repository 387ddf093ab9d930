"""The watchers, the store and the rendering that all jobs with the same requests share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from ._core import Store, Symbols
from ._json import Decoder
from ._render import Renderer
from .api import ApiClient
from .auth import Connection
from .direct_loads import DirectLoads, Wanted
from .errors import ApiError, DecodeError, NetworkError
from .recovery import is_lower
from .roles import RESOURCES
from .url_watcher import Timings, URLWatcher

if TYPE_CHECKING:
    from ._batch import Batch
    from ._labels import Labels
    from ._subscriber import Subscriber
    from .metrics import Metrics
    from .totals import Live

logger = logging.getLogger("fastdisco")

_SWEPT_BETWEEN = 2000  # ids of strings looked at between two batches: a fraction of a millisecond


class GroupKey(NamedTuple):
    """All of a configuration that changes a request or its timing; jobs for which it is equal share a group."""

    connection: Connection
    namespaces: tuple[str, ...]
    """Sorted; empty: the whole cluster."""
    selectors: tuple[tuple[str, str, str], ...]
    """(kind, label selector, field selector), sorted, one of a kind."""
    api_server_timeout: float = 1800.0
    list_limit: int = 0
    relist_interval: float = 0.0


class Pace(NamedTuple):
    """How long the group works between two turns of the loop, and how long it stays without a job; tests change them."""

    slice_seconds: float = 0.004
    """A loop that is held for 20 ms is held for too long, and others have their part of it."""
    batch_targets: int = 1000
    """Targets rendered at once: a millisecond or so."""
    linger_seconds: float = 10.0
    """A reload stops all jobs and starts most of them again; what they share lives on meanwhile."""


class GroupWatcher:
    """Keeps the objects of one group and tells its subscribers of their targets.

    A new subscriber is pending until a pass over all objects has rendered them for it; all that are pending are registered in one
    pass, begun when the watchers that their roles need have settled. Changes meanwhile reach a subscriber of the pass if they
    happen in a slot that the pass has left behind; else the pass gets there itself.
    """

    def __init__(
        self,
        key: GroupKey,
        client: ApiClient,
        symbols: Symbols,
        metrics: Metrics,
        *,
        timings: Timings,
        pace: Pace,
        on_idle: Callable[[GroupWatcher], None],
    ) -> None:
        self.key = key
        self.store = Store(symbols)
        self._client = client
        self._symbols = symbols
        self._metrics = metrics
        self._timings = timings
        self._pace = pace
        self._on_idle = on_idle
        self._renderer = Renderer(self.store)
        if key.namespaces:
            self._renderer.keep_apart()
        self._decoders: dict[URLWatcher, Decoder] = {}
        self._watchers: dict[str, list[URLWatcher]] = {}
        self._loads = DirectLoads(self._fetch, lambda wanted: self.store.get(*wanted) is not None, self._deliver, metrics)
        self._subscribers: list[Subscriber] = []
        self._pass: list[Subscriber] = []
        self._again: list[Subscriber] = []  # working, and to be in the next pass all the same
        self._cursor = 0  # a key: parts before it have been rendered for the pass
        self._rendered_until: int | None = None  # once the cursor is at the end: what had been queued by then
        self._learning_nodes = True  # until all objects know that all nodes have been listed
        self._wake = asyncio.Event()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = asyncio.get_running_loop().create_task(self._run(), name="fastdisco group")
        metrics.add_source(self)

    # ---- subscribers ----

    def subscribe(self, subscriber: Subscriber) -> None:
        """Pending from now on; its job hears of it by `registered`."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        for kind in subscriber.needs:
            self._watch(kind)
        self._subscribers.append(subscriber)
        self._wake.set()

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """It hears no more of any change; the last one leaves the group idle."""
        subscriber.stopped = True
        if subscriber in self._subscribers:
            self._subscribers.remove(subscriber)
            if subscriber.working or subscriber in self._pass:
                self._renderer.unsubscribe(subscriber.role, subscriber.profile)
            for some in (self._pass, self._again):
                if subscriber in some:
                    some.remove(subscriber)
            if not self._subscribers:
                self._idle_timer = asyncio.get_running_loop().call_later(self._pace.linger_seconds, self._on_idle, self)

    def evaluate_again(self, subscriber: Subscriber) -> None:
        """Its rules have changed: all objects are gone through once more. Meanwhile its targets stay, and changes reach it.

        Where the first pass is yet to come there is nothing to repeat; one under way has used the old rules.
        """
        if (subscriber.working or subscriber in self._pass) and subscriber not in self._again:
            subscriber.stale = True
            self._again.append(subscriber)
            self._wake.set()

    def settled(self, kinds: Iterable[str]) -> bool:
        """Whether every watcher of these kinds has listed or was refused for good."""
        return all(watcher.settled for kind in kinds for watcher in self._watchers.get(kind, ()))

    def listed(self, kind: str) -> bool:
        """Whether some watcher of that kind has listed."""
        return any(watcher.listed for watcher in self._watchers.get(kind, ()))

    def refused(self, kinds: Iterable[str]) -> list[str]:
        """What the server refuses of these kinds, as `path: reason`."""
        watchers = (watcher for kind in kinds for watcher in self._watchers.get(kind, ()))
        return [f"{watcher.path}: {watcher.refused}" for watcher in watchers if watcher.refused is not None]

    def troubles(self, kinds: Iterable[str]) -> list[str]:
        """What keeps these kinds from being listed, as `path (state): reason`."""
        watchers = (watcher for kind in kinds for watcher in self._watchers.get(kind, ()) if not watcher.listed)
        return [f"{watcher.path} ({watcher.state.value}): {watcher.last_error or 'no answer so far'}" for watcher in watchers]

    def refused_for_good(self, kinds: Iterable[str]) -> list[str]:
        """The paths of these kinds that the server refuses to show."""
        return [watcher.path for kind in kinds for watcher in self._watchers.get(kind, ()) if watcher.refused is not None]

    def last_contact(self, kinds: Iterable[str]) -> float | None:
        """Unix time of the last word to the watcher of these kinds that has been out of touch longest, 0 if one has never heard of its
        server. Refused ones are left out, but what is kept of a kind that is refused everywhere is as old as their last word; None if
        nothing is left."""
        contacts = []
        for kind in kinds:
            watchers = self._watchers.get(kind, ())
            if asked := [watcher.last_contact for watcher in watchers if watcher.refused is None]:
                contacts.append(min(asked))
            elif known := [watcher.last_contact for watcher in watchers if watcher.listed]:
                contacts.append(max(known))
        return min(contacts, default=None)

    def resync(self, kinds: Iterable[str]) -> None:
        """Lists those kinds again."""
        for kind in kinds:
            for watcher in self._watchers.get(kind, ()):
                watcher.resync()

    # ---- watchers ----

    def _watch(self, kind: str) -> None:
        """Starts the watchers of a kind, one a namespace, unless they run."""
        if kind in self._watchers:
            return
        resource = RESOURCES[kind]
        client = self._client.metadata_only() if resource.metadata_only else self._client
        params = {}
        for selected, label, field in self.key.selectors:
            if selected == kind:
                params = {name: value for name, value in (("labelSelector", label), ("fieldSelector", field)) if value}
        self._watchers[kind] = []
        for namespace in (self.key.namespaces if resource.namespaced else ()) or ("",):
            decoder = Decoder(self.store, kind)
            watcher = URLWatcher(
                kind, namespace, resource.paths(namespace), params, client, decoder, self._metrics,
                timings=self._timings, list_limit=self.key.list_limit, relist_interval=self.key.relist_interval,
                on_change=partial(_wake_for_work, self._wake, self._renderer, self._symbols), on_settled=self._wake.set,
            )  # fmt: skip
            self._watchers[kind].append(watcher)
            self._decoders[watcher] = decoder
            watcher.start()

    def _watcher_of(self, kind: str, namespace: str) -> URLWatcher | None:
        """The watcher that would deliver an object of that kind and namespace."""
        for watcher in self._watchers.get(kind, ()):
            if watcher.namespace in ("", namespace):
                return watcher
        return None

    # ---- objects loaded directly ----

    def _want_missing(self) -> None:
        """Asks for what rendering found missing, where that can help: its watcher has listed, and no selector narrows it."""
        narrowed = {kind for kind, _, _ in self.key.selectors}
        for wanted in self.store.take_missing():
            kind, namespace, _ = wanted
            watcher = self._watcher_of(kind, namespace)
            if watcher is not None and watcher.listed and kind not in narrowed:
                self._loads.want(wanted)

    async def _fetch(self, wanted: Wanted) -> bytes:
        """By the API version that its watcher has found."""
        kind, namespace, name = wanted
        watcher = self._watcher_of(kind, namespace)
        paths = RESOURCES[kind].object_paths(namespace, name)
        if watcher is not None and watcher.path not in RESOURCES[kind].paths(watcher.namespace)[:1]:
            paths = paths[1:]
        if not paths:
            raise ApiError(404, "NotFound", "no object can have this name")
        return await self._client.get(paths[0], total_timeout=self._timings.read_timeout)

    def _deliver(self, wanted: Wanted, body: bytes) -> None:
        """Nothing comes of an object whose version its watch has been beyond: if it is not here, it is gone again."""
        watcher = self._watcher_of(wanted[0], wanted[1])
        if watcher is not None and is_lower(watcher.resource_version, _version_of(body)):
            self._decoders[watcher].load(body)
            self._wake.set()

    # ---- rendering ----

    async def _run(self) -> None:
        """Renders whenever something changed, in slices; what fails in one round is not lost for the next."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._render_all()
            except Exception:
                logger.exception("rendering targets failed; it goes on with the next change")

    async def _render_all(self) -> None:
        turn = _Turn(self._pace.slice_seconds)
        while True:
            if self._learning_nodes and self.listed("node"):
                self._learning_nodes = self._renderer.know_nodes()
            if not self._pass:
                self._begin_pass()
            if self._renderer.dirty:
                await self._bring(self._renderer.render(self._pace.batch_targets), turn)
            if self._pass:
                await self._walk_on(turn)
            elif not self._renderer.dirty and not (self._learning_nodes and self.listed("node")):
                break
            # here too, since under a steady stream of changes there may always be something dirty
            if self._symbols.due():
                self._symbols.sweep(_SWEPT_BETWEEN)
            await turn.breathe()
        self._tell_caught_up(self._subscribers)
        while self._symbols.due():
            if not self._symbols.sweep():
                break
            await asyncio.sleep(0)

    def _begin_pass(self) -> None:
        """All pending subscribers whose watchers have settled; from here on their changes are rendered."""
        pending = [one for one in self._subscribers if not one.working and self.settled(one.needs)]
        for subscriber in pending:
            self._renderer.subscribe(subscriber.role, subscriber.profile)
        self._pass, self._again = pending + self._again, []
        self._cursor = 0
        self._rendered_until = None

    async def _walk_on(self, turn: _Turn) -> None:
        """The next slots of the pass; at the end its subscribers are working."""
        wanted = {(one.role, one.profile) for one in self._pass}
        batch, self._cursor, ended = self._renderer.walk(self._cursor, wanted, self._pace.batch_targets)
        try:
            await self._apply(self._pass, batch, None, turn, walking=True)
        finally:
            batch.close()
        self._want_missing()
        if ended and self._rendered_until is None:
            self._rendered_until = self._renderer.queued
        # what changed during the pass belongs to it; what changes from now on does not, or a steady stream would never let it end
        if self._rendered_until is not None and self._renderer.taken >= self._rendered_until:
            registered = self._pass
            for subscriber in list(registered):
                await self._work(subscriber, subscriber.end_pass, turn)
            for subscriber in registered:
                subscriber.working = True
                subscriber.stale = subscriber in self._again
            self._pass = []
            self._tell_caught_up(registered)  # not later: another pass may follow at once

    @staticmethod
    def _tell_caught_up(subscribers: list[Subscriber]) -> None:
        for subscriber in list(subscribers):
            if subscriber.working:
                subscriber.job.caught_up()

    async def _bring(self, batch: Batch, turn: _Turn) -> None:
        """Changes, to working subscribers, and to those of the pass where it has been already."""
        behind = self._cursor
        working = [one for one in self._subscribers if one.working]
        try:
            await self._apply(working, batch, None, turn)
            await self._apply([one for one in self._pass if not one.working], batch, behind, turn)
        finally:
            batch.close()
        self._want_missing()

    async def _apply(
        self, subscribers: list[Subscriber], batch: Batch, below: int | None, turn: _Turn, *, walking: bool = False
    ) -> None:
        """One subscriber after the other."""
        for subscriber in list(subscribers):
            if not subscriber.stopped:
                await self._work(subscriber, partial(subscriber.take, batch, below, walking=walking), turn)

    @staticmethod
    async def _work(subscriber: Subscriber, begin: Callable[[], Iterable[None]], turn: _Turn) -> None:
        """A subscriber that fails is told to its job, and holds no other up."""
        try:
            for _ in begin():
                if turn.is_over:
                    await turn.breathe()
        except Exception as error:  # noqa: BLE001  a job's rules must not stop its neighbours
            subscriber.job.failed(error)
        if turn.is_over:
            await turn.breathe()

    # ---- explaining ----

    async def count_discovered(self, role: str, profile: int) -> int:
        """How many targets there are before any rule. Nobody keeps count: all objects are rendered, in slices."""
        turn, count, cursor, ended = _Turn(self._pace.slice_seconds), 0, 0, False
        while not ended:
            batch, cursor, ended = self._renderer.walk(cursor, {(role, profile)}, self._pace.batch_targets)
            count += len(batch)
            batch.close()
            await turn.breathe()
        return count

    async def discover_again(self, subscriber: Subscriber, take: Callable[[Batch], None], *, dropped: bool) -> None:
        """Hands `take`, batch by batch, the targets as they are discovered now of the objects that have some in the job; with `dropped`
        those of all objects."""
        role, profile, turn = subscriber.role, subscriber.profile, _Turn(self._pace.slice_seconds)
        keys, place, ended = subscriber.keys(), 0, False
        await asyncio.sleep(0)  # a list of 300,000 is a slice of its own
        while not ended:
            if dropped:
                batch, place, ended = self._renderer.walk(place, {(role, profile)}, self._pace.batch_targets)
            else:
                batch, place = self._renderer.again(keys, place, role, profile, self._pace.batch_targets)
                ended = place >= len(keys)
            try:
                take(batch)
            finally:
                batch.close()
            await turn.breathe()

    @property
    def revision(self) -> int:
        """Rises with each change of an object that matters to labels."""
        return self._renderer.taken

    def discovered(self, subscriber: Subscriber, namespace: str, name: str) -> list[Labels] | None:
        """The targets of one object as they are discovered now; None if the object is not here."""
        parts = self._renderer.discovered(subscriber.role, namespace, name, subscriber.profile)
        return None if parts is None else [labels for _, targets in parts for _, labels in targets]

    async def why_unknown(self, kind: str, namespace: str, name: str) -> tuple[str, bool]:
        """Why an object is not here, and whether there is one: the server is asked, unless the request could not have brought it."""
        if bool(namespace) != RESOURCES[kind].namespaced:
            return f"a {kind} is in {'a namespace' if not namespace else 'no namespace'}", False
        watcher = self._watcher_of(kind, namespace)
        if watcher is None:
            return f"namespace {namespace} is not among those of the configuration", False
        try:
            await self._fetch((kind, namespace, name))
        except ApiError as error:
            if error.code == 404:
                return "the API server has no such object", False
            return f"the API server refuses to show it: {error}", False
        except NetworkError as error:
            return f"it is not known, and the API server cannot be asked: {error}", False
        if watcher.refused is not None:
            return f"the API server refuses {watcher.path}: {watcher.refused}", True
        for selected, label, field in self.key.selectors:
            if selected == kind:
                return f"the selector {label}{';' if field else ''}{field} leaves it out", True
        return "its watch has not brought it yet", True

    # ---- state ----

    def status(self) -> list[dict[str, Any]]:
        """One entry a URL watcher, with the objects that its kind has in this group."""
        return [
            watcher.status() | {"objects": self.store.objects(kind)}
            for kind, watchers in self._watchers.items()
            for watcher in watchers
        ]

    def measure(self, live: Live) -> None:
        """Its part in the metrics; may be called on any thread."""
        live.group_watchers += 1
        for kind, watchers in list(self._watchers.items()):
            numbers = live.role(kind)
            numbers.objects += self.store.objects(kind)
            added, updated, removed, rendered = self.store.counters(kind)
            numbers.added += added
            numbers.updated += updated
            numbers.removed += removed
            numbers.rendered += rendered
            for watcher in list(watchers):
                watcher.measure(live)
        for subscriber in list(self._subscribers):
            numbers = live.role(subscriber.role)
            numbers.working += subscriber.working
            numbers.pending += not subscriber.working
            numbers.scrape_works += subscriber.works

    @property
    def idle(self) -> bool:
        """Whether no job uses it."""
        return not self._subscribers

    async def stop(self) -> None:
        """Ends all watches; the store goes with the group. It may be called again, as after a stop that was cut short."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if (task := self._task) is not None:
            task.cancel()  # first: it asks for direct loads
            await asyncio.wait([task])
            self._task = None  # its traceback holds the group
        await self._loads.stop()
        await asyncio.gather(*(watcher.stop() for watchers in self._watchers.values() for watcher in watchers))
        self._metrics.remove_source(self)


def _wake_for_work(wake: asyncio.Event, renderer: Renderer, symbols: Symbols) -> None:
    """While a first list arrives nobody has targets yet, and there is nothing to do. No method: watchers must not keep their group."""
    if renderer.dirty or symbols.due():
        wake.set()


class _Turn:
    """Lets the loop go on when the time of a slice is over."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = perf_counter()

    @property
    def is_over(self) -> bool:
        return perf_counter() - self._began > self._seconds

    async def breathe(self) -> None:
        if self.is_over:
            await asyncio.sleep(0)
            self._began = perf_counter()


def _version_of(body: bytes) -> str:
    """The version of the object that a GET gave."""
    try:
        version = orjson.loads(body)["metadata"]["resourceVersion"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise DecodeError(f"no object: {error}") from error
    return version if isinstance(version, str) else ""
