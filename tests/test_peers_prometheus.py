"""fastdisco beside Prometheus, both discovering from one synthetic API server."""

import json
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from fastdisco import APIWatcher, Discovery, KubernetesSDConfig
from fastdisco.configuration import load_configuration
from fastdisco.synthetic import SyntheticProcess
from fastdisco.target_labels import stored_labels
from tests.peers.comparing import LabelSets, Write, change, changed, difference, label_sets, same, unseen
from tests.peers.objects import Objects, cluster, unambiguous
from tests.peers.programs import until
from tests.peers.prometheus import Prometheus
from tests.peers.real_world import JOBS
from tests.peers.scraper import kubernetes

COUNT = 300
PODS = ("pod", "endpoints", "endpointslice")
CONFIGS: dict[str, dict[str, Any]] = {
    **{role: {"role": role} for role in ("node", "pod", "service", "endpoints", "endpointslice", "ingress")},
    **{f"{role}+namespace": {"role": role, "attach_metadata": {"namespace": True}} for role in ("service", "ingress")},
    **{f"{role}+node": {"role": role, "attach_metadata": {"node": True}} for role in PODS},
    **{
        f"{role}+workloads": {"role": role, "attach_metadata": dict.fromkeys(("namespace", "deployment", "job", "cronjob"), True)}
        for role in PODS
    },
    "endpointslice of some": {"role": "endpointslice", "namespaces": {"names": ["ns-1", "ns-2"]}},
    "pod selected": {"role": "pod", "selectors": [{"role": "pod", "label": "app", "field": "status.phase=Running"}]},
}


def writes(objects: Objects, seed: int) -> list[Write]:
    """As `change` has them; Prometheus keeps the old target of a node that has lost its addresses, but none of these does."""
    made = change(objects, seed)
    unambiguous({"": [write["object"] for write in made if "object" in write]})
    return made


class Nudges:
    """Writes that only Prometheus takes for changes."""

    def __init__(self, server: SyntheticProcess, objects: Objects) -> None:
        self.server = server
        self.objects = objects
        self.generations = count(2)

    async def __call__(self) -> None:
        await self.server.acontrol("apply", unseen(self.objects, next(self.generations)))


@pytest.mark.slow
@pytest.mark.peers("prometheus")
async def test_discovered_labels_are_those_of_prometheus_before_and_after_a_change(tmp_path: Path) -> None:
    """300 objects of each kind, every role, with and without attachments; then a third of them changed, deleted or new."""
    objects = unambiguous(cluster(1, COUNT))
    async with SyntheticProcess(objects=objects) as server, Discovery(dialect="prometheus") as discovery:
        jobs = {name: {**config, "api_server": server.url} for name, config in CONFIGS.items()}
        watchers = {name: discovery.watch(name, KubernetesSDConfig.from_dict(config), dict) for name, config in jobs.items()}
        nudges = Nudges(server, objects)
        async with Prometheus(tmp_path, kubernetes(jobs)) as prometheus:
            for watcher in watchers.values():
                await watcher.synced(timeout=60)
            await same(watchers, prometheus, nudges)
            assert all(watcher.scrape_works() for watcher in watchers.values())
            made = writes(objects, 2)
            await server.acontrol("apply", made)
            nudges.objects = changed(objects, made)
            await same(watchers, prometheus, nudges)


def ours(watcher: APIWatcher) -> LabelSets:
    return label_sets(stored_labels(labels) for labels in watcher.scrape_works())


async def same_finals(watchers: Mapping[str, APIWatcher], prometheus: Prometheus, nudge: Nudges) -> None:
    """As `same`, of the labels that samples are stored with."""
    left: dict[str, str] = {}
    tries = count(1)

    async def agree() -> bool:
        if next(tries) % 12 == 0:
            await nudge()
        found: dict[str, list[Mapping[str, str]]] = {name: [] for name in watchers}
        for target in (await prometheus.shown())["activeTargets"]:
            found[target["scrapePool"]].append(target["labels"])
        left.clear()
        for name, watcher in watchers.items():
            if differs := difference(ours(watcher), label_sets(found[name]), "prometheus"):
                left[name] = differs
        return not left

    try:
        await until(agree, timeout=120, what="equal targets", every=1.0)
    except TimeoutError:
        pytest.fail("\n".join(f"{json.dumps(JOBS[name])}: {text[:1500]}" for name, text in left.items()), pytrace=False)


@pytest.mark.slow
@pytest.mark.peers("prometheus")
async def test_rules_as_people_write_them_give_the_targets_of_prometheus(tmp_path: Path) -> None:
    """More than thirty jobs of the kinds that charts and operators have: active targets and final labels, before and after a change.

    Both load the same file.
    """
    assert len(JOBS) >= 30
    objects = unambiguous(cluster(3, COUNT))
    async with SyntheticProcess(objects=objects) as server, Discovery(dialect="prometheus") as discovery:
        configs = {name: {**job["sd"], "api_server": server.url} for name, job in JOBS.items()}
        nudges = Nudges(server, objects)
        async with Prometheus(tmp_path, kubernetes(configs), {name: job["rules"] for name, job in JOBS.items()}) as prometheus:
            watchers = {
                job.job_name: discovery.watch(
                    job.job_name, job.kubernetes_sd_configs, relabel_configs=job.relabel_configs, target_defaults=job.target_defaults
                )
                for job in load_configuration(prometheus.config, dialect="prometheus").jobs
            }
            for watcher in watchers.values():
                await watcher.synced(timeout=60)
            await same_finals(watchers, prometheus, nudges)
            empty = [name for name, watcher in watchers.items() if not watcher.scrape_works()]
            assert not empty
            made = writes(objects, 4)
            await server.acontrol("apply", made)
            nudges.objects = changed(objects, made)
            await same_finals(watchers, prometheus, nudges)
