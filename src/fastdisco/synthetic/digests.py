"""Which targets a made cluster has, as a count and a digest: to check the answer of whoever discovers them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

from fastdisco.synthetic.cluster import Cluster

_PROXY_PORT = 15090


def digest(targets: Iterable[tuple[str, str, str, str]]) -> str:
    """One number for a set of targets, each `(namespace, pod, address, ready)`, in whatever order they come."""
    total = 0
    for target in targets:
        total += int.from_bytes(blake2b("\n".join(target).encode(), digest_size=8).digest())
    return f"{total % 2**64:016x}"


def target_digest(cluster: Cluster, app: str = "", *, ready: bool = False) -> dict[str, Any]:
    """`targets` and `digest` of all pods as they are now, or of one app's, or of ready ones alone.

    ValueError unless the cluster was made without oddities: then each pod has two containers with three ports together.
    """
    if cluster.sizes is None or cluster.sizes.oddities:
        raise ValueError("only a cluster that was made without oddities knows its targets")
    found = [target for target in _targets(cluster, app) if not ready or target[-1] == "true"]
    return {"targets": len(found), "digest": digest(found)}


def _targets(cluster: Cluster, name: str) -> Iterator[tuple[str, str, str, str]]:
    for app in cluster.apps:
        if name and app.name != name:
            continue
        for pod in app.pods.values():
            host = f"[{pod.ip}]" if ":" in pod.ip else pod.ip
            ready = "true" if pod.ready else "false"
            for port in (app.port, app.port + 1, _PROXY_PORT):
                yield app.namespace, pod.name, f"{host}:{port}", ready
