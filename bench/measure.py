"""`make measure`: prints what the engine takes on this machine, against the synthetic cluster; each figure in a process of its own."""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine

import orjson
import uvloop

from bench.holds import LoopHolds
from bench.memory import peak, resident
from fastdisco import APIWatcher, Discovery, KubernetesSDConfig, Labels, RelabelConfig
from fastdisco.config import DIALECTS, AttachMetadata
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


async def jobs(pods: int) -> None:
    """A hundred jobs started together, each keeping the pods of one of a hundred applications; then one job more."""
    async with SyntheticProcess(pods=pods, apps=100, oddities=0.0) as server, Discovery() as discovery:
        config = KubernetesSDConfig("pod", api_server=server.url)
        services = orjson.loads((await asyncio.to_thread(server.request, "GET", "/api/v1/services"))[1])["items"]
        names = sorted({one["metadata"]["labels"]["app"] for one in services})
        calls = 0

        def make(labels: Labels) -> Work:
            nonlocal calls
            calls += 1
            return Work(labels)

        def start(name: str, app: str) -> APIWatcher:
            rules = [
                RelabelConfig("keep", ("__meta_kubernetes_pod_label_app",), regex=app),
                RelabelConfig("labelmap", regex="__meta_kubernetes_pod_label_(.+)"),
                RelabelConfig("replace", ("__meta_kubernetes_namespace",), target_label="namespace"),
                RelabelConfig("replace", ("__meta_kubernetes_pod_name",), target_label="pod"),
            ]
            return discovery.watch(name, config, make, relabel_configs=rules)

        with LoopHolds() as holds:
            began, cpu = time.perf_counter(), time.process_time()
            for app in names:
                start(app, app)
            for job in discovery.jobs.values():
                await job.synced()
            took, cpu = time.perf_counter() - began, time.process_time() - cpu
        kept = sum(len(job.scrape_works()) for job in discovery.jobs.values())
        dropped = sum(job.status()["dropped"] for job in discovery.jobs.values())
        if kept + dropped != 3 * pods * len(names) or kept != 3 * pods:
            raise AssertionError(f"{kept} kept, {dropped} dropped, of {3 * pods} targets in {len(names)} jobs")
        print(
            f"jobs: {pods} pods, {len(names)} jobs, {kept} targets kept, {dropped} dropped: {took:.2f} s, {cpu:.2f} CPU s, "
            f"{_rendered(discovery):.0f} objects rendered, {calls} constructor calls, peak {peak():.0f} MB, now {resident():.0f} MB; "
            f"{_held(holds)}"
        )
        rendered, made = _rendered(discovery), calls
        with LoopHolds() as holds:
            began, cpu = time.perf_counter(), time.process_time()
            job = start("one more", names[0])
            await job.synced()
            took, cpu = time.perf_counter() - began, time.process_time() - cpu
        print(
            f"jobs: one more: {took:.3f} s, {cpu:.3f} CPU s, {_rendered(discovery) - rendered:.0f} objects rendered, "
            f"{calls - made} constructor calls; {_held(holds)}"
        )


async def dialects(pods: int) -> None:
    """Pods and slices for one dialect, then for the other one beside it: jobs that keep one application, and jobs that keep all."""
    async with SyntheticProcess(pods=pods, apps=100, oddities=0.0) as server, Discovery() as discovery:
        some = [RelabelConfig("keep", ("__meta_kubernetes_pod_label_app",), regex="cart-api-0")]
        empty = resident()
        for what, rules in (("one application", some), ("all", ())):
            for dialect in DIALECTS:
                received, rendered = _received(discovery), _rendered(discovery)
                with LoopHolds() as holds:
                    began, cpu = time.perf_counter(), time.process_time()
                    jobs = [
                        discovery.watch(
                            f"{dialect} {role} {what}",
                            KubernetesSDConfig(role, api_server=server.url, attach_metadata=AttachMetadata(node=True)),
                            Work,
                            relabel_configs=rules,
                            dialect=dialect,
                        )
                        for role in ("pod", "endpointslice")
                    ]
                    for job in jobs:
                        await job.synced()
                    took, cpu = time.perf_counter() - began, time.process_time() - cpu
                targets = sum(len(job.scrape_works()) for job in jobs)
                print(
                    f"dialects: {pods} pods, {what}, {dialect}: {targets} targets: {took:.2f} s, {cpu:.2f} CPU s, "
                    f"{(_received(discovery) - received) / 1e6:.0f} MB of pods received, "
                    f"{_rendered(discovery) - rendered:.0f} pods rendered, "
                    f"now {resident() - empty:.0f} MB more than at the start; {_held(holds)}"
                )


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
    "jobs": (jobs, 10_000),
    "jobs-100k": (jobs, 100_000),
    "dialects": (dialects, 10_000),
    "churn": (delay, 10_000),
    "turnovers": (turnovers, 10_000),
}


def _held(holds: LoopHolds) -> str:
    return f"longest hold {holds.longest * 1000:.1f} ms, longest collection {holds.longest_collection * 1000:.1f} ms"


def _rendered(discovery: Discovery) -> float:
    return _sample(discovery, "objects_rendered_total")


def _received(discovery: Discovery) -> float:
    return _sample(discovery, "bytes_received_total")


def _sample(discovery: Discovery, name: str) -> float:
    return discovery.metrics.registry.get_sample_value(f"fastdisco_discovery_kubernetes_{name}", {"role": "pod"}) or 0.0


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
