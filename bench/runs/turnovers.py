"""All pods deleted and as many new ones created, again and again: memory must follow what is there, not what has been."""

from __future__ import annotations

import time

from fastdisco import Discovery, KubernetesSDConfig
from fastdisco.relabel_config import load_rules
from fastdisco.synthetic import RemoteControl
from fastdisco.synthetic.digests import digest

from ..cases import Figures
from ..jobs import Job
from ..memory import peak, resident
from .child import RunError, answer


async def measure(*, began: float, url: str, times: int) -> Figures:
    """`kept` is the memory after the last turnover in percent of that after the second."""
    server = RemoteControl(url)
    job = Job("pods")
    async with Discovery() as discovery:
        watcher = discovery.watch("pods", KubernetesSDConfig.from_dict(job.discovery(url)), relabel_configs=load_rules(job.rules()))
        await watcher.synced()
        sizes = []
        for _ in range(times):
            changes = watcher.changes()
            before = set((await anext(changes)).works)
            total, fresh = len(before), 0
            await server.acontrol("turnover", follow=False)
            while before or fresh < total:  # a reader that falls behind gets a snapshot: count what is there, not what was told
                change = await anext(changes)
                if change.kind == "snapshot":
                    before &= set(change.works)
                    fresh = len(change.works) - len(before)
                elif change.kind == "added":
                    fresh += 1
                elif change.kind == "removed":
                    before.discard(change.work)
            await changes.aclose()
            del changes, before, change
            sizes.append(resident())
        shown = [(work["namespace"], work["pod"], work["address"], work["ready"]) for work in watcher.scrape_works()]
        found = {"targets": len(shown), "digest": digest(shown)}
        expected = await server.acontrol("targets", app="")
        if found != expected:
            raise RunError(f"wrong answer: after all turnovers there are {found}, the server's objects give {expected}")
    return {"wall": time.monotonic() - began, "steady": sizes[-1], "peak": peak(), "kept": 100 * sizes[-1] / sizes[1]}


if __name__ == "__main__":
    answer(measure)
