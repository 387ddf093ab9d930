"""`make measure`: prints what the engine takes on this machine, against the synthetic cluster; each figure in a process of its own."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine

import uvloop

from bench.holds import LoopHolds
from bench.memory import peak, resident
from fastdisco import Discovery, KubernetesSDConfig, Labels
from fastdisco.synthetic import SyntheticProcess


class Work:
    """What a scraper would keep of a target."""

    __slots__ = ("labels",)

    def __init__(self, labels: Labels) -> None:
        self.labels = labels


async def sync(pods: int) -> None:
    """One job, role pod, all targets kept: from the first request to registered."""
    async with SyntheticProcess(pods=pods, oddities=0.0) as server, Discovery() as discovery:
        config = KubernetesSDConfig("pod", api_server=server.url)
        with LoopHolds() as holds:
            began, cpu = time.perf_counter(), time.process_time()
            job = discovery.watch("pods", config, Work)
            await job.synced()
            took, cpu = time.perf_counter() - began, time.process_time() - cpu
        if len(job.scrape_works()) != 3 * pods:
            raise AssertionError(f"{len(job.scrape_works())} targets of {pods} pods")
        megabytes = _received(discovery) / 1e6
        print(
            f"sync: {pods} pods, {megabytes:.0f} MB, {3 * pods} targets kept: {took:.2f} s, {cpu:.2f} CPU s, {megabytes / took:.0f} MB/s, "
            f"peak {peak():.0f} MB, now {resident():.0f} MB; {_held(holds)}"
        )


async def roles(pods: int) -> None:
    """All six roles with node and namespace metadata attached, started together."""
    async with SyntheticProcess(pods=pods, oddities=0.0) as server, Discovery() as discovery:
        attach = {"node": True, "namespace": True}
        with LoopHolds() as holds:
            began, cpu = time.perf_counter(), time.process_time()
            for role in ("node", "pod", "service", "endpoints", "endpointslice", "ingress"):
                config = KubernetesSDConfig.from_dict({"role": role, "api_server": server.url, "attach_metadata": attach})
                discovery.watch(role, config, Work)
            for job in discovery.jobs.values():
                await job.synced()
            took, cpu = time.perf_counter() - began, time.process_time() - cpu
        targets = sum(len(job.scrape_works()) for job in discovery.jobs.values())
        print(f"roles: {pods} pods, six roles, {targets} targets: {took:.2f} s, {cpu:.2f} CPU s, peak {peak():.0f} MB; {_held(holds)}")


async def delay(pods: int) -> None:
    """From the server's commit of a change to the reader of the job's changes, at 200 changes a second."""
    async with SyntheticProcess(pods=pods, oddities=0.0) as server, Discovery() as discovery:
        job = discovery.watch("pods", KubernetesSDConfig("pod", api_server=server.url))
        await job.synced()
        changes = job.changes()
        await anext(changes)
        with LoopHolds() as holds:
            await server.acontrol("churn", rate=200)
            began, seen = time.perf_counter(), 0
            while time.perf_counter() - began < 5:
                await anext(changes)
                seen += 1
            await server.acontrol("churn", rate=0)
        print(f"churn: {pods} pods, 200 changes/s for 5 s: {seen} changed targets read; {_held(holds)}")


async def turnovers(pods: int) -> None:
    """Twenty times all pods deleted and as many new ones created: memory must not follow history."""
    async with SyntheticProcess(pods=pods, oddities=0.0) as server, Discovery() as discovery:
        job = discovery.watch("pods", KubernetesSDConfig("pod", api_server=server.url), Work)
        await job.synced()
        sizes = []
        for _ in range(20):
            changes = job.changes()
            before = set((await anext(changes)).works)
            await server.acontrol("turnover", follow=False)
            fresh = 0
            # a reader that falls behind gets a snapshot: count what is there, not what was told
            while before or fresh < 3 * pods:
                change = await anext(changes)
                if change.kind == "snapshot":
                    before &= set(change.works)
                    fresh = len(change.works) - len(before)
                elif change.kind == "added":
                    fresh += 1
                elif change.kind == "removed":
                    before.discard(change.work)
            await changes.aclose()
            sizes.append(resident())
        print(f"turnovers: {pods} pods, 20 times: resident MB after each: {' '.join(f'{size:.0f}' for size in sizes)}")
        print(f"turnovers: last against second: {sizes[-1] / sizes[1]:.2f}")


FIGURES: dict[str, tuple[Callable[[int], Coroutine[None, None, None]], int]] = {
    "sync": (sync, 10_000),
    "sync-100k": (sync, 100_000),
    "roles": (roles, 10_000),
    "churn": (delay, 10_000),
    "turnovers": (turnovers, 10_000),
}


def _held(holds: LoopHolds) -> str:
    return f"longest hold {holds.longest * 1000:.1f} ms, longest collection {holds.longest_collection * 1000:.1f} ms"


def _received(discovery: Discovery) -> float:
    registry = discovery.metrics.registry
    return registry.get_sample_value("fastdisco_discovery_kubernetes_bytes_received_total", {"role": "pod"}) or 0.0


def main() -> None:
    """All figures, or those named."""
    parser = argparse.ArgumentParser(prog="python -m bench.measure", description=__doc__)
    parser.add_argument("figures", nargs="*", choices=[*FIGURES, []], help="which figures; default: all")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    for name in arguments.figures or FIGURES:
        if arguments.here:
            figure, pods = FIGURES[name]
            uvloop.run(figure(pods))
        else:
            subprocess.run([sys.executable, "-m", "bench.measure", "--here", name], check=True)


if __name__ == "__main__":
    main()
