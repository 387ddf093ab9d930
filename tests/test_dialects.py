"""Both dialects at once, over one synthetic API server: what is shared, what is asked for, and what a job's dialect changes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fastdisco import ConfigError, Discovery, KubernetesSDConfig, RelabelConfig
from fastdisco.auth import own_namespace
from fastdisco.config import DIALECTS, ROLES
from fastdisco.discovery import group_key
from fastdisco.group_watcher import Pace

from .live import PATHS, live, namespace, node, pod, service, web, works_of
from .live import endpoints as endpoints_of

EVERYTHING = ("node", "namespace", "deployment", "job", "cronjob")
REPLICASETS, JOBS = "/apis/apps/v1/replicasets", "/apis/batch/v1/jobs"
SMALL = Pace(batch_targets=2, linger_seconds=0.0)
Item = dict[str, Any]


def owned(item: Item, kind: str, name: str) -> Item:
    item["metadata"]["ownerReferences"] = [{"kind": kind, "name": name, "controller": True}]
    return item


def owner(name: str, kind: str, behind: str) -> Item:
    return owned({"metadata": {"name": name, "namespace": "default"}, "spec": {"template": {}}}, kind, behind)


def cluster() -> dict[str, list[Item]]:
    """A web with owners; of its nodes one is not there."""
    made = web(4)
    made["pods"] = [owned(one, ("ReplicaSet", "Job")[number % 2], "o") for number, one in enumerate(made["pods"])]
    made["pods"].append(pod("lost", "127.3.8.1", node="nowhere"))
    return made | {"replicasets": [owner("o", "Deployment", "web")], "jobs": [owner("o", "CronJob", "nightly")]}


async def test_watches_and_objects_are_shared_by_jobs_of_both_dialects() -> None:
    """Every role twice, with all that can be attached: each kind is listed and watched once, and each job has its dialect's targets."""
    async with live(cluster()) as it:
        jobs = [it.watch(f"{role} {dialect}", role, dialect=dialect, attach=EVERYTHING) for role in ROLES for dialect in DIALECTS]
        for job in jobs:
            await job.synced()
        it.check(*jobs)
        await it.watching(9)
        assert sorted(one["path"] for one in it.asked("list")) == sorted([*PATHS.values(), REPLICASETS, JOBS])
        it.put("pods", owned(pod("new", "127.3.9.1", app="db"), "ReplicaSet", "o"))
        it.put("endpoints", endpoints_of("web", {"new": "127.3.9.1", "p001": "127.3.0.1"}))
        it.put("namespaces", namespace("default", team="blue"))
        it.delete("nodes", "n0")
        await it.converge(*jobs)


async def test_a_discovery_has_a_dialect_and_a_job_may_have_another() -> None:
    """`watch` without one takes the discovery's."""
    done = pod("done", "2001:db8::1") | {"status": {"podIP": "2001:db8::1", "phase": "Failed"}}
    async with live({"pods": [done]}) as it, Discovery(dialect="prometheus") as discovery:
        own = discovery.watch("own", it.config("pod"))
        other = discovery.watch("other", it.config("pod"), dialect="victoriametrics")
        await own.synced()
        await other.synced()
        assert [work["__address__"] for work in own.scrape_works()] == ["[2001:db8::1]:8080"]
        assert other.scrape_works() == ()


