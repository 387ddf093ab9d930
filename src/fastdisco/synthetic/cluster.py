"""A seeded synthetic cluster: how many objects of which kind, and their making."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastdisco.synthetic import kinds
from fastdisco.synthetic.objects import entry_of, prepared
from fastdisco.synthetic.pods import App, Node, Pod, new_address, pod_entry, random_hash
from fastdisco.synthetic.resources import RESOURCES
from fastdisco.synthetic.store import Entry, Store
from fastdisco.synthetic.templates import uid_text

_WORDS = ("cart", "checkout", "search", "catalog", "mail", "auth", "ledger", "video", "maps", "price", "stock", "route", "chat", "feed")
_PARTS = ("api", "web", "worker", "cache", "gateway", "db", "sync", "jobs")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much there is of what; 0: derived from the number of pods.

    Each service has one Endpoints object, and one slice per `slice_size` of its app's pods.
    With `oddities` 0.0 every pod runs, is ready and gives exactly three targets in the pod role; otherwise that share of
    the pods is not ready, pending or finished, and some apps have init containers, sidecars or the network of their host.
    """

    pods: int = 1000
    nodes: int = 0
    namespaces: int = 0
    apps: int = 0
    services: int = 0
    ingresses: int = 0
    slice_size: int = 100
    oddities: float = 0.02

    def filled(self) -> Sizes:
        """The same with every number given."""
        apps = self.apps or max(1, self.pods // 20)
        return Sizes(
            pods=self.pods,
            nodes=self.nodes or max(1, self.pods // 30),
            namespaces=self.namespaces or max(1, min(10_000, self.pods // 100)),
            apps=apps,
            services=self.services or apps,
            ingresses=self.ingresses or max(1, apps // 10),
            slice_size=self.slice_size,
            oddities=self.oddities,
        )


class Cluster:
    """A store and, if the cluster was made here, the model behind it, from which its changes are made."""

    def __init__(self, store: Store, sizes: Sizes | None = None, seed: int = 0) -> None:
        self.store = store
        self.sizes = sizes
        self.seed = seed
        self.rng = random.Random(seed)
        self.nodes: list[Node] = []
        self.node_values: list[Mapping[str, Any]] = []
        self.namespaces: list[str] = []
        self.apps: list[App] = []
        self.service_apps: list[App] = []
        self.uids: dict[str, list[int]] = {}
        self.pod_count = 0  # of all pods ever, from which addresses come

    @classmethod
    def of(cls, objects: Mapping[str, Iterable[Mapping[str, Any]]], *, history: int = 20_000) -> Cluster:
        """A cluster of given objects, `{plural: [object, …]}`; unknown plurals are ignored."""
        store = Store(history=history)
        for plural, items in objects.items():
            resource = RESOURCES.get(plural)
            if resource is None:
                continue
            entries = []
            for item in items:
                store.version += 1
                entries.append(entry_of(resource, prepared(item, ""), store.version))
            store.load(plural, entries)
        store.loaded()
        return cls(store)

    @classmethod
    def make(cls, sizes: Sizes | None = None, *, seed: int = 0, history: int = 20_000) -> Cluster:
        """A made cluster; the same sizes and seed give the same bytes."""
        filled = (sizes or Sizes()).filled()
        cluster = cls(Store(history=history), filled, seed)
        cluster._make_nodes(filled.nodes)
        cluster._make_apps(filled)
        load = cluster._load
        uids = cluster.uids = {
            plural: [cluster.rng.getrandbits(128) for _ in range(count)]
            for plural, count in (
                ("nodes", filled.nodes),
                ("namespaces", filled.namespaces),
                ("services", filled.services),
                ("ingresses", filled.ingresses),
            )
        }
        load("nodes", (kinds.node_entry(value, version) for value, version in zip(cluster.node_values, cluster._versions(), strict=False)))
        load("namespaces", cluster._namespace_entries())
        load("pods", cluster._pod_entries(filled))
        services = list(enumerate(zip(cluster.service_apps, uids["services"], strict=True)))
        versions = cluster._versions()
        load("services", (kinds.service_entry(app, index, uid, next(versions)) for index, (app, uid) in services))
        load("endpoints", (kinds.endpoints_entry(app, index, uid, next(versions)) for index, (app, uid) in services))
        load(
            "endpointslices",
            (
                kinds.slice_entry(app, index, group, uid, next(versions))
                for index, (app, uid) in services
                for group in range(len(app.groups))
            ),
        )
        load("ingresses", cluster._ingress_entries(filled.ingresses))
        for plural, owner in (("replicasets", "ReplicaSet"), ("jobs", "Job")):
            load(plural, (kinds.owner_entry(app, next(versions)) for app in cluster.apps if app.owner == owner))
        cluster.store.loaded()
        return cluster

    def new_pod(self, app: App) -> Pod:
        """One more pod of an app, running and ready, in the first group that has room."""
        assert self.sizes is not None
        node = self.nodes[int(self.rng.random() * len(self.nodes))]
        self.pod_count += 1
        pod = Pod(app, app.pod_name(), self.rng.getrandbits(128), new_address(app, node, self.pod_count), node)
        app.pods[pod.name] = pod
        self._place(app, pod, self.sizes.slice_size)
        return pod

    @staticmethod
    def _place(app: App, pod: Pod, room: int) -> None:
        for group in reversed(app.groups):
            if len(group) < room:
                group[pod.name] = pod
                return
        app.groups.append({pod.name: pod})

    def _load(self, plural: str, entries: Iterable[Entry]) -> None:
        self.store.load(plural, entries)

    def _versions(self) -> Iterator[int]:
        while True:
            self.store.version += 1
            yield self.store.version

    def _make_nodes(self, count: int) -> None:
        for index in range(count):
            node, value = kinds.make_node(index, self.rng.getrandbits(128))
            self.nodes.append(node)
            self.node_values.append(value)

    def _make_apps(self, sizes: Sizes) -> None:
        self.namespaces = ["default", "kube-system"][: sizes.namespaces] + [
            f"{_WORDS[index % len(_WORDS)]}-{('prod', 'staging', 'dev')[index % 3]}-{index}" for index in range(2, sizes.namespaces)
        ]
        for index in range(sizes.apps):
            name = f"{_WORDS[index % len(_WORDS)]}-{_PARTS[index % len(_PARTS)]}-{index}"
            kind = "StatefulSet" if index % 10 == 3 else "DaemonSet" if index % 20 == 9 else "ReplicaSet"
            stack = "v6" if index % 20 == 14 else "dual" if index % 7 == 5 else "v4"
            app = App(index, self.namespaces[index % len(self.namespaces)], name, kind, stack)
            app.hash = random_hash(self.rng)
            app.owner_uid = uid_text(self.rng.getrandbits(128))
            if sizes.oddities:
                app.owner = "Job" if index % 25 == 24 else app.owner
                app.init = ("once", "sidecar")[index // 10 % 2] if index % 10 == 6 else ""
                app.host_network = kind == "DaemonSet" and stack == "v4" and index % 40 == 9
            self.apps.append(app)
        for index in range(sizes.services):
            app = self.apps[index % len(self.apps)]
            app.services.append(index)
            self.service_apps.append(app)

    def _namespace_entries(self) -> Iterator[Entry]:
        for index, (name, version) in enumerate(zip(self.namespaces, self._versions(), strict=False)):
            yield kinds.namespace_entry(name, index, self.uids["namespaces"][index], version)

    def _pod_entries(self, sizes: Sizes) -> Iterator[Entry]:
        versions = self._versions()
        for app, count in zip(self.apps, _shares(sizes.pods, len(self.apps)), strict=True):
            for _ in range(count):
                pod = self.new_pod(app)
                if sizes.oddities and self.rng.random() < sizes.oddities:
                    self._make_odd(app, pod)
                yield pod_entry(pod, next(versions))

    def _make_odd(self, app: App, pod: Pod) -> None:
        pod.ready = False
        choice = "Succeeded" if app.owner == "Job" else ("Pending", "Running", "Running")[int(self.rng.random() * 3)]
        if choice == "Running":
            return
        pod.phase = choice
        app.groups[-1].pop(pod.name, None)
        if choice == "Pending":
            pod.node, pod.ip = None, ""

    def _ingress_entries(self, count: int) -> Iterator[Entry]:
        for index, version in zip(range(count), self._versions(), strict=False):
            service = index % len(self.service_apps)
            app = self.service_apps[service]
            yield kinds.ingress_entry(app, kinds.service_name(app, service), index, self.uids["ingresses"][index], version)


def _shares(total: int, count: int) -> list[int]:
    """How many pods each app gets: at least one where they suffice, a few apps with very many, as in real clusters."""
    shares = [1 if index < total else 0 for index in range(count)]
    rest = max(0, total - count)
    weights = [(index + 1) ** -0.5 for index in range(count)]
    scale = rest / sum(weights)
    given = 0
    for index, weight in enumerate(weights):
        more = int(weight * scale)
        shares[index] += more
        given += more
    for index in range(rest - given):
        shares[index % count] += 1
    return shares
