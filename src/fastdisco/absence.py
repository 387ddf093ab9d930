"""Why an object gives no target: read off the object itself, for `explain`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .roles import ATTACH_NODE, PROMETHEUS


def why_no_target(role: str, thing: Mapping[str, Any], profile: int = 0) -> str:
    """`thing` is an object as `get_object` gives it, of which rendering with that label profile made no target."""
    return _REASONS[role](thing, profile)


def _node(_: Mapping[str, Any], __: int) -> str:
    return "the node has no usable address"


def _pod(pod: Mapping[str, Any], profile: int) -> str:
    status, spec = pod.get("status", {}), pod.get("spec", {})
    if not status.get("podIP"):
        return "the pod has no IP address"
    if status.get("phase") in ("Succeeded", "Failed") and not profile & PROMETHEUS:
        return f"the pod has finished: phase {status['phase']}"
    containers = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    if not containers:
        return "the pod has no container"
    if profile & PROMETHEUS and profile & ATTACH_NODE:
        return f"the node of the pod is not known, and its metadata is to be attached: {spec.get('nodeName') or 'it has none'}"
    names = ", ".join(container.get("name", "") for container in containers)
    return f"all containers have terminated: {names}"


def _service(_: Mapping[str, Any], __: int) -> str:
    return "the service has no port"


def _ingress(_: Mapping[str, Any], profile: int) -> str:
    return "the ingress has no rule with a path" if profile & PROMETHEUS else "the ingress has no rule"


def _endpoints(endpoints: Mapping[str, Any], _: int) -> str:
    subsets = endpoints.get("subsets") or ()
    if not any(subset.get("addresses") or subset.get("notReadyAddresses") for subset in subsets):
        return "the endpoints have no address"
    return "no subset with addresses has a port"


def _endpointslice(endpointslice: Mapping[str, Any], profile: int) -> str:
    if not endpointslice.get("ports"):
        return "the slice has no port"
    if profile & PROMETHEUS and any(endpoint.get("addresses") for endpoint in endpointslice.get("endpoints") or ()):
        return "the slice is not of the first address family of its dual-stack service"
    return "the slice has no address"


_REASONS = {
    "node": _node, "pod": _pod, "service": _service, "ingress": _ingress, "endpoints": _endpoints, "endpointslice": _endpointslice,
}  # fmt: skip
