"""Jobs of one dialect, or of both over the same objects."""

from __future__ import annotations

import time
from collections.abc import Sequence

from fastdisco import Discovery, KubernetesSDConfig
from fastdisco.synthetic import RemoteControl

from ..cases import Figures
from ..holds import LoopHolds
from ..memory import peak, resident
from .child import RunError, answer
from .engine import Work

_ROLES = ("pod", "endpointslice")


async def measure(*, began: float, url: str, dialects: Sequence[str]) -> Figures:
    """Until the jobs of all these dialects are registered, started together, with nodes attached and all targets kept."""
    server = RemoteControl(url)
    before = await _lists(server)
    async with Discovery() as discovery:
        with LoopHolds() as holds:
            for dialect in dialects:
                for role in _ROLES:
                    config = KubernetesSDConfig.from_dict({"role": role, "api_server": url, "attach_metadata": {"node": True}})
                    discovery.watch(f"{dialect} {role}", config, Work, relabel_configs=(), dialect=dialect)
            for watcher in discovery.jobs.values():
                await watcher.synced()
            wall, cpu = time.monotonic() - began, time.process_time()
        expected = (await server.acontrol("targets", app=""))["targets"]
        found = {name: len(watcher.scrape_works()) for name, watcher in discovery.jobs.items()}
        if set(found.values()) != {expected}:
            raise RunError(f"wrong answer: targets by job are {found}, the server's objects give {expected} to each")
        if (lists := await _lists(server) - before) != 1:
            raise RunError(f"wrong answer: pods were listed {lists} times")
        return {
            "wall": wall, "cpu": cpu, "peak": peak(), "steady": resident(),
            "hold": 1000 * holds.longest, "collection": 1000 * holds.longest_collection,
        }  # fmt: skip


async def _lists(server: RemoteControl) -> int:
    """How often pods have been listed."""
    requests = (await server.acontrol("requests"))["requests"]
    return sum(one["verb"] == "list" and one["path"] == "/api/v1/pods" for one in requests)


if __name__ == "__main__":
    answer(measure)
