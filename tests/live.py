"""A discovery, the synthetic API server that it watches, and what the plain reference says of that server's own objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

import orjson
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from fastdisco import APIWatcher, Change, Discovery, KubernetesSDConfig, Labels
from fastdisco.group_watcher import GroupWatcher, Pace
from fastdisco.synthetic import Cluster, Sizes, SyntheticServer
from fastdisco.synthetic.http import Connection, Request
from fastdisco.synthetic.resources import Route
from fastdisco.url_watcher import Timings

from . import reference
from .rig import QUICK, eventually

PLURALS = {kind: f"{kind}s" for kind in ("node", "pod", "service", "endpointslice", "namespace")} | {
    "endpoints": "endpoints",
    "ingress": "ingresses",
}
PATHS = {
    "endpointslices": "/apis/discovery.k8s.io/v1/endpointslices",
    "ingresses": "/apis/networking.k8s.io/v1/ingresses",
} | {plural: f"/api/v1/{plural}" for plural in ("nodes", "pods", "services", "endpoints", "namespaces")}
CLUSTER_WIDE = ("nodes", "namespaces")
Item = dict[str, Any]


class Work:
    """A scrape work of a scraper's own: known by identity."""

    __slots__ = ("labels",)

    def __init__(self, labels: Labels) -> None:
        self.labels = labels


def writing(calls: list[Labels]) -> Callable[[Labels], Work]:
    """A constructor that writes down what it is called with."""

    def make(labels: Labels) -> Work:
        calls.append(labels)
        return Work(labels)

    return make


class GatedServer(SyntheticServer):
    """A server whose answers can be held back, by verb and the beginning of their path, until the test lets them go."""

    def __init__(self, cluster: Cluster, *, port: int = 0, **options: Any) -> None:
        super().__init__(cluster, **options)
        self._port = port
        self.gates: dict[tuple[str, str], asyncio.Event] = {}
        self.held = 0
        """Answers that wait at a gate."""

    async def start(self, port: int = 0) -> None:
        await super().start(port or self._port)

    def hold(self, verb: str, path: str) -> asyncio.Event:
        """From now on these answers wait until the event is set."""
        return self.gates.setdefault((verb, path), asyncio.Event())

    async def _answer(self, connection: Connection, request: Request, route: Route | tuple[str, str] | None) -> None:
        for (verb, path), gate in self.gates.items():
            if verb == request.record["verb"] and request.path.startswith(path) and not gate.is_set():
                self.held += 1
                try:
                    await gate.wait()
                finally:
                    self.held -= 1
                break
        await super()._answer(connection, request, route)


