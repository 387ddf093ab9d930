"""The compiled heart in the hands of a test: fed by lists and events, cut as told; and the targets as a subscriber would have them."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import orjson

from fastdisco._batch import Batch
from fastdisco._core import Store, Symbols
from fastdisco._json import Decoder
from fastdisco._labels import Labels
from fastdisco._render import Renderer
from tests import reference

Object = dict[str, Any]
Objects = Mapping[str, Sequence[Object]]  # plural resource name → objects
LabelSets = Counter[tuple[tuple[str, str], ...]]
Targets = dict[int, tuple[tuple[int, Labels], ...]]  # by part

KINDS = {
    "nodes": "node",
    "pods": "pod",
    "services": "service",
    "endpoints": "endpoints",
    "endpointslices": "endpointslice",
    "ingresses": "ingress",
    "namespaces": "namespace",
    "replicasets": "replicaset",
    "jobs": "job",
}
ROLES = tuple(reference.ROLES)
ATTACHED = {"node": 1, "namespace": 2, "deployment": 4, "job": 8, "cronjob": 16}  # bits of a profile
NODE, NAMESPACE = ATTACHED["node"], ATTACHED["namespace"]
PROMETHEUS = 32


def kernels() -> list[str]:
    """The scanners that this processor has."""
    found = []
    for name in ("avx2", "sse2", "neon", "scalar"):
        try:
            Decoder(Store(Symbols()), "pod", kernel=name)
        except ValueError:
            continue
        found.append(name)
    return found


def key_of(item: Object) -> tuple[str, str]:
    return item["metadata"].get("namespace") or "", item["metadata"]["name"]


def label_sets(targets: Iterable[Mapping[str, str]]) -> LabelSets:
    return Counter(tuple(sorted(labels.items())) for labels in targets)


def expected(role: str, objects: Objects, profile: int) -> LabelSets:
    """What the plain statement of the label rules makes of these objects."""
    attach = [name for name, bit in ATTACHED.items() if profile & bit]
    return label_sets(reference.targets(role, objects, attach, "prometheus" if profile & PROMETHEUS else "victoriametrics"))


def list_body(items: Iterable[Object | bytes], version: str = "1", token: str = "") -> bytes:
    """The body of a list; items may be bytes, put there as they are."""
    raw = b",".join(item if isinstance(item, bytes) else orjson.dumps(item) for item in items)
    metadata = orjson.dumps({"resourceVersion": version} | ({"continue": token} if token else {}))
    return b'{"kind":"List","apiVersion":"v1","metadata":' + metadata + b',"items":[' + raw + b"]}"


def line(change: str, item: Object) -> bytes:
    """A line of a watch."""
    return orjson.dumps({"type": change, "object": item}) + b"\n"


def cut(body: bytes, size: int) -> Iterator[bytes]:
    """In pieces of this size; 0: whole."""
    yield from (body[at : at + size] for at in range(0, len(body), size)) if size else (body,)


class Heart:
    """A store with a decoder for each kind, and a renderer for some roles and profiles, whose targets are kept up to date."""

    def __init__(self, *wanted: tuple[str, int], symbols: Symbols | None = None, kernel: str = "") -> None:
        self.store = Store(symbols or Symbols())
        self.renderer = Renderer(self.store)
        self.decoders = {kind: Decoder(self.store, kind, kernel=kernel) for kind in KINDS.values()}
        self.renderer.know_nodes()
        self.parts: dict[tuple[str, int], Targets] = {}
        for role, profile in wanted:
            self.renderer.subscribe(role, profile)
            self.parts[role, profile] = {}

    def list(self, kind: str, items: Iterable[Object | bytes], *, version: str = "1", size: int = 0, budget: int = 1000) -> None:
        """A whole list, and its objects in the store."""
        decoder = self.decoders[kind]
        decoder.begin_list()
        for chunk in cut(list_body(items, version), size):
            decoder.feed(chunk)
        decoder.end_page()
        while decoder.apply_list(budget):
            pass

    def event(self, kind: str, change: str, item: Object, *, size: int = 0) -> None:
        """One event of a watch."""
        decoder = self.decoders[kind]
        decoder.begin_watch()
        for chunk in cut(line(change, item), size):
            decoder.feed(chunk)
        decoder.end_watch()

    def upsert(self, plural: str, item: Object) -> None:
        self.event(KINDS[plural], "MODIFIED", item)

    def delete(self, plural: str, item: Object) -> None:
        self.event(KINDS[plural], "DELETED", {"metadata": item["metadata"]})

    def load(self, objects: Objects) -> None:
        """A list of each kind."""
        for plural, items in objects.items():
            self.list(KINDS[plural], items)

    def take(self, batch: Batch, *wanted: tuple[str, int], below: int | None = None) -> None:
        """What a subscriber does with a batch."""
        for role, profile in wanted or self.parts:
            found = self.parts[role, profile]
            touched = batch.keys(role, below)
            for key in touched:
                found.pop(key, None)
            fresh = dict(batch.targets(role, profile, below))
            assert set(fresh) <= set(touched)
            found |= fresh

    def render(self, budget: int = 1000) -> None:
        """The next dirty objects."""
        batch = self.renderer.render(budget)
        self.take(batch)
        batch.close()

    def settle(self, budget: int = 1000) -> None:
        """All that is dirty."""
        while self.renderer.dirty:
            self.render(budget)

    def targets(self, role: str, profile: int = 0) -> LabelSets:
        """As a subscriber has them now."""
        return label_sets(labels for part in self.parts[role, profile].values() for _, labels in part)

    def walked(self, role: str, profile: int = 0, budget: int = 1 << 30) -> LabelSets:
        """All targets rendered from scratch."""
        found, cursor, ended = LabelSets(), 0, False
        while not ended:
            batch, cursor, ended = self.renderer.walk(cursor, [(role, profile)], budget)
            found += label_sets(labels for _, part in batch.targets(role, profile) for _, labels in part)
            batch.close()
        return found

    def rendered(self) -> dict[str, int]:
        """Objects or parts rendered so far, by role and counted for each profile."""
        return {role: self.store.counters(role)[3] for role in ROLES}


def targets_of(role: str, objects: Objects, profile: int = 0, mode: Literal["list", "watch"] = "list", seed: int = 0) -> LabelSets:
    """The targets of these objects: from lists, all at once; or from watches in any order, rendered now and then."""
    heart = Heart((role, profile))
    choose = random.Random(seed)
    if mode == "list":
        heart.load(objects)
    else:
        events = [(plural, item) for plural, items in objects.items() for item in items]
        for plural, item in choose.sample(events, len(events)):
            heart.upsert(plural, item)
            if choose.random() < 0.3:
                heart.render(3)
    heart.settle()
    return heart.targets(role, profile)


def new_pod(name: str = "a", namespace: str = "web", **fields: Any) -> Object:
    """A pod that is a target; `labels`, `node`, `ip`, `ports` and `uid` as given."""
    ports = [{"name": f"p{port}", "containerPort": port, "protocol": "TCP"} for port in fields.get("ports", (80,))]
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": fields.get("uid", f"uid-{name}"), "labels": fields.get("labels", {})},
        "spec": {"nodeName": fields.get("node", "n1"), "containers": [{"name": "c", "image": "i", "ports": ports}]},
        "status": {"phase": "Running", "podIP": fields.get("ip", "192.0.2.7")},
    }


def new_service(name: str = "s", namespace: str = "web", **labels: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": {"type": "ClusterIP", "ports": [{"port": 80}]}}


def new_address(pod: str = "", namespace: str = "web", ip: str = "192.0.2.7", **fields: Any) -> Object:
    return {"ip": ip} | ({"targetRef": {"kind": "Pod", "name": pod, "namespace": namespace}} if pod else {}) | fields


def new_endpoints(name: str = "s", *addresses: Object, namespace: str = "web", ports: Sequence[int] = (80,), **labels: str) -> Object:
    subset = {"addresses": list(addresses), "ports": [{"port": port} for port in ports]}
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "subsets": [subset]}


def new_slice(name: str, service: str, *addresses: Object, namespace: str = "web", ports: Sequence[int] = (80,)) -> Object:
    endpoints = [{"addresses": [address["ip"]], **{k: v for k, v in address.items() if k != "ip"}} for address in addresses]
    metadata = {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": service}}
    return {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": [{"port": port} for port in ports]}


def new_node(name: str = "n1", **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}, "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}}


def new_namespace(name: str = "web", **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}}


def new_owned(name: str, kind: str, owner: str = "d", namespace: str = "web") -> Object:
    """A ReplicaSet or a Job with the controller that is given."""
    owners = [{"kind": kind, "name": owner, "controller": True}]
    return {"metadata": {"name": name, "namespace": namespace, "ownerReferences": owners}}


def new_ingress(name: str = "i", namespace: str = "web", host: str = "a.example.com") -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"rules": [{"host": host}]}}
