"""The resources that the synthetic API server serves, and the paths that name them."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import unquote

import orjson

_ANY = ("metadata.name",)
_NAMESPACED = ("metadata.name", "metadata.namespace")


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource; `fields` are those that a field selector may name."""

    plural: str
    singular: str
    kind: str
    group: str = ""
    namespaced: bool = True
    fields: tuple[str, ...] = _NAMESPACED
    beta: bool = False

    def api_version(self, version: str = "v1") -> str:
        """`v1`, or `group/version` outside the core group."""
        return f"{self.group}/{version}" if self.group else version

    def collection(self, namespace: str = "", version: str = "v1") -> str:
        """The path of the whole collection, or of its part in one namespace."""
        root = f"/apis/{self.group}/{version}" if self.group else f"/api/{version}"
        return f"{root}/namespaces/{namespace}/{self.plural}" if namespace else f"{root}/{self.plural}"


RESOURCES: dict[str, Resource] = {
    resource.plural: resource
    for resource in (
        Resource("pods", "pod", "Pod", fields=(*_NAMESPACED, "spec.nodeName", "status.phase")),
        Resource("services", "service", "Service"),
        Resource("endpoints", "endpoints", "Endpoints"),
        Resource("nodes", "node", "Node", namespaced=False, fields=_ANY),
        Resource("namespaces", "namespace", "Namespace", namespaced=False, fields=(*_ANY, "status.phase")),
        Resource("endpointslices", "endpointslice", "EndpointSlice", group="discovery.k8s.io", beta=True),
        Resource("ingresses", "ingress", "Ingress", group="networking.k8s.io", beta=True),
        Resource("replicasets", "replicaset", "ReplicaSet", group="apps"),
        Resource("jobs", "job", "Job", group="batch"),
    )
}
_BY_NAME = {name: resource for resource in RESOURCES.values() for name in (resource.plural, resource.singular)}


def resource_named(name: str) -> Resource:
    """The resource with this plural or singular name; `KeyError` if there is none."""
    return _BY_NAME[name]


@dataclass(frozen=True, slots=True)
class Route:
    """What a path names: a collection, or one object if `name` is given."""

    resource: Resource
    version: str
    namespace: str = ""
    name: str = ""
    metadata_only: bool = False
    """Asked for as PartialObjectMetadata."""

    @property
    def kind(self) -> str:
        """What objects are called on the wire."""
        return "PartialObjectMetadata" if self.metadata_only else self.resource.kind

    @property
    def api_version(self) -> str:
        return "meta.k8s.io/v1" if self.metadata_only else self.resource.api_version(self.version)

    def body(self, item: bytes) -> bytes:
        """What is sent of a list item with its leading comma."""
        return b',{"metadata":%b}' % orjson.dumps(orjson.loads(item[1:])["metadata"]) if self.metadata_only else item

    @property
    def key(self) -> str:
        """The object's key in its table: `namespace/name`, or `name` for what is cluster-wide."""
        return f"{self.namespace}/{self.name}" if self.resource.namespaced else self.name


@dataclass(slots=True)
class Versions:
    """Which versions of the grouped resources are served; core v1 always is."""

    v1: bool = True
    v1beta1: bool = False
    groups: frozenset[str] = field(default_factory=lambda: frozenset(r.group for r in RESOURCES.values() if r.group))

    def serves(self, group: str, version: str) -> bool:
        """Whether `/apis/<group>/<version>` exists."""
        if not group:
            return version == "v1"
        return group in self.groups and ((version == "v1" and self.v1) or (version == "v1beta1" and self.v1beta1))


def parse_path(path: str) -> Route | tuple[str, str] | None:
    """The route of a path; `(group, version)` for the root of an API; `None` for anything else."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) >= 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if not rest:
        return group, version
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3:
        namespace, rest = rest[1], rest[2:]
    resource = RESOURCES.get(rest[0])
    if resource is None or resource.group != group or (namespace and not resource.namespaced):
        return None
    if len(rest) == 1:
        return Route(resource, version, namespace)
    if len(rest) == 2 and (namespace or not resource.namespaced):
        return Route(resource, version, namespace, rest[1])
    return None