class Live:
    """The server and the discovery of one test."""

    def __init__(self, server: GatedServer, discovery: Discovery) -> None:
        self.server = server
        self.discovery = discovery
        self._configs: dict[str, KubernetesSDConfig] = {}
        self._dialects: dict[str, str] = {}

    def config(
        self,
        role: str,
        *,
        node: bool = False,
        namespace: bool = False,
        attach: Sequence[str] = (),
        namespaces: Sequence[str] = (),
        **more: Any,
    ) -> KubernetesSDConfig:
        """A configuration for this server, written as a user writes it."""
        return KubernetesSDConfig.from_dict(
            {
                "role": role,
                "api_server": self.server.url,
                "namespaces": {"names": list(namespaces)},
                "attach_metadata": {"node": node, "namespace": namespace} | dict.fromkeys(attach, True),
                **more,
            }
        )

    def watch(
        self,
        name: str,
        role: str,
        constructor: Callable[[Labels], Any] | None = None,
        *,
        dialect: str = "victoriametrics",
        **config: Any,
    ) -> APIWatcher:
        """A job of one configuration; see `config` for the rest."""
        self._configs[name], self._dialects[name] = self.config(role, **config), dialect
        return self.discovery.watch(name, self._configs[name], constructor, dialect=dialect)

    @property
    def group(self) -> GroupWatcher:
        """The only group there is."""
        (group,) = self.discovery._groups.values()
        return group

    def put(self, plural: str, *items: Item) -> None:
        """Creates or replaces objects, all in one turn of the loop."""
        self.server.control.apply([{"put": plural, "object": item} for item in items])

    def delete(self, plural: str, *keys: str) -> None:
        """Deletes those of these objects that exist: `namespace/name`, or `name`."""
        there = self.server.store.tables[plural].entries
        self.server.control.apply([{"delete": plural, "key": key} for key in keys if key in there])

    def objects(self, namespaces: Sequence[str] = ()) -> dict[str, list[Item]]:
        """The server's own lists, by plural; of some namespaces, if they are given."""
        return {
            plural: [
                orjson.loads(entry.body[1:])
                for entry in table.entries.values()
                if not namespaces or plural in CLUSTER_WIDE or entry.namespace in namespaces
            ]
            for plural, table in self.server.store.tables.items()
        }

    def expected(self, job: APIWatcher) -> list[str]:
        """What the reference says that a job of `watch` should have."""
        config = self._configs[job.name]
        attach = [name for name, wanted in asdict(config.attach_metadata).items() if wanted]
        objects = self.objects(config.namespaces.names)
        return texts(reference.targets(config.role, objects, attach, self._dialects[job.name], apart=bool(config.namespaces.names)))

    async def converge(self, *jobs: APIWatcher) -> None:
        """Until each job has just the targets that follow from the server's own lists."""
        for job in jobs:
            wanted = self.expected(job)
            await reached(job, lambda works, wanted=wanted: works == wanted)  # type: ignore[misc]

    def check(self, *jobs: APIWatcher) -> None:
        """Each job has just those targets now."""
        for job in jobs:
            assert works_of(job) == self.expected(job), job.name

    def asked(self, verb: str = "", path: str = "") -> list[Mapping[str, Any]]:
        """Requests in the server's books."""
        return [
            request
            for request in self.server.books.requests
            if (not verb or request["verb"] == verb) and request["path"].startswith(path)
        ]

    def rendered(self, kind: str) -> int:
        """How often labels were generated for an object, or an entry of it, so far."""
        return sum(group.store.counters(kind)[3] for group in self.discovery._groups.values())

    def metrics(self) -> dict[str, float]:
        """The exposition: `name{label values}` without the common prefix, sorted label names."""
        return exposed(self.discovery)

    async def watching(self, count: int) -> None:
        """Until so many watches are open: from then on nothing is asked for any more."""
        async with asyncio.timeout(10):
            await eventually(lambda: len(self.server.watches) == count)

    async def handled(self, kind: str, namespace: str, name: str, *, there: bool = True) -> None:
        """Until the group has an object, or no longer; what came before it on the same watch has been handled too."""
        async with asyncio.timeout(10):
            await eventually(lambda: (self.group.store.get(kind, namespace, name) is not None) is there)


@asynccontextmanager
async def live(
    objects: Mapping[str, Iterable[Item]] | Sizes | None = None,
    *,
    pace: Pace | None = None,
    timings: Timings = QUICK,
    metrics_namespace: str = "fastdisco",
    registry: Any = None,
    seconds: float = 60,
    **server: Any,
) -> AsyncIterator[Live]:
    cluster = Cluster.make(objects) if isinstance(objects, Sizes) else Cluster.of(objects or {})
    options: dict[str, Any] = {"registry": registry, "metrics_namespace": metrics_namespace, "timings": timings, "pace": pace}
    async with asyncio.timeout(seconds), GatedServer(cluster, **server) as made, Discovery(**options) as discovery:
        yield Live(made, discovery)


async def reached(job: APIWatcher, true: Callable[[list[str]], bool]) -> list[Change]:
    """Reads a job's changes until its targets are as wanted; gives what was read, the snapshot first."""
    seen: list[Change] = []
    reader = job.changes()
    async with asyncio.timeout(20):
        async for change in reader:
            seen.append(change)
            if true(works_of(job)):
                break
    await reader.aclose()
    return seen


def works_of(job: APIWatcher) -> list[str]:
    """The labels of all works of a job, comparable."""
    return texts(work.labels if isinstance(work, Work) else work for work in job.scrape_works())


