"""All six roles at once, what is attached included."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from fastdisco import Discovery, KubernetesSDConfig, Labels
from fastdisco.config import ROLES

from ..holds import LoopHolds
from ..memory import peak, resident
from .child import RunError, answer

if TYPE_CHECKING:
    from fastdisco.synthetic import RemoteControl

    from ..cases import Figures


class Work:
    """What a scraper keeps of a target."""

    __slots__ = ("labels",)

    def __init__(self, labels: Labels) -> None:
        self.labels = labels


async def measure(*, began: float, url: str) -> Figures:
    """Until all six jobs are registered, which are started together."""
    async with Discovery() as discovery:
        with LoopHolds() as holds:
            for role in ROLES:
                attach = {"node": True, "namespace": True}
                config = KubernetesSDConfig.from_dict({"role": role, "api_server": url, "attach_metadata": attach})
                discovery.watch(role, config, Work)
            for watcher in discovery.jobs.values():
                await watcher.synced()
            wall, cpu = time.monotonic() - began, time.process_time()
        found = {role: len(watcher.scrape_works()) for role, watcher in discovery.jobs.items()}
        from fastdisco.synthetic import RemoteControl  # only now: the engine does without what checks its answer

        expected = await _expected(RemoteControl(url))
        if found != expected:
            raise RunError(f"wrong answer: targets by role are {found}, the server's objects give {expected}")
        return {
            "wall": wall, "cpu": cpu, "peak": peak(), "steady": resident(),
            "hold": 1000 * holds.longest, "collection": 1000 * holds.longest_collection,
        }  # fmt: skip


async def _expected(server: RemoteControl) -> dict[str, int]:
    """Each pod runs, with three ports, and belongs to one service."""
    pods = (await server.acontrol("targets", app=""))["targets"]
    services = json.loads(server.request("GET", "/api/v1/services")[1])["items"]
    ingresses = json.loads(server.request("GET", "/apis/networking.k8s.io/v1/ingresses")[1])["items"]
    return {
        "node": (await server.acontrol("state"))["objects"]["nodes"],
        "pod": pods,
        "service": sum(len(service["spec"]["ports"]) for service in services),
        "endpoints": pods,
        "endpointslice": pods,
        "ingress": sum(len(rule["http"]["paths"]) for ingress in ingresses for rule in ingress["spec"]["rules"]),
    }


if __name__ == "__main__":
    answer(measure)
