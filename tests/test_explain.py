"""`APIWatcher.explain`: what became of an object, rule by rule, or why there is no target of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fastdisco import APIWatcher, KubernetesSDConfig, RelabelConfig
from fastdisco.absence import why_no_target
from fastdisco.config import ROLES
from fastdisco.explanation import ExplainedTarget, Explanation
from fastdisco.group_watcher import Pace
from fastdisco.synthetic import Sizes

from . import reference
from .live import PATHS, PLURALS, Item, Live, endpoints, endpointslice, ingress, live, node, pod, reached, service, texts, web, works_of
from .rig import eventually

NAME = "__meta_kubernetes_pod_name"
APP = "__meta_kubernetes_pod_label_app"


async def started(it: Live, *configs: KubernetesSDConfig, rules: tuple[RelabelConfig, ...] | None = ()) -> APIWatcher:
    job = it.discovery.watch("job", configs, relabel_configs=rules)
    await job.synced()
    return job


async def explained(job: APIWatcher, name: str = "p000", namespace: str = "default") -> Explanation:
    """Of a job of one configuration."""
    (found,) = await job.explain(namespace, name)
    return found


def target(explanation: Explanation) -> ExplainedTarget:
    """The only one."""
    (only,) = explanation.targets
    return only


# ---- rule by rule ----


async def test_each_rule_shows_the_labels_before_and_after() -> None:
    """From the discovered labels, with the defaults, to what the scraper gets and what is stored with samples."""
    rules = (
        RelabelConfig("keep", (APP,), regex="web"),
        RelabelConfig("replace", (NAME,), target_label="pod"),
        RelabelConfig("replace", ("__address__",), target_label="__address__", regex="(.+):.+", replacement="$1:1"),
    )
    async with live(web(2)) as it:
        job = await started(it, it.config("pod"), rules=rules)
        found = await explained(job)
        assert (found.role, found.namespace, found.name, found.known, found.reason) == ("pod", "default", "p000", True, "")
        one = target(found)
        discovered = next(labels for labels in reference.targets("pod", it.objects()) if labels[NAME] == "p000")
        assert one.discovered == discovered
        assert [step.rule for step in one.rules] == list(rules)
        defaults = {"__metrics_path__": "/metrics", "__scheme__": "http", "__scrape_interval__": "1m0s", "__scrape_timeout__": "10s"}
        assert dict(one.rules[0].before) == discovered | defaults | {"job": "job"}
        assert [name for name, _ in one.rules[0].before] == sorted(dict(one.rules[0].before))
        assert one.rules[0].after == one.rules[0].before == one.rules[1].before
        assert one.rules[1].after == [*one.rules[1].before, ("pod", "p000")]
        assert dict(one.rules[2].after) == dict(one.rules[2].before) | {"__address__": "127.3.0.0:1"}
        assert one.dropped == ""
        assert one.labels == defaults | {"__address__": "127.3.0.0:1", "instance": "127.3.0.0:1", "job": "job", "pod": "p000"}
        assert one.stored == {"instance": "127.3.0.0:1", "job": "job", "pod": "p000"}
        assert texts([one.labels]) == [text for text in works_of(job) if "p000" in text]


async def test_the_rule_that_drops_is_the_last_that_is_shown() -> None:
    """By its number and action; it leaves nothing."""
    rules = [RelabelConfig("replace", target_label="a"), RelabelConfig("drop", (NAME,), regex="p000"), RelabelConfig("keep", (NAME,))]
    async with live(web(2)) as it:
        job = await started(it, it.config("pod"), rules=tuple(rules))
        one = target(await explained(job))
        assert (one.dropped, one.labels, one.stored, len(one.rules)) == ("rule 2: drop", {}, {}, 2)
        assert one.rules[1].after == []
        assert one.rules[1].before == one.rules[0].after
        assert target(await explained(job, "p001")).dropped == ""


@pytest.mark.parametrize(("rules", "dropped", "count"), [
    ([RelabelConfig("replace", target_label="__address__", replacement="")], "no address", 1),
    ([RelabelConfig("labelkeep", regex="__meta_.*")], "no label is left", 1),
    ([RelabelConfig("labeldrop", regex=".*"), RelabelConfig("replace", target_label="x", replacement="y")], "rule 1: labeldrop", 1),
    ([RelabelConfig("keep", if_=('{__meta_kubernetes_pod_label_app="other"}',))], "rule 1: keep", 1),
])  # fmt: skip
async def test_what_drops_a_target_without_a_rule_that_says_so(rules: list[RelabelConfig], dropped: str, count: int) -> None:
    """No address, no label, or an `if` that does not match."""
    async with live(web(1)) as it:
        job = await started(it, it.config("pod"), rules=tuple(rules))
        one = target(await explained(job))
        assert (one.dropped, one.labels, len(one.rules)) == (dropped, {}, count)
        assert job.scrape_works() == ()


async def test_without_rules_discovered_labels_are_final() -> None:
    """For None; an empty list of rules adds the defaults all the same."""
    async with live(web(1)) as it:
        job = await started(it, it.config("pod"), rules=None)
        one = target(await explained(job))
        assert (one.rules, one.labels, one.stored, one.dropped) == ((), one.discovered, {}, "")
        job.reconfigure(relabel_configs=[])
        one = target(await explained(job))
        assert (one.rules, one.stored) == ((), {"instance": "127.3.0.0:8080", "job": "job"})


async def test_new_rules_and_changed_objects_are_explained_at_once() -> None:
    """Whatever the works still are: what is explained is what is known now."""
    async with live(web(1), pace=Pace(batch_targets=1)) as it:
        job = await started(it, it.config("pod"), rules=(RelabelConfig("drop", (NAME,)),))
        job.reconfigure(relabel_configs=[RelabelConfig("keep", (NAME,))])
        assert target(await explained(job)).dropped == ""
        it.put("pods", pod("p000", "127.3.0.0", app="new", ports=(1, 2)))
        await reached(job, lambda works: len(works) == 2)
        assert [one.discovered[APP] for one in (await explained(job)).targets] == ["new"] * 2
        it.delete("pods", "default/p000")
        await reached(job, lambda works: not works)
        assert (await explained(job)).known is False


async def test_explaining_changes_nothing() -> None:
    """No request for what is known, no count, no version, however often."""
    async with live(web(3)) as it:
        job = await started(it, it.config("endpoints"), rules=(RelabelConfig("keep", (NAME,), regex="p001"),))
        await it.watching(3)
        before = (job.version, job.status(), job.scrape_works(), len(it.asked()), it.metrics())
        for _ in range(3):
            assert [one.dropped for one in (await explained(job, "web")).targets] == ["rule 1: keep", "", "rule 1: keep"]
        after = (job.version, job.status(), job.scrape_works(), len(it.asked()), it.metrics())
        assert before[:4] == after[:4]
        assert {name for name, value in after[4].items() if before[4][name] != value} <= {"objects_rendered_total{endpoints}"}


async def test_each_configuration_of_a_job_answers_for_itself() -> None:
    """In their order; a name may be that of objects of several roles."""
    async with live(web(2)) as it:
        job = await started(it, it.config("pod"), it.config("service"), it.config("endpoints", namespaces=["default"]))
        found = await job.explain("default", "web")
        answers = [(one.role, one.known, len(one.targets)) for one in found]
        assert answers == [("pod", False, 0), ("service", True, 1), ("endpoints", True, 2)]


@pytest.mark.parametrize("role", ROLES)
async def test_what_is_explained_is_what_the_job_has(role: str) -> None:
    """Of a made cluster: all objects together give the works and the discovered labels of the job."""
    rules = (
        RelabelConfig("drop", ("__address__",), regex=".*[02468]"),
        RelabelConfig("labelmap", regex="__meta_kubernetes_(.*_label_app|namespace|.*_name)"),
    )
    async with live(Sizes(pods=40, oddities=0.3)) as it:
        job = await started(it, it.config(role, node=True, namespace=True), rules=rules)
        kept: list[Any] = []
        discovered: list[Any] = []
        for item in it.objects()[PLURALS[role]]:
            found = await explained(job, item["metadata"]["name"], item["metadata"].get("namespace", ""))
            assert found.known
            assert bool(found.reason) is not bool(found.targets)
            discovered += [one.discovered for one in found.targets]
            kept += [one.labels for one in found.targets if not one.dropped]
        assert texts(discovered) == texts(reference.targets(role, it.objects(), ["node", "namespace"]))
        assert sorted(set(texts(kept))) == works_of(job)


# ---- why there is no target ----


def without(item: Item, *path: str) -> Item:
    """The object without what is there."""
    inner = item
    for step in path[:-1]:
        inner = inner[step]
    del inner[path[-1]]
    return item


def terminated(item: Item, *others: str) -> Item:
    """All containers of the pod, and init containers of these names, have terminated."""
    names = [container["name"] for container in item["spec"]["containers"]]
    item["spec"]["initContainers"] = [{"name": name, "image": "init"} for name in others]
    state = {"terminated": {"exitCode": 0}}
    item["status"]["containerStatuses"] = [{"name": name, "state": state} for name in names]
    item["status"]["initContainerStatuses"] = [{"name": name, "state": state} for name in others]
    return item


def phase(item: Item, text: str) -> Item:
    item["status"]["phase"] = text
    return item


ADDRESSES = {"p000": "127.3.0.0"}
ABSENT: list[tuple[str, Item, str]] = [
    ("node", without(node("x"), "status", "addresses"), "the node has no usable address"),
    ("node", node("x", ""), "the node has no usable address"),
    ("pod", without(pod("x", ""), "status"), "the pod has no IP address"),
    ("pod", pod("x", ""), "the pod has no IP address"),
    ("pod", phase(pod("x", "127.3.0.9"), "Succeeded"), "the pod has finished: phase Succeeded"),
    ("pod", phase(pod("x", "127.3.0.9"), "Failed"), "the pod has finished: phase Failed"),
    ("pod", without(pod("x", "127.3.0.9"), "spec", "containers"), "the pod has no container"),
    ("pod", terminated(pod("x", "127.3.0.9", ports=(1, 2)), "init"), "all containers have terminated: c1, c2, init"),
    ("service", service("x", ports=()), "the service has no port"),
    ("service", without(service("x"), "spec"), "the service has no port"),
    ("ingress", ingress("x", hosts=()), "the ingress has no rule"),
    ("ingress", without(ingress("x"), "spec"), "the ingress has no rule"),
    ("endpoints", without(endpoints("x", {}), "subsets"), "the endpoints have no address"),
    ("endpoints", endpoints("x", {}), "the endpoints have no address"),
    ("endpoints", endpoints("x", {"ghost": "127.3.0.0"}, ports=()), "no subset with addresses has a port"),
    ("endpointslice", endpointslice("x", "x", {"ghost": "127.3.0.0"}, ports=()), "the slice has no port"),
    ("endpointslice", endpointslice("x", "x", {}), "the slice has no address"),
]


@pytest.mark.parametrize(("role", "item", "reason"), ABSENT)
async def test_an_object_without_a_target_says_why(role: str, item: Item, reason: str) -> None:
    """It is read off the object."""
    async with live({PLURALS[role]: [item]}) as it:
        job = await started(it, it.config(role))
        assert job.scrape_works() == ()
        found = await explained(job, "x", item["metadata"].get("namespace", ""))
        assert (found.role, found.known, found.reason, found.targets) == (role, True, reason, ())


@pytest.mark.parametrize("role", ROLES)
def test_every_role_has_a_reason_for_the_emptiest_object(role: str) -> None:
    """Whatever is missing."""
    assert why_no_target(role, {})


# ---- what is not known ----


async def test_what_the_server_does_not_have() -> None:
    """It is asked; what can be no name is not asked for."""
    async with live(web(1)) as it:
        job = await started(it, it.config("pod"))
        for name, requests in (("ghost", 1), ("..", 1), ("", 1)):
            found = await explained(job, name)
            assert (found.known, found.reason, len(it.asked("get"))) == (False, "the API server has no such object", requests)


async def test_what_is_in_no_namespace_of_the_configuration() -> None:
    """No request could have brought it."""
    async with live(web(1)) as it:
        job = await started(it, it.config("pod", namespaces=["other", "more"]))
        found = await explained(job)
        assert (found.known, found.reason) == (False, "namespace default is not among those of the configuration")
        assert it.asked("get") == []


async def test_a_name_that_its_kind_cannot_have() -> None:
    """Nodes are in no namespace, all else is in one."""
    async with live(web(1)) as it:
        job = await started(it, it.config("node"), it.config("pod"))
        found = await job.explain("default", "n1")
        assert (found[0].known, found[0].reason) == (False, "a node is in no namespace")
        found = await job.explain("", "p000")
        assert (found[1].known, found[1].reason) == (False, "a pod is in a namespace")


@pytest.mark.parametrize(("selectors", "text"), [
    ([{"role": "pod", "label": "app=db"}], "app=db"),
    ([{"role": "pod", "field": "spec.nodeName=n9"}], ";spec.nodeName=n9"),
    ([{"role": "pod", "label": "app=db", "field": "spec.nodeName=n9"}, {"role": "pod", "label": "x"}], "app=db,x;spec.nodeName=n9"),
])  # fmt: skip
async def test_what_a_selector_leaves_out(selectors: list[dict[str, str]], text: str) -> None:
    """As it is sent; the object is known to the server."""
    async with live(web(1)) as it:
        job = await started(it, it.config("pod", selectors=selectors))
        found = await explained(job)
        assert (found.known, found.reason) == (True, f"the selector {text} leaves it out")
        assert (await explained(job, "ghost")).reason == "the API server has no such object"


async def test_a_selector_of_another_role_leaves_nothing_out() -> None:
    """It narrows what is joined only."""
    async with live(web(2)) as it:
        job = await started(it, it.config("endpoints", selectors=[{"role": "pod", "label": "app=db"}]))
        assert len((await explained(job, "web")).targets) == 2
        await job.stop()
        selectors = [{"role": "node", "label": "zone=a"}, {"role": "pod", "label": "app=db"}]
        job = await started(it, it.config("pod", node=True, selectors=selectors))
        assert (await explained(job)).reason == "the selector app=db leaves it out"


async def test_what_the_server_refuses_to_list_or_to_show() -> None:
    """Each is told as it is."""
    async with live(web(1)) as it:
        it.server.control.faults([{"path": PATHS["pods"], "verb": "list", "status": 403, "message": "no lists"}])
        job = await started(it, it.config("service"), it.config("pod"))
        found = (await job.explain("default", "p000"))[1]
        assert (found.known, found.reason) == (True, f"the API server refuses {PATHS['pods']}: status code 403: no lists")
        it.server.control.faults([{"verb": "get", "status": 403, "message": "nothing"}])
        found = (await job.explain("default", "p000"))[1]
        assert (found.known, found.reason) == (False, "the API server refuses to show it: status code 403: nothing")


async def test_a_server_that_cannot_be_asked() -> None:
    """What is known is explained all the same."""
    async with live(web(1)) as it:
        job = await started(it, it.config("pod"))
        await it.server.close()
        found = await explained(job, "ghost")
        assert found.known is False
        assert found.reason.startswith("it is not known, and the API server cannot be asked: ")
        assert target(await explained(job)).dropped == ""


async def test_before_the_first_list_nothing_is_known_here() -> None:
    """The server is asked whether there is such an object."""
    async with live(web(1)) as it:
        gate = it.server.hold("list", PATHS["pods"])
        job = it.discovery.watch("job", it.config("pod"), relabel_configs=())
        await eventually(lambda: it.server.held)
        found = await explained(job)
        assert (found.known, found.reason) == (True, "its watch has not brought it yet")
        gate.set()
        await job.synced()
        assert target(await explained(job)).dropped == ""


async def test_a_job_that_stops_while_it_explains() -> None:
    """The answer comes, or is empty."""
    async with live(web(1)) as it:
        job = await started(it, it.config("pod"), it.config("service"))
        gate = it.server.hold("get", "/")
        asking = asyncio.ensure_future(job.explain("default", "web"))
        await eventually(lambda: it.server.held)
        await job.stop()
        gate.set()
        assert [(one.role, one.known) for one in await asking] == [("pod", False), ("service", True)]
        assert await job.explain("default", "web") == ()


async def test_an_older_api_version_is_asked_where_the_server_has_no_other() -> None:
    """As for every other request of the group."""
    async with live(web(1), v1=False, v1beta1=True) as it:
        job = await started(it, it.config("ingress", selectors=[{"role": "ingress", "label": "no=such"}]))
        found = await explained(job, "web")
        assert (found.known, found.reason) == (True, "the selector no=such leaves it out")
