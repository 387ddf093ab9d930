"""Jobs of some dialects at once, over the same objects."""

from __future__ import annotations

import time
from collections.abc import Sequence

from fastdisco import Discovery, KubernetesSDConfig, RelabelConfig
from fastdisco.config import AttachMetadata
from fastdisco.synthetic import RemoteControl

from ..cases import Figures
from ..holds import LoopHolds
from ..memory import peak, resident
from .child import RunError, answer

_ROLES = ("pod", "endpoints", "endpointslice")


async def measure(*, began: float, url: str, dialects: Sequence[str], app: str) -> Figures:
    """Until all are registered: a job of each role that shows pods, with their nodes, in each dialect; they keep the pods of one app."""
    rules = [RelabelConfig("keep", ("__meta_kubernetes_pod_label_app",), regex=app)]
    async with Discovery() as discovery:
        with LoopHolds() as holds:
            for role in _ROLES:
                config = KubernetesSDConfig(role, api_server=url, attach_metadata=AttachMetadata(node=True))
                for dialect in dialects:
                    discovery.watch(f"{role} {dialect}", config, relabel_configs=rules, dialect=dialect)
            for watcher in discovery.jobs.values():
                await watcher.synced()
            wall, cpu = time.monotonic() - began, time.process_time()
        wanted = (await RemoteControl(url).acontrol("targets", app=app))["targets"]
        found = {name: len(watcher.scrape_works()) for name, watcher in discovery.jobs.items()}
        if set(found.values()) != {wanted}:
            raise RunError(f"wrong answer: targets by job are {found}, the server's objects give {wanted} for each")
        return {
            "wall": wall, "cpu": cpu, "peak": peak(), "steady": resident(),
            "hold": 1000 * holds.longest, "collection": 1000 * holds.longest_collection,
        }  # fmt: skip


if __name__ == "__main__":
    answer(measure)
