"""The engine as a program embeds it: jobs until they are registered; then perhaps a burst of events, or a steady rate of them."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastdisco import APIWatcher, Discovery, KubernetesSDConfig, Labels
from fastdisco.changes import Reader
from fastdisco.relabel_config import load_rules

from ..holds import LoopHolds
from ..jobs import Job
from ..memory import peak, resident
from .child import RunError, answer

if TYPE_CHECKING:
    from fastdisco.synthetic import RemoteControl

    from ..cases import Figures

_QUIET = 1.0  # seconds after the last change in which its targets must have been told


class Work:
    """What a scraper keeps of a target."""

    __slots__ = ("labels",)

    def __init__(self, labels: Labels) -> None:
        self.labels = labels


def _as_dict(labels: Labels) -> Work:
    work = Work(labels)
    work.labels = dict(labels)  # type: ignore[assignment]
    return work


_CONSTRUCTORS: dict[str, Callable[[Labels], Work]] = {"labels": Work, "dict": _as_dict}


async def measure(
    *,
    began: float,
    url: str,
    jobs: Sequence[dict[str, Any]],
    keeps: str = "labels",
    burst: int = 0,
    churn: dict[str, Any] | None = None,
    later: bool = False,
) -> Figures:
    """`jobs` are the fields of `Job`; `keeps`: what a work holds, `labels` or `dict`; `burst` is a number of events;
    `churn` has `rate` (1/s) and `seconds`; `later`: at the end one job more, whose rules are those of the first.
    """
    wanted = [Job(**one) for one in jobs]
    async with Discovery() as discovery:
        with LoopHolds() as holds:
            asked = time.monotonic()
            watchers = []
            for job in wanted:
                watchers.append(_start(discovery, job, url, _CONSTRUCTORS[keeps]))
                await asyncio.sleep(0)  # a loop that is held here would be held by this program
            for watcher in watchers:
                await watcher.synced()
            now = time.monotonic()
            figures = {"wall": now - began, "listed": now - asked, "cpu": time.process_time(), "peak": peak(), "steady": resident()}
            figures |= {"hold": 1000 * holds.longest, "collection": 1000 * holds.longest_collection}
        figures["throughput"] = _counted(discovery, "bytes_received_total", wanted[0].role) / 1e6 / figures["listed"]
        # only now: a program that embeds the engine does without what checks its answer
        from fastdisco.synthetic import RemoteControl

        server = RemoteControl(url)
        gc.freeze()
        await _check(server, wanted, watchers)
        if burst:
            _join(figures, await _burst(server, wanted, watchers, burst))
            await _check(server, wanted, watchers)
        if churn is not None:
            _join(figures, await _churn(server, discovery, wanted[0], watchers[0], **churn))
            await _check(server, wanted, watchers)
        if later:
            figures |= await _later(server, discovery, replace(wanted[0], name="later"), url)
    return figures


async def _later(server: RemoteControl, discovery: Discovery, job: Job, url: str) -> Figures:
    """A job that comes when all others have their targets: no list, no rendering that has been done."""
    with LoopHolds() as holds:
        began, cpu = time.monotonic(), time.process_time()
        watcher = _start(discovery, job, url, Work)
        await watcher.synced()
        took, cpu = time.monotonic() - began, time.process_time() - cpu
    await _check(server, [job], [watcher])
    return {"later_wall": took, "later_cpu": cpu, "later_hold": 1000 * holds.longest}


def _join(figures: Figures, more: Figures) -> None:
    """The longest hold is that of the whole run."""
    hold = max(figures["hold"], more["hold"])
    figures.update(more, hold=hold)


def _start(discovery: Discovery, job: Job, url: str, constructor: Callable[[Labels], Work]) -> APIWatcher:
    config = KubernetesSDConfig.from_dict(job.discovery(url))
    return discovery.watch(job.name, config, constructor, relabel_configs=load_rules(job.rules()))


async def _check(server: RemoteControl, jobs: Sequence[Job], watchers: Sequence[APIWatcher]) -> None:
    """RunError unless every job has exactly the targets that the server's objects give."""
    from fastdisco.synthetic.digests import digest

    for job, watcher in zip(jobs, watchers, strict=True):
        expected = await server.acontrol("targets", app=job.app)
        works = watcher.scrape_works()
        found = {"targets": len(works), "digest": digest(map(_shown, works))}
        if found != expected:
            raise RunError(f"wrong answer: job {job.name} has {found}, the server's objects give {expected}")


def _shown(work: Work) -> tuple[str, str, str, str]:
    labels = work.labels
    return labels["namespace"], labels["pod"], labels["address"], labels["ready"]


async def _burst(server: RemoteControl, jobs: Sequence[Job], watchers: Sequence[APIWatcher], count: int) -> Figures:
    """Events at full speed: from their release until the last one, a new pod of the first job, has its targets."""
    await server.acontrol("burst", events=count, turned=0.2, marker=jobs[0].app, hold=True)
    expected = (await server.acontrol("targets", app=jobs[0].app))["targets"]
    changes = watchers[0].changes()
    await anext(changes)
    with LoopHolds() as holds:
        cpu = time.process_time()
        released = asyncio.create_task(server.acontrol("release", {}))
        while len(watchers[0].scrape_works()) != expected:
            await anext(changes)
        now, cpu = time.monotonic(), time.process_time() - cpu
        took = now - (await released)["time"] / 1e9
    await changes.aclose()
    return {"events": count / took, "events_per_cpu": count / cpu, "hold": 1000 * holds.longest}


async def _churn(
    server: RemoteControl, discovery: Discovery, job: Job, watcher: APIWatcher, *, rate: float, seconds: float
) -> Figures:
    """A steady rate of changes that carry the time of their write: the delay of each until it is read among the job's changes."""
    delays: list[float] = []
    changes = watcher.changes()
    await anext(changes)
    rendered = _counted(discovery, "objects_rendered_total", job.role)
    with LoopHolds() as holds:
        reader = asyncio.create_task(_read_delays(changes, delays))
        before = (await server.acontrol("churn", rate=rate, change="time", follow=False))["events"]
        await asyncio.sleep(seconds)
        events = (await server.acontrol("churn", rate=0))["events"] - before
        await asyncio.wait([reader], timeout=_QUIET)
        await changes.aclose()
        reader.cancel()
    if reader.done() and not reader.cancelled():
        reader.result()
    if len(delays) != 3 * events:
        raise RunError(f"wrong answer: {len(delays)} changed targets of {events} events")
    delays.sort()
    ranks = {"p50": 0.5, "p99": 0.99}
    figures = {name: delays[int(rank * (len(delays) - 1))] / 1e6 for name, rank in ranks.items()}
    rendered = (_counted(discovery, "objects_rendered_total", job.role) - rendered) / events
    return {**figures, "max": delays[-1] / 1e6, "rendered": rendered, "hold": 1000 * holds.longest}


async def _read_delays(changes: Reader, delays: list[float]) -> None:
    async for change in changes:
        if change.kind != "updated":
            raise RunError(f"wrong answer: a changed annotation came as {change.kind}")
        delays.append(time.monotonic_ns() - int(change.work.labels["revision"]))


def _counted(discovery: Discovery, name: str, role: str) -> float:
    return discovery.metrics.registry.get_sample_value(f"fastdisco_discovery_kubernetes_{name}", {"role": role}) or 0.0


if __name__ == "__main__":
    answer(measure)
