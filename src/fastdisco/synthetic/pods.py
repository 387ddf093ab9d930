"""Apps and their pods: what is constant in an app is rendered once, what differs between its pods is filled in."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from fastdisco.synthetic.podspec import Shape, pod_template
from fastdisco.synthetic.store import Entry
from fastdisco.synthetic.templates import Template, address4, address6, uid_text

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_TEAMS = ("core", "shop", "search", "data", "edge", "media", "billing", "platform")


@dataclass(slots=True)
class Node:
    """What pods need to know of their node."""

    name: str
    address: str
    zone: str


@dataclass(slots=True, eq=False)
class Pod:
    """What differs between the pods of an app; `node` is `None` while it is pending."""

    app: App
    name: str
    uid: int
    ip: str
    node: Node | None
    phase: str = "Running"
    ready: bool = True
    revision: int = 0


@dataclass(slots=True, eq=False)
class App:
    """A workload; `groups` are its pods that have addresses, in the portions that become endpoint slices."""

    index: int
    namespace: str
    name: str
    owner: str  # ReplicaSet, StatefulSet, DaemonSet or Job
    stack: str = "v4"  # v4, dual or v6
    host_network: bool = False
    init: str = ""  # "", "once" or "sidecar"
    hash: str = ""
    owner_uid: str = ""
    pods: dict[str, Pod] = field(default_factory=dict)
    groups: list[dict[str, Pod]] = field(default_factory=list)
    services: list[int] = field(default_factory=list)
    ordinal: int = 0
    templates: dict[str, Template] = field(default_factory=dict)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def port(self) -> int:
        """The number of the port named `http`; `metrics` is the next one, the proxy's is 15090."""
        return 8080 + self.index % 500 * 2

    @property
    def team(self) -> str:
        return _TEAMS[self.index % len(_TEAMS)]

    def pod_name(self) -> str:
        """A name that no pod of the app has had."""
        self.ordinal += 1
        if self.owner == "StatefulSet":
            return f"{self.name}-{self.ordinal - 1}"
        stem = f"{self.name}-{self.hash}" if self.owner == "ReplicaSet" else self.name
        return f"{stem}-{_suffix(self.ordinal * 7_919_003 + self.index * 104_729)}"


def _suffix(number: int) -> str:
    """Five letters; numbers that differ by less than 27**5 times a number without the factor 3 give different ones."""
    letters = ""
    for _ in range(5):
        number, letter = divmod(number, 27)
        letters += _LETTERS[letter]
    return letters


def random_hash(rng: random.Random, length: int = 10) -> str:
    """Letters as Kubernetes chooses them for names."""
    return "".join(rng.choices(_LETTERS, k=length))


def pod_labels(app: App, pod: Pod) -> dict[str, str]:
    """The labels of a pod; one mapping for all pods of an app in a zone, except where each has its own."""
    zone = pod.node.zone if pod.node is not None else ""
    labels = app.labels.get(zone)
    if labels is None:
        labels = app.labels[zone] = {**_app_labels(app), **({"topology.kubernetes.io/zone": zone} if zone else {})}
    if app.owner == "StatefulSet":
        return {**labels, "statefulset.kubernetes.io/pod-name": pod.name}
    return labels


def _app_labels(app: App) -> dict[str, str]:
    labels = {
        "app": app.name,
        "app.kubernetes.io/instance": f"{app.name}-{app.namespace}",
        "app.kubernetes.io/name": app.name,
        "app.kubernetes.io/version": f"1.{app.index % 20}.{app.index % 7}",
        "team": app.team,
    }
    if app.owner == "ReplicaSet":
        labels["pod-template-hash"] = app.hash
    elif app.owner != "Job":
        labels["controller-revision-hash"] = app.hash
    return labels


def pod_entry(pod: Pod, version: int) -> Entry:
    """The pod as it is now, at a version."""
    app, node = pod.app, pod.node
    template = app.templates.get(pod.phase)
    if template is None:
        template = app.templates[pod.phase] = pod_template(_shape(app, pod))
    node_name = node.name if node is not None else ""
    ready = pod.ready and pod.phase == "Running"
    hexadecimal = f"{pod.uid:032x}"
    values = {
        b"name": pod.name.encode(),
        b"uid": uid_text(pod.uid).encode(),
        b"version": b"%d" % version,
        b"revision": b"%d" % pod.revision,
        b"node": node_name.encode(),
        b"zone": node.zone.encode() if node is not None else b"",
        b"host": node.address.encode() if node is not None else b"",
        b"ip": pod.ip.encode(),
        b"ip6": address6(pod.uid & 0xFFFFFFF).encode() if app.stack == "dual" else b"",
        b"ready": b"true" if ready else b"false",
        b"condition": b"True" if ready else b"False",
        b"id": hexadecimal.encode(),
        b"id2": hexadecimal[::-1].encode(),
    }
    return Entry(app.namespace, pod.name, template.render(values), version, pod_labels(app, pod), node_name, pod.phase)


def _shape(app: App, pod: Pod) -> Shape:
    labels = _app_labels(app)
    if pod.node is not None:
        labels["topology.kubernetes.io/zone"] = "%(zone)b"
    if app.owner == "StatefulSet":
        labels["statefulset.kubernetes.io/pod-name"] = "%(name)b"
    return Shape(
        app.index, app.namespace, app.name, app.owner, app.hash, app.owner_uid, app.team, app.port, app.stack == "dual",
        app.host_network, app.init, pod.phase, labels,
    )


def new_address(app: App, node: Node, number: int) -> str:
    """The address of the pod with this running number."""
    if app.host_network:
        return node.address
    return address6(number) if app.stack == "v6" else address4(1, number % (199 << 16) or 1)
