"""Changes of a made cluster: pods come, go and flip their readiness, and what refers to them follows."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import gcd

from fastdisco.synthetic import kinds
from fastdisco.synthetic.cluster import Cluster
from fastdisco.synthetic.pods import App, Pod, pod_entry
from fastdisco.synthetic.store import Entry

CHANGES = ("ready", "annotation", "time", "touch")
_TURN = 200  # pods after which other tasks of the server get a turn


class Changes:
    """Random changes, the same for the same seed; `ValueError` where they need a made cluster and this is none.

    `follow` says whether endpoints and slices are brought in line with a changed pod, by events of their own.
    A modification is `ready` (a pod's readiness flips; other objects: as `annotation`), `annotation` (one annotation counts up),
    `time` (the same annotation of a pod becomes the time of the write, in nanoseconds of the machine's monotonic clock, and the
    pods take turns; other objects: as `annotation`), or `touch` (nothing changes but the version).
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._store = cluster.store
        self._rng = random.Random(cluster.seed + 1)
        self._pods = [pod for app in cluster.apps for pod in app.pods.values()]
        self._position = 0  # of the pod that had the last change with a time
        self._revisions: Counter[tuple[str, int]] = Counter()

    def modify(self, plural: str, change: str = "ready", *, follow: bool = True, app: App | None = None) -> int:
        """Modify one object of a resource, a pod of this app if one is given; returns the number of events, 0 if there is no object."""
        if change not in CHANGES:
            raise ValueError(f"change: one of {', '.join(CHANGES)}")
        entries = self._store.tables[plural].entries
        if not entries:
            return 0
        if self._cluster.sizes is None:
            self._store.put(plural, self._rng.choice(list(entries.values())).stamped)
            return 1
        if plural != "pods":
            self._store.put(plural, self._rendering(plural, change))
            return 1
        if app is not None:
            pod = self._rng.choice(list(app.pods.values())) if app.pods else None
        else:
            pod = self._pods[self._next_position() if change == "time" else self._random_position()] if self._pods else None
        if pod is None or f"{pod.app.namespace}/{pod.name}" not in entries:
            return 0
        if change == "ready":
            pod.ready = not pod.ready
        elif change != "touch":
            pod.revision = time.monotonic_ns() if change == "time" else pod.revision + 1
        self._store.put(plural, lambda version: pod_entry(pod, version))
        return 1 + (self._refresh(pod.app, self._groups_of(pod)) if follow and change == "ready" else 0)

    def add_pod(self, *, follow: bool = True) -> int:
        """One more pod of a random app; returns the number of events."""
        return self._add(self._random_app(), follow=follow)

    def delete_pod(self, *, follow: bool = True) -> int:
        """One pod less; returns the number of events."""
        self._made()
        return self._delete(self._random_position(), follow=follow) if self._pods else 0

    async def turnover(self, *, follow: bool = True) -> int:
        """Every pod goes and a new one, with a new name and address, comes; app by app, as fast as it can; returns the events."""
        self._pods = []
        events = turn = 0
        for app in self._made().apps:
            old = list(app.pods.values())
            for pod in old:
                self._remove(pod)
            for _ in old:
                self._create(app)
            events += 2 * len(old)
            if follow and old:
                events += self._refresh(app, range(len(app.groups)))
            turn += len(old)
            if turn > _TURN:
                turn = 0
                await asyncio.sleep(0)
        return events

    async def burst(
        self, plurals: Sequence[str], count: int, change: str = "ready", *, turned: float = 0.0, marker: str = "", app: str = ""
    ) -> int:
        """Many changes, one after the other; returns the number of events, nothing following.

        Of pods the share `turned` is not modified: by turns, one is added and one deleted. With `marker` the last event is one more pod
        of that app, and until then none of its pods comes or goes. With `app` the modified pods are of that app.
        """
        marked, among = self._app(marker), self._app(app)
        events, turns, added = 0, 0.0, False
        for number in range(count - (marked is not None)):
            plural = plurals[number % len(plurals)]
            turns += turned if plural == "pods" else 0.0
            if turns < 1:
                events += self.modify(plural, change, follow=False, app=among)
            else:
                turns -= 1
                added = not added
                if added:
                    events += self._add(self._random_app(marked), follow=False)
                else:
                    events += self._delete(self._random_position(marked), follow=False)
            if number % _TURN == _TURN - 1:
                await asyncio.sleep(0)
        return events + (self._add(marked, follow=False) if marked is not None else 0)

    def _made(self) -> Cluster:
        if self._cluster.sizes is None:
            raise ValueError("the objects of this cluster were given: only a made cluster can do this")
        return self._cluster

    def _app(self, name: str) -> App | None:
        found = next((app for app in self._made().apps if app.name == name), None)
        if name and found is None:
            raise ValueError(f"no app is called {name}")
        return found

    def _random_app(self, other: App | None = None) -> App:
        """Any app but this."""
        apps = self._made().apps
        while True:
            app = apps[int(self._rng.random() * len(apps))]
            if app is not other or len(apps) == 1:
                return app

    def _next_position(self) -> int:
        """All positions by turns, neighbours far apart: no change of a pod is overtaken by the next one of the same."""
        count = len(self._pods)
        stride = max(1, int(count * 0.6180339887498949))
        while gcd(stride, count) != 1:
            stride += 1
        self._position = (self._position + stride) % count
        return self._position

    def _random_position(self, other: App | None = None) -> int:
        """The position among the pods of any that is not of this app."""
        while True:
            position = int(self._rng.random() * len(self._pods))
            if self._pods[position].app is not other:
                return position

    def _add(self, app: App, *, follow: bool) -> int:
        pod = self._create(app)
        return 1 + (self._refresh(app, self._groups_of(pod)) if follow else 0)

    def _delete(self, position: int, *, follow: bool) -> int:
        pod = self._pods[position]
        self._pods[position] = self._pods[-1]
        self._pods.pop()
        groups = self._groups_of(pod)
        self._remove(pod)
        return 1 + (self._refresh(pod.app, groups) if follow else 0)

    def _create(self, app: App) -> Pod:
        pod = self._cluster.new_pod(app)
        self._pods.append(pod)
        self._store.put("pods", lambda version: pod_entry(pod, version))
        return pod

    def _remove(self, pod: Pod) -> None:
        del pod.app.pods[pod.name]
        for group in pod.app.groups:
            group.pop(pod.name, None)
        self._store.delete("pods", f"{pod.app.namespace}/{pod.name}")

    @staticmethod
    def _groups_of(pod: Pod) -> list[int]:
        return [number for number, group in enumerate(pod.app.groups) if pod.name in group]

    def _refresh(self, app: App, groups: Iterable[int]) -> int:
        """Bring the endpoints and the slices of these groups in line; returns the number of events."""
        events = 0
        groups = list(groups)
        for index in app.services if groups else ():
            self._store.put("endpoints", self._endpoints(app, index))
            events += 1
            for group in groups:
                if app.groups[group]:
                    self._store.put("endpointslices", self._slice(app, index, group))
                    events += 1
                elif self._store.delete("endpointslices", f"{app.namespace}/{kinds.slice_name(app, index, group)}") is not None:
                    events += 1
        return events

    def _endpoints(self, app: App, index: int) -> Callable[[int], Entry]:
        uid, revision = self._cluster.uids["services"][index], self._revisions["endpoints", index]
        return lambda version: kinds.endpoints_entry(app, index, uid, version, revision)

    def _slice(self, app: App, index: int, group: int) -> Callable[[int], Entry]:
        uid, revision = self._cluster.uids["services"][index], self._revisions["endpointslices", index]
        return lambda version: kinds.slice_entry(app, index, group, uid, version, revision)

    def _rendering(self, plural: str, change: str) -> Callable[[int], Entry]:
        cluster = self._cluster
        names = {"endpoints": "services", "endpointslices": "services"}
        uids = cluster.uids[names.get(plural, plural)]
        index = int(self._rng.random() * len(uids))
        self._revisions[plural, index] += change != "touch"
        revision, uid = self._revisions[plural, index], uids[index]
        if plural == "nodes":
            value = cluster.node_values[index]
            return lambda version: kinds.node_entry(value, version, revision)
        if plural == "namespaces":
            name = cluster.namespaces[index]
            return lambda version: kinds.namespace_entry(name, index, uid, version, revision)
        service = index % len(cluster.service_apps)
        app = cluster.service_apps[service]
        if plural == "services":
            return lambda version: kinds.service_entry(app, index, uid, version, revision)
        if plural == "ingresses":
            return lambda version: kinds.ingress_entry(app, kinds.service_name(app, service), index, uid, version, revision)
        if plural == "endpoints" or not any(app.groups):
            return self._endpoints(app, index)
        return self._slice(app, index, next(number for number, group in enumerate(app.groups) if group))