def addresses(job: APIWatcher) -> list[str]:
    return sorted((work.labels if isinstance(work, Work) else work)["__address__"] for work in job.scrape_works())


def texts(targets: Iterable[Mapping[str, str]]) -> list[str]:
    return sorted(orjson.dumps(dict(target), option=orjson.OPT_SORT_KEYS).decode() for target in targets)


def exposed(discovery: Discovery) -> dict[str, float]:
    prefix = f"{discovery.metrics.namespace}_discovery_kubernetes_"
    found = {}
    for family in text_string_to_metric_families(generate_latest(discovery.metrics.registry).decode()):
        for sample in family.samples:
            values = ",".join(value for _, value in sorted(sample.labels.items()))
            found[f"{sample.name.removeprefix(prefix)}{{{values}}}" if values else sample.name.removeprefix(prefix)] = sample.value
    return found


# ---- objects by hand ----


def pod(
    name: str, ip: str, *, namespace: str = "default", node: str = "n1", ports: Sequence[int] = (8080,), ready: bool = True, **labels: str
) -> Item:
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"nodeName": node, "containers": [_container(port) for port in ports]},
        "status": {"phase": "Running", "podIP": ip, "conditions": [{"type": "Ready", "status": str(ready)}]},
    }


def _container(port: int) -> Item:
    return {"name": f"c{port}", "image": "app", "ports": [{"name": "http", "containerPort": port, "protocol": "TCP"}]}


def node(name: str = "n1", ip: str = "127.1.0.1", **labels: str) -> Item:
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {
            "addresses": [{"type": "InternalIP", "address": ip}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        },
    }


def namespace(name: str = "default", **labels: str) -> Item:
    return {"metadata": {"name": name, "labels": labels}}


def service(name: str = "web", *, namespace: str = "default", ports: Sequence[int] = (80,), **labels: str) -> Item:
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"type": "ClusterIP", "clusterIP": "127.2.0.1", "ports": _ports(ports)},
    }


def ingress(name: str = "web", *, namespace: str = "default", hosts: Sequence[str] = ("web.example.com",), **labels: str) -> Item:
    rules = [{"host": host, "http": {"paths": [{"path": "/"}]}} for host in hosts]
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": {"rules": rules}}


def _ports(ports: Sequence[int]) -> list[Item]:
    return [{"name": "http", "port": port, "protocol": "TCP"} for port in ports]


def _reference(namespace: str, pod: str) -> Item:
    return {"kind": "Pod", "namespace": namespace, "name": pod}


def endpoints(name: str, pods: Mapping[str, str], *, namespace: str = "default", ports: Sequence[int] = (8080,), **labels: str) -> Item:
    """Endpoints that name pods with their addresses."""
    entries = [{"ip": ip, "nodeName": "n1", "targetRef": _reference(namespace, pod)} for pod, ip in pods.items()]
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "subsets": [{"addresses": entries, "ports": _ports(ports)}],
    }


def endpointslice(name: str, of: str, pods: Mapping[str, str], *, namespace: str = "default", ports: Sequence[int] = (8080,)) -> Item:
    """A slice of a service that names pods with their addresses."""
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": of}},
        "addressType": "IPv4",
        "endpoints": [
            {"addresses": [ip], "conditions": {"ready": True}, "targetRef": _reference(namespace, pod)} for pod, ip in pods.items()
        ],
        "ports": _ports(ports),
    }


def web(count: int = 3) -> dict[str, list[Item]]:
    """A small cluster in which everything refers to everything: a service with its pods, two nodes, a namespace, an ingress."""
    pods = {f"p{index:03d}": f"127.3.{index >> 8}.{index & 255}" for index in range(count)}
    return {
        "nodes": [node("n0", "127.1.0.1", zone="a"), node("n1", "127.1.0.2", zone="b")],
        "namespaces": [namespace("default", team="red")],
        "pods": [pod(name, ip, node=f"n{index % 2}", app="web") for index, (name, ip) in enumerate(pods.items())],
        "services": [service("web", app="web")],
        "endpoints": [endpoints("web", pods)],
        "endpointslices": [endpointslice("web-1", "web", pods)],
        "ingresses": [ingress("web")],
    }