@pytest.mark.parametrize("role", ["pod", "endpoints", "endpointslice"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_owners_are_followed(role: str, dialect: str) -> None:
    """A ReplicaSet or Job that comes, changes its controller or goes changes the labels of its pods' targets at once."""
    async with live({**cluster(), "replicasets": [], "jobs": []}) as it:
        job = it.watch("job", role, dialect=dialect, attach=EVERYTHING)
        await job.synced()
        it.check(job)
        before = works_of(job)
        for name in ("web", "shop"):
            it.put("replicasets", owner("o", "Deployment", name))
            it.put("jobs", owner("o", "CronJob", name))
            await it.converge(job)
            assert any(f'"__meta_kubernetes_pod_deployment_name":"{name}"' in text for text in works_of(job))
            assert any(f'"__meta_kubernetes_pod_cronjob_name":"{name}"' in text for text in works_of(job))
        it.delete("replicasets", "default/o")
        it.delete("jobs", "default/o")
        await it.converge(job)
        assert works_of(job) == before


async def test_of_owners_only_the_metadata_is_asked_for() -> None:
    """As PartialObjectMetadata, in lists and watches; a server that does not know it may send whole objects."""
    async with live(cluster()) as it:
        await it.watch("job", "pod", attach=["deployment", "cronjob"]).synced()
        await it.watching(3)
        for path in (REPLICASETS, JOBS):
            for verb, kind in (("list", "PartialObjectMetadataList"), ("watch", "PartialObjectMetadata")):
                (asked,) = it.asked(verb, path)
                assert asked["headers"]["accept"] == f"application/json;as={kind};g=meta.k8s.io;v=v1,application/json"
        (pods,) = it.asked("list", PATHS["pods"])
        assert pods["headers"]["accept"] == "application/json"


async def test_the_name_of_a_job_needs_no_watch() -> None:
    """It is in the pods themselves."""
    async with live(cluster()) as it:
        job = it.watch("job", "pod", attach=["job"])
        await job.synced()
        it.check(job)
        assert any("pod_job_name" in text for text in works_of(job))
        assert {one["path"] for one in it.asked("list")} == {PATHS["pods"]}


async def test_pods_of_unknown_nodes_stay_until_nodes_have_been_listed() -> None:
    """D8: where nodes are refused, pods keep their targets without node labels; once they are listed, pods of others have none."""
    async with live(cluster(), pace=SMALL) as it:
        it.server.control.faults([{"path": PATHS["nodes"], "status": 403}])
        job = it.watch("job", "pod", dialect="prometheus", node=True)
        assert await job.synced()
        assert len(job.scrape_works()) == 5
        assert not any("node_name" in text.replace("pod_node_name", "") for text in works_of(job))
        it.server.control.faults(clear=True)
        await job.resync()
        await it.converge(job)
        assert len(job.scrape_works()) == 4
        it.put("nodes", node("nowhere"))
        await it.converge(job)
        it.delete("nodes", "n1")
        await it.converge(job)
        assert len(job.scrape_works()) == 3


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("namespaces", [(), ("default", "other")])
async def test_a_pod_of_another_namespace_is_seen_unless_namespaces_are_named(dialect: str, namespaces: tuple[str, ...]) -> None:
    """D45: where Prometheus discovers each of them for itself."""
    far = endpoints_of("far", {"p": "127.3.0.1"}, namespace="other")
    far["subsets"][0]["addresses"][0]["targetRef"]["namespace"] = "default"
    async with live({"pods": [pod("p", "127.3.0.1")], "endpoints": [far]}) as it:
        job = it.watch("job", "endpoints", dialect=dialect, namespaces=namespaces)
        await job.synced()
        it.check(job)
        seen = any("pod_uid" in text or "pod_name" in text for text in works_of(job))
        assert seen == (dialect == "victoriametrics" or not namespaces)


async def test_explain_tells_why_a_pod_has_no_target_in_a_dialect() -> None:
    """A finished pod in one of them, a pod of an unknown node in the other."""
    done = pod("done", "127.3.0.9", node="n0")
    done["status"]["phase"] = "Succeeded"
    async with live({**cluster(), "pods": [done, pod("lost", "127.3.8.1", node="nowhere")]}) as it:
        jobs = {dialect: it.watch(dialect, "pod", dialect=dialect, node=True) for dialect in DIALECTS}
        for job in jobs.values():
            await job.synced()
        reasons = {
            (dialect, name): (await job.explain("default", name))[0].reason for dialect, job in jobs.items() for name in ("done", "lost")
        }
        assert reasons["victoriametrics", "done"] == "the pod has finished: phase Succeeded"
        assert reasons["prometheus", "lost"].startswith("the node of the pod is not known")
        assert reasons["prometheus", "done"] == reasons["victoriametrics", "lost"] == ""


# ---- what a configuration means ----


def config(role: str = "pod", **more: Any) -> KubernetesSDConfig:
    return KubernetesSDConfig.from_dict({"role": role, "api_server": "http://127.0.0.1:1", **more})


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("node", {"node"}),
        ("pod", {"pod", "node"}),
        ("service", {"service"}),
        ("endpoints", {"pod", "service", "endpoints"}),
        ("endpointslices", {"pod", "service", "endpointslice"}),
        ("ingress", {"ingress"}),
    ],
)
def test_a_role_of_prometheus_allows_few_selectors(role: str, allowed: set[str]) -> None:
    """In the other dialect all; one of a role, too."""
    for selected in (*ROLES, "namespace"):
        one = config(role, selectors=[{"role": selected, "label": "a=b"}])
        group_key(one, "victoriametrics")
        if selected in allowed:
            group_key(one, "prometheus")
        else:
            with pytest.raises(ConfigError, match=rf"^selectors\[0\].role: in this dialect role {one.role} has "):
                group_key(one, "prometheus")
    twice = [{"role": "pod", "label": "a=b"}, {"role": "pod", "field": "spec.nodeName=n"}]
    with pytest.raises(ConfigError, match=r"^selectors\[1\].role: a second"):
        group_key(config("pod", selectors=twice), "prometheus")


