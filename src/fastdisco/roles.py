"""The table of roles: which API paths a role reads, and which other kinds its targets show."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from .config import AttachMetadata

ATTACH_NODE = 1
ATTACH_NAMESPACE = 2
ATTACH_DEPLOYMENT = 4
ATTACH_JOB = 8
ATTACH_CRONJOB = 16
PROMETHEUS = 32
"""Bits of a label profile: what a job's targets show beside their own object, and the dialect. Labels are generated once per object and
profile."""


class Resource(NamedTuple):
    """Where a kind of object is found; API groups newest version first."""

    groups: tuple[str, ...]
    plural: str
    namespaced: bool = True
    metadata_only: bool = False
    """Nothing else is read of such objects, and nothing else is asked for."""

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
    "replicaset": Resource(("/apis/apps/v1",), "replicasets", metadata_only=True),
    "job": Resource(("/apis/batch/v1",), "jobs", metadata_only=True),
}

_JOINED = {"endpoints": ("pod", "service"), "endpointslice": ("pod", "service")}
SELECTORS = {
    "node": ("node",),
    "pod": ("pod", "node"),
    "service": ("service",),
    "endpoints": ("pod", "service", "endpoints"),
    "endpointslice": ("pod", "service", "endpointslice"),
    "ingress": ("ingress",),
}
"""Which selectors a role allows in Prometheus' dialect; in the other it allows all."""
_WITH_PODS = ("pod", "endpoints", "endpointslice")
_WITH_NAMESPACE = (*_WITH_PODS, "service", "ingress")


def profile_of(role: str, attach: AttachMetadata, dialect: str = "victoriametrics") -> int:
    """The label profile of a role: what is asked to be attached, where the role has a use for it, in a dialect."""
    profile = PROMETHEUS if dialect == "prometheus" else 0
    for wanted, roles, bit in (
        (attach.node, _WITH_PODS, ATTACH_NODE),
        (attach.namespace, _WITH_NAMESPACE, ATTACH_NAMESPACE),
        (attach.deployment, _WITH_PODS, ATTACH_DEPLOYMENT),
        (attach.job, _WITH_PODS, ATTACH_JOB),
        (attach.cronjob, _WITH_PODS, ATTACH_CRONJOB),
    ):
        profile |= bit if wanted and role in roles else 0
    return profile


def kinds_of(role: str, profile: int) -> tuple[str, ...]:
    """The kinds that have to be watched for a role's targets, its own first; for the name of a Job none, since its pods have it."""
    attached = (
        ("node", ATTACH_NODE), ("namespace", ATTACH_NAMESPACE), ("replicaset", ATTACH_DEPLOYMENT), ("job", ATTACH_CRONJOB),
    )  # fmt: skip
    return (role, *_JOINED.get(role, ()), *(kind for kind, bit in attached if profile & bit))
