"""The table of roles: which API paths a role reads, and which other kinds its targets show."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from .config import AttachMetadata

ATTACH_NODE = 1
ATTACH_NAMESPACE = 2
"""Bits of a label profile: what a job's targets show beside their own object. Labels are generated once per object and profile."""


@dataclass(frozen=True, slots=True)
class Resource:
    """Where a kind of object is found; API groups newest version first."""

    groups: tuple[str, ...]
    plural: str
    namespaced: bool = True

    def paths(self, namespace: str) -> tuple[str, ...]:
        """The list path of each version; an empty namespace, and any of what is cluster-wide, means the whole cluster."""
        inside = f"namespaces/{namespace}/" if namespace and self.namespaced else ""
        return tuple(f"{group}/{inside}{self.plural}" for group in self.groups)

    def object_paths(self, namespace: str, name: str) -> tuple[str, ...]:
        """The path of one object in each version; none if it can have no such name.

        Names come out of objects that others write: each stays one segment, wherever it wants to lead.
        """
        if {namespace, name} & {".", ".."} or not name:
            return ()
        return tuple(f"{path}/{quote(name, safe='')}" for path in self.paths(quote(namespace, safe="")))


RESOURCES = {
    "node": Resource(("/api/v1",), "nodes", namespaced=False),
    "pod": Resource(("/api/v1",), "pods"),
    "service": Resource(("/api/v1",), "services"),
    "endpoints": Resource(("/api/v1",), "endpoints"),
    "endpointslice": Resource(("/apis/discovery.k8s.io/v1", "/apis/discovery.k8s.io/v1beta1"), "endpointslices"),
    "ingress": Resource(("/apis/networking.k8s.io/v1", "/apis/networking.k8s.io/v1beta1"), "ingresses"),
    "namespace": Resource(("/api/v1",), "namespaces", namespaced=False),
}

_JOINED = {"endpoints": ("pod", "service"), "endpointslice": ("pod", "service")}
_WITH_NODE = ("pod", "endpoints", "endpointslice")
_WITH_NAMESPACE = ("pod", "service", "endpoints", "endpointslice", "ingress")


def profile_of(role: str, attach: AttachMetadata) -> int:
    """The label profile of a role: what is asked to be attached, where the role has a use for it."""
    node = ATTACH_NODE if attach.node and role in _WITH_NODE else 0
    namespace = ATTACH_NAMESPACE if attach.namespace and role in _WITH_NAMESPACE else 0
    return node | namespace


def kinds_of(role: str, profile: int) -> tuple[str, ...]:
    """The kinds that have to be watched for a role's targets, its own first."""
    joined = (role, *_JOINED.get(role, ()))
    node = ("node",) if profile & ATTACH_NODE else ()
    namespace = ("namespace",) if profile & ATTACH_NAMESPACE else ()
    return joined + node + namespace