def test_the_own_namespace_of_prometheus_is_one_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the other dialect it is for where no namespace is named; groups are shared by what comes of it."""
    (tmp_path / "namespace").write_text("mine\n")
    monkeypatch.setattr("fastdisco.discovery.own_namespace", partial(own_namespace, service_account=tmp_path))
    own = config(namespaces={"names": ["a"], "own_namespace": True})
    assert group_key(own, "prometheus") == group_key(config(namespaces={"names": ["mine", "a"]}), "victoriametrics")
    assert group_key(own, "victoriametrics") == group_key(config(namespaces={"names": ["a"]}), "prometheus")


# ---- relabeling ----


async def relabeled(objects: dict[str, list[Item]], *rules: RelabelConfig, dialect: str, role: str = "pod") -> list[dict[str, str]]:
    async with live(objects) as it:
        job = it.discovery.watch("j", it.config(role), relabel_configs=rules, dialect=dialect)
        await job.synced()
        return [dict(work) for work in job.scrape_works()]


LABELMAP = RelabelConfig("labelmap", regex="__meta_kubernetes_pod_label_(.+)")


@pytest.mark.parametrize(("dialect", "job"), [("victoriametrics", None), ("prometheus", "j")])
async def test_an_empty_label_is_copied_in_one_dialect_only(dialect: str, job: str | None) -> None:
    """D1: there it takes away what it is copied over."""
    (labels,) = await relabeled({"pods": [pod("a", "127.3.0.1", job="")]}, LABELMAP, dialect=dialect)
    assert labels.get("job") == job


@pytest.mark.parametrize(("dialect", "instance"), [("victoriametrics", "web.example.com:80"), ("prometheus", "web.example.com")])
async def test_instance_is_the_address_and_in_one_dialect_its_port(dialect: str, instance: str) -> None:
    """D37."""
    (labels,) = await relabeled(web(0), dialect=dialect, role="ingress")
    assert labels["instance"] == instance


@pytest.mark.parametrize(
    ("label", "value"),
    [("__address__", "127.3.0.1/metrics"), ("__scrape_interval__", "often"), ("__scrape_interval__", "0s"), ("__scrape_timeout__", "2m")],
)
async def test_what_prometheus_refuses_is_dropped_and_told(label: str, value: str) -> None:
    """D38, and durations that cannot be; in the other dialect these are targets."""
    rule = RelabelConfig("replace", target_label=label, replacement=value)
    assert len(await relabeled({"pods": [pod("a", "127.3.0.1")]}, rule, dialect="victoriametrics")) == 1
    async with live({"pods": [pod("a", "127.3.0.1")]}) as it:
        job = it.discovery.watch("j", it.config("pod"), relabel_configs=[rule], dialect="prometheus")
        await job.synced()
        assert job.scrape_works() == ()
        assert (job.status()["dropped"], job.status()["dropped_as_refused"]) == (1, 1)
        ((target,),) = [one.targets for one in await job.explain("default", "a")]
        assert value.removesuffix("s") in target.dropped or "is 0" in target.dropped


async def test_equal_targets_of_a_job_of_prometheus_are_one() -> None:
    """D41: by all labels that are left."""
    rules = [RelabelConfig("labeldrop", regex="__meta_.+"), RelabelConfig("replace", target_label="__address__", replacement="a:1")]
    assert len(await relabeled(web(3), *rules, dialect="prometheus")) == 1


async def test_both_dialects_have_their_own_outcomes_of_a_rule() -> None:
    """D44: a rule that jobs of both have is compiled for each."""
    rule = RelabelConfig("hashmod", ("__address__",), target_label="shard", modulus=1000)
    async with live({"pods": [pod("a", "127.3.0.1")], "services": [service()]}) as it:
        shards = []
        for dialect in DIALECTS:
            job = it.discovery.watch(dialect, it.config("pod"), relabel_configs=[rule], dialect=dialect)
            await job.synced()
            shards.append(job.scrape_works()[0]["shard"])
        assert shards == ["910", "471"]
