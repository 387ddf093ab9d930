"""Listing all pods through the Kubernetes clients that Python has."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from ..memory import peak
from .child import RunError, answer

if TYPE_CHECKING:
    from ..cases import Figures

Timed = tuple[float, list[tuple[str, str]]]


async def measure(*, began: float, url: str, client: str) -> Figures:  # noqa: ARG001
    """`wall` counts from the first request; `client` is one of CLIENTS. The names of all pods are checked."""
    took, names = await CLIENTS[client](url)
    figures = {"wall": took, "cpu": time.process_time(), "peak": peak()}
    from fastdisco.synthetic import RemoteControl  # only now: the client does without what checks its answer

    body = RemoteControl(url).request("GET", "/api/v1/pods?resourceVersion=0")[1]
    expected = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in json.loads(body)["items"]]
    if _digest(names) != _digest(expected):
        raise RunError(f"wrong answer: {len(names)} names, not those of the {len(expected)} pods")
    return figures


def _digest(names: list[tuple[str, str]]) -> str:
    return hashlib.sha256(repr(sorted(names)).encode()).hexdigest()


def _names(pods: list[Any]) -> list[tuple[str, str]]:
    return [(pod.metadata.namespace, pod.metadata.name) for pod in pods]


async def _kubernetes(url: str) -> Timed:
    import kubernetes

    configuration = kubernetes.client.Configuration()
    configuration.host = url
    api = kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(configuration))
    began = time.monotonic()
    pods: list[Any] = api.list_pod_for_all_namespaces(resource_version="0").items
    return time.monotonic() - began, _names(pods)


async def _kubernetes_asyncio(url: str) -> Timed:
    import kubernetes_asyncio

    configuration = kubernetes_asyncio.client.Configuration()
    configuration.host = url
    async with kubernetes_asyncio.client.ApiClient(configuration) as connection:
        api = kubernetes_asyncio.client.CoreV1Api(connection)
        began = time.monotonic()
        pods: list[Any] = (await api.list_pod_for_all_namespaces(resource_version="0")).items
        return time.monotonic() - began, _names(pods)


async def _lightkube(url: str) -> Timed:
    import lightkube
    from lightkube.config.models import Cluster, User
    from lightkube.resources.core_v1 import Pod

    config = lightkube.KubeConfig.from_one(cluster=Cluster(server=url), user=User())  # it wants one
    async with lightkube.AsyncClient(config=config, trust_env=False) as client:
        began = time.monotonic()
        pods = [pod async for pod in client.list(Pod, namespace="*")]
        return time.monotonic() - began, _names(pods)


CLIENTS: dict[str, Callable[[str], Coroutine[Any, Any, Timed]]] = {
    "kubernetes": _kubernetes,
    "kubernetes-asyncio": _kubernetes_asyncio,
    "lightkube": _lightkube,
}


if __name__ == "__main__":
    answer(measure)
