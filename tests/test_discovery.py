"""The public entry: which jobs share what, how long it lives, objects on demand, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import orjson
import pytest

from fastdisco import ApiError, ConfigError, DecodeError, Discovery, KubernetesSDConfig, Labels, NetworkError
from fastdisco._json import decode_object
from fastdisco.config import KINDS, ROLES
from fastdisco.discovery import group_key
from fastdisco.group_watcher import Pace
from fastdisco.synthetic import Cluster, Sizes, SyntheticServer

from .live import PATHS, PLURALS, GatedServer, Live, Work, live, pod, web
from .replay import Bytes, Server, response
from .rig import eventually

SHORT = Pace(linger_seconds=0.001)


def resources(it: Live) -> tuple[int, int, int]:
    """What a leak would show: tasks of ours, groups, and clients."""
    tasks = [task for task in asyncio.all_tasks() if task.get_name().startswith("fastdisco")]
    return len(tasks), len(it.discovery._groups), len(it.discovery._clients)


# ---- sharing ----


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"node": True}),
        ({}, {"namespace": True}),
        ({"namespaces": ["a", "b"]}, {"namespaces": ["b", "a", "b"]}),
        (
            {"selectors": [{"role": "pod", "label": "a=b"}, {"role": "pod", "label": "c=d"}]},
            {"selectors": [{"role": "pod", "label": "a=b,c=d"}]},
        ),
        (
            {"selectors": [{"role": "pod", "field": "spec.nodeName=n"}, {"role": "node", "label": "a=b"}]},
            {"selectors": [{"role": "node", "label": "a=b"}, {"role": "pod", "field": "spec.nodeName=n"}]},
        ),
    ],
    ids=["node metadata", "namespace metadata", "order of namespaces", "selectors of a role", "order of roles"],
)
async def test_jobs_with_the_same_requests_share_a_group(first: dict[str, Any], second: dict[str, Any]) -> None:
    """However they are written, and whatever they show."""
    async with live() as it:
        keys = {group_key(it.config("pod", **config)) for config in (first, second)}
        assert len(keys) == 1
        assert group_key(it.config("endpoints", **first)) in keys


@pytest.mark.parametrize(
    "other",
    [
        {"namespaces": ["a"]},
        {"selectors": [{"role": "pod", "label": "a=b"}]},
        {"selectors": [{"role": "pod", "field": "spec.nodeName=n"}]},
        {"api_server_timeout": "60s"},
        {"list_limit": 500},
        {"relist_interval": "1h"},
        {"bearer_token": "t"},
        {"tls_config": {"insecure_skip_verify": True}},
    ],
    ids=lambda other: next(iter(other)),
)
async def test_jobs_with_other_requests_have_a_group_of_their_own(other: dict[str, Any]) -> None:
    """Whatever changes a request or its timing parts them."""
    async with live() as it:
        assert group_key(it.config("pod")) != group_key(it.config("pod", **other))


async def test_selectors_narrow_every_request_of_their_resource() -> None:
    """The list and the watch, of joined resources too, and of no other resource."""
    async with live(web(3)) as it:
        selectors = [{"role": "pod", "label": "app=web"}, {"role": "pod", "field": "spec.nodeName=n1"}, {"role": "service", "label": "app"}]
        job = it.watch("job", "endpoints", selectors=selectors)
        await job.synced()
        await it.watching(3)
        for verb in ("list", "watch"):
            (pods,), (services,), (own,) = (it.asked(verb, PATHS[plural]) for plural in ("pods", "services", "endpoints"))
            assert pods["query"]["labelSelector"] == "app=web"
            assert pods["query"]["fieldSelector"] == "spec.nodeName=n1"
            assert services["query"]["labelSelector"] == "app"
            assert not {"labelSelector", "fieldSelector"} & set(own["query"])


async def test_a_group_watches_each_namespace_of_its_jobs() -> None:
    """One watcher a namespace and kind; what is cluster-wide once; counted by role."""
    async with live(web(3)) as it:
        jobs = [it.watch(role, role, namespaces=["b", "a", "default"], node=True, namespace=True) for role in ROLES]
        for job in jobs:
            await job.synced()
        it.check(*jobs)
        metrics = it.metrics()
        assert {kind: metrics[f"url_watchers{{{kind}}}"] for kind in KINDS} == {
            kind: 1 if kind in ("node", "namespace") else 3 for kind in KINDS
        }
        assert metrics["group_watchers"] == 1
        assert len(it.asked("list")) == 5 * 3 + 2


async def test_groups_of_one_server_share_a_session_and_groups_of_two_do_not() -> None:
    """And none sees the objects of another."""
    async with live(web(3)) as it, GatedServer(Cluster.of({"pods": [pod("far", "127.9.0.1")]})) as other:
        here = it.watch("here", "pod")
        narrow = it.watch("narrow", "pod", namespaces=["default"])
        far = it.discovery.watch("far", Live(other, it.discovery).config("pod"))
        for job in (here, narrow, far):
            await job.synced()
        it.check(here, narrow)
        assert [work["__address__"] for work in far.scrape_works()] == ["127.9.0.1:8080"]
        assert resources(it)[1:] == (3, 2)


# ---- jobs ----


async def test_a_name_in_use_is_an_error() -> None:
    """Until its job has stopped."""
    async with live(web(1)) as it:
        job = it.watch("job", "pod")
        with pytest.raises(ValueError, match="called 'job'"):
            it.watch("job", "service")
        await job.stop()
        again = it.watch("job", "service")
        await again.synced()
        assert it.discovery.jobs["job"] is again


async def test_mistakes_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that cannot be is no job: no name is taken, nothing is asked."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    async with live(web(1)) as it:
        with pytest.raises(ConfigError):
            it.discovery.watch("job", [it.config("pod"), KubernetesSDConfig.from_dict({"role": "pod"})])
        with pytest.raises(ConfigError, match="needs one"):
            it.discovery.watch("job", [])
        with pytest.raises(ConfigError, match="dialect"):
            it.discovery.watch("job", it.config("pod"), dialect="other")
        assert dict(it.discovery.jobs) == {}
        assert resources(it) == (0, 0, 0)
        assert it.asked() == []
    with pytest.raises(ConfigError, match="dialect"):
        Discovery(dialect="other")


async def test_an_object_is_got_from_the_cache_of_the_dialect_that_is_named() -> None:
    """What a configuration means depends on the dialect: here which namespaces, and so whose cache it is."""
    async with live(web(1)) as it:
        config = KubernetesSDConfig.from_dict(
            {"role": "pod", "api_server": it.server.url, "selectors": [{"role": "service", "label": "a=b"}]}
        )
        job = it.discovery.watch("job", config, dialect="victoriametrics")
        await job.synced()
        before = len(it.server.books.requests)
        assert await it.discovery.get_object(config, "pod", "default", "p000", dialect="victoriametrics") is not None
        assert len(it.server.books.requests) == before
        with pytest.raises(ConfigError, match=r"selectors\[0\].role"):
            await it.discovery.get_object(config, "pod", "default", "p000", dialect="prometheus")


async def test_a_closed_discovery_takes_no_more_jobs() -> None:
    """Its jobs have stopped, its sockets are closed; closing twice is no mistake."""
    async with live(web(1)) as it:
        job = it.watch("job", "pod")
        await job.synced()
        await it.discovery.close()
        await it.discovery.close()
        assert [change async for change in job.changes()] == []
        with pytest.raises(RuntimeError, match="closed"):
            it.watch("other", "pod")
        with pytest.raises(RuntimeError, match="closed"):
            await it.discovery.get_object(it.config("pod"), "pod", "default", "p000")
        async with asyncio.timeout(5):
            await eventually(lambda: it.server.books.open_sockets == 0)
        assert resources(it) == (0, 0, 0)


@pytest.mark.parametrize("moment", ["listing", "registering", "watching"])
async def test_closing_works_at_any_moment(moment: str) -> None:
    """Before the first list, in the middle of a pass, and while everything works."""
    async with live(web(300), pace=Pace(slice_seconds=0, batch_targets=1)) as it:
        if moment == "listing":
            it.server.hold("list", "/")
        registering = asyncio.Event()

        def make(labels: Labels) -> Work:
            registering.set()
            return Work(labels)

        job = it.watch("job", "endpoints", make)
        if moment == "registering":
            await registering.wait()
            assert not job.is_synced
        elif moment == "watching":
            await job.synced()
        await it.discovery.close()
        assert resources(it) == (0, 0, 0)


async def test_any_number_of_tasks_may_close() -> None:
    """All wait for the same end."""
    async with live(web(5)) as it:
        job = it.watch("job", "endpoints")
        await job.synced()
        await asyncio.gather(*(it.discovery.close() for _ in range(4)))
        assert resources(it) == (0, 0, 0)


@pytest.mark.parametrize("turns", range(12))
async def test_closing_goes_on_when_its_caller_is_cancelled(turns: int) -> None:
    """After any number of turns of the loop; whoever closes again waits for the rest."""
    async with live(web(5)) as it:
        job = it.watch("job", "endpoints")
        await job.synced()
        await it.watching(3)
        it.group._loads.want(("pod", "default", "ghost"))
        closing = asyncio.ensure_future(it.discovery.close())
        for _ in range(turns):
            await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        await it.discovery.close()
        assert resources(it) == (0, 0, 0)
        async with asyncio.timeout(5):
            await eventually(lambda: it.server.books.open_sockets == 0)


async def test_what_cut_a_close_short_does_not_keep_the_next_from_ending_it() -> None:
    """Also where it was not its caller that was cancelled, but the closing itself, as at the end of a loop."""
    async with live(web(5)) as it:
        job = it.watch("job", "endpoints")
        await job.synced()
        closing = asyncio.ensure_future(it.discovery.close())
        await asyncio.sleep(0)
        for task in asyncio.all_tasks():
            if task.get_name() == "fastdisco close":
                task.cancel()
        await asyncio.wait([closing])
        await it.discovery.close()
        assert resources(it) == (0, 0, 0)


# ---- reloads ----


async def test_a_hundred_reloads_leave_nothing_behind() -> None:
    """Jobs of all roles come and go, without a pause between: no task, no group, no socket and no request too many."""
    async with live(web(5)) as it:
        keeper = it.watch("keeper", "pod", Work, node=True, namespace=True)
        first = [it.watch(role, role) for role in ROLES]
        for job in (keeper, *first):
            await job.synced()
        await it.watching(7)
        tasks, requests, before = resources(it), len(it.asked()), keeper.scrape_works()
        version, strings = keeper.version, len(it.discovery._symbols)
        for _ in range(100):
            for role in ROLES:
                await it.discovery.jobs[role].stop()
            jobs = [it.watch(role, role) for role in ROLES]
            for job in jobs:
                await job.synced()
        it.check(keeper, *jobs)
        assert resources(it) == tasks
        assert (len(it.asked()), it.server.books.open_sockets) == (requests, 7)
        assert (keeper.scrape_works(), keeper.version) == (before, version)
        assert len(it.discovery._symbols) == strings
        assert len(it.group._subscribers) == 7


async def test_a_hundred_groups_come_and_go() -> None:
    """Each job has requests of its own, and nothing lingers: all is as before."""
    async with live(web(5), pace=SHORT) as it:
        for number in range(100):
            job = it.watch("job", "pod", namespaces=["default"], list_limit=number + 1)
            await job.synced()
            it.check(job)
            await job.stop()
        async with asyncio.timeout(5):
            await eventually(lambda: resources(it) == (0, 0, 0))
            await eventually(lambda: it.server.books.open_sockets == 0)
        assert len(it.asked("list")) >= 100
        assert it.metrics()["group_watchers"] == 0
        assert it.metrics()["objects_added_total{pod}"] == 500
        assert len(it.discovery._symbols) < 2000


async def test_a_client_is_there_until_the_last_of_its_groups_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one stops faster than another that nobody uses any more either: its watch ends by itself, and not as a failure."""
    async with live(web(5), pace=SHORT) as it:
        quick, slow = (it.watch(name, "pod", list_limit=number) for number, name in enumerate(("quick", "slow"), 1))
        for job in (quick, slow):
            await job.synced()
        loads = slow.subscribers[0][0]._loads
        reached, gate, stop = asyncio.Event(), asyncio.Event(), loads.stop

        async def held() -> None:
            reached.set()
            await gate.wait()
            await stop()

        monkeypatch.setattr(loads, "stop", held)
        await slow.stop()
        async with asyncio.timeout(5):
            await reached.wait()
            await quick.stop()
            await eventually(lambda: not it.discovery._groups and len(it.discovery._ending) == 1)
            clients = len(it.discovery._clients)
            gate.set()
            assert clients == 1
            await eventually(lambda: resources(it) == (0, 0, 0))


async def test_a_job_that_comes_while_its_group_stops_gets_a_new_one() -> None:
    """A group that has begun to stop is never handed out again."""
    async with live(web(5), pace=SHORT) as it:
        job = it.watch("job", "pod")
        await job.synced()
        old = it.group
        await job.stop()
        async with asyncio.timeout(5):
            await eventually(lambda: not it.discovery._groups)
        job = it.watch("job", "pod")
        assert it.group is not old
        await job.synced()
        it.check(job)


async def test_a_reload_that_adds_a_cluster_leaves_the_others_alone() -> None:
    """No change and no request for jobs that stay."""
    async with live(web(5)) as it, GatedServer(Cluster.of({"pods": [pod("far", "127.9.0.1")]})) as other:
        job = it.watch("job", "pod", Work)
        await job.synced()
        await it.watching(1)
        before, version, requests = job.scrape_works(), job.version, len(it.asked())
        far = it.discovery.watch("far", Live(other, it.discovery).config("pod"))
        await far.synced()
        await far.stop()
        assert (job.scrape_works(), job.version, len(it.asked())) == (before, version, requests)


async def test_a_server_that_never_answers_holds_up_its_own_jobs_only() -> None:
    """Each job is synced when its own requests are answered."""
    async with live(web(5)) as it, GatedServer(Cluster.of({})) as dead:
        dead.control.faults([{"hang": True}])
        stuck = it.discovery.watch("stuck", Live(dead, it.discovery).config("pod"))
        job = it.watch("job", "pod")
        await job.synced()
        it.check(job)
        assert not stuck.is_synced


# ---- objects on demand ----


@pytest.mark.parametrize("kind", KINDS)
async def test_an_object_is_the_same_from_the_cache_and_from_a_get(kind: str) -> None:
    """Nested as in the API, only what labels need; from the cache there is no request, a GET is counted."""
    async with live(web(2)) as it:
        name = {"pod": "p001", "node": "n1", "namespace": "default", "endpointslice": "web-1"}.get(kind, "web")
        namespace = "" if kind in ("node", "namespace") else "default"
        config = it.config("endpoints")
        by_get = await it.discovery.get_object(config, kind, namespace, name)
        assert by_get is not None
        assert by_get["metadata"]["name"] == name
        (request,) = it.asked()
        assert (request["verb"], request["path"]) == (
            "get", PATHS[PLURALS[kind]].replace("/v1/", f"/v1/namespaces/{namespace}/" if namespace else "/v1/") + f"/{name}"
        )  # fmt: skip
        assert it.metrics()[f"direct_object_loads_total{{{kind}}}"] == 1
        role = {"namespace": "pod"}.get(kind, kind)
        job = it.watch("job", role, namespace=True)
        await job.synced()
        it.server.books.clear()
        cached = await it.discovery.get_object(config, kind, namespace, name)
        assert dict(cached or {}) == dict(by_get)
        assert it.asked("get") == []
        assert it.metrics()[f"direct_object_loads_total{{{kind}}}"] == 1
        with pytest.raises(TypeError):
            by_get["metadata"] = {}  # type: ignore[index]


async def test_what_does_not_exist_is_none() -> None:
    """A 404 is an answer, and a miss."""
    async with live(web(2)) as it:
        for name in ("ghost", "..", "", "a/b"):
            assert await it.discovery.get_object(it.config("pod"), "pod", "default", name) is None
        assert it.metrics()["direct_object_load_misses_total{pod}"] == 4
        assert it.metrics()["direct_object_load_errors_total{pod}"] == 0


async def test_an_older_api_version_is_asked_second() -> None:
    """Where `v1` does not exist."""
    async with live(web(2), v1=False, v1beta1=True) as it:
        found = await it.discovery.get_object(it.config("pod"), "ingress", "default", "web")
        assert found is not None
        assert found["metadata"]["name"] == "web"


async def test_a_refusal_and_an_outage_are_raised() -> None:
    """They are no answer about the object; both are counted as errors."""
    async with live(web(2)) as it:
        config = it.config("pod")
        it.server.control.faults([{"status": 403, "message": "no"}])
        with pytest.raises(ApiError) as raised:
            await it.discovery.get_object(config, "pod", "default", "p000")
        assert raised.value.code == 403
        await it.server.close()
        with pytest.raises(NetworkError):
            await it.discovery.get_object(config, "pod", "default", "p000")
        assert it.metrics()["direct_object_load_errors_total{pod}"] == 2


async def test_an_answer_that_is_no_object_is_raised() -> None:
    """As a proxy's login page; it is counted as an error."""
    async with Server() as server, Discovery() as discovery:
        server.on("list", "/api/v1/namespaces/default/pods/p", Bytes(response(200, b"<html>please log in</html>")))
        with pytest.raises(DecodeError):
            await discovery.get_object(KubernetesSDConfig("pod", api_server=server.url), "pod", "default", "p")
        assert discovery.metrics.role("pod").direct_load_errors == 1


async def test_a_name_that_no_object_can_have_is_none() -> None:
    """Nothing can be asked about what UTF-8 cannot say."""
    async with live(web(1)) as it:
        for namespace, name in (("default", "\ud800"), ("\ud800", "p000")):
            assert await it.discovery.get_object(it.config("pod"), "pod", namespace, name) is None
        assert it.asked() == []


async def test_an_object_that_is_asked_for_while_all_closes_cannot_be_had() -> None:
    """Neither by the request under way nor by the next one: an outage, for whoever waits."""
    async with live(web(1), v1=False, v1beta1=True) as it:
        config = it.config("ingress")
        client = it.discovery._client(group_key(config).connection)
        await client.close()
        with pytest.raises(NetworkError):
            await it.discovery.get_object(config, "ingress", "default", "web")


async def test_an_unknown_kind_is_a_mistake() -> None:
    """Of whoever wrote it."""
    async with live() as it:
        with pytest.raises(ValueError, match="replicaset"):
            await it.discovery.get_object(it.config("pod"), "replicaset", "default", "x")


async def test_a_get_and_the_cache_read_the_same_fields() -> None:
    """Of every object of a made cluster, by the decoder alone."""
    async with live(web(3)) as it:
        jobs = [it.watch(role, role) for role in ROLES]
        for job in jobs:
            await job.synced()
        for kind in ROLES:
            for item in it.objects()[PLURALS[kind]]:
                metadata = item["metadata"]
                assert it.group.store.get(kind, metadata.get("namespace", ""), metadata["name"]) == decode_object(kind, orjson.dumps(item))


# ---- constructors that misbehave ----


async def test_a_constructor_may_start_and_stop_jobs_of_other_groups() -> None:
    """It runs on the loop, between two slices, and nothing of ours is held."""
    async with live(web(5), pace=SHORT) as it:
        started: list[Any] = []
        tasks: list[asyncio.Task[None]] = []

        def make(labels: Labels) -> Work:
            if not started:
                started.append(it.watch("inner", "service", Work, namespaces=["default"]))
                tasks.append(asyncio.ensure_future(other.stop()))
            return Work(labels)

        other = it.watch("other", "node", list_limit=1)
        await other.synced()
        job = it.watch("job", "pod", make)
        await job.synced()
        await started[0].synced()
        await tasks[0]
        it.check(job, started[0])


async def test_a_constructor_that_closes_the_discovery() -> None:
    """Everything ends in order, called from the middle of a pass."""
    async with live(web(50), pace=Pace(slice_seconds=0, batch_targets=1)) as it:
        closing: list[asyncio.Task[None]] = []

        def make(labels: Labels) -> Work:
            if not closing:
                closing.append(asyncio.ensure_future(it.discovery.close()))
            return Work(labels)

        job = it.watch("job", "pod", make)
        async with asyncio.timeout(5):
            await eventually(lambda: closing)
            await closing[0]
        assert job.status()["scrape_works"] == 0
        assert resources(it) == (0, 0, 0)


async def test_a_group_that_has_ended_leaves_nothing_to_the_garbage_collector() -> None:
    """Its objects go with it at once: a frozen collector would keep a whole cluster's memory."""
    gc.disable()
    try:
        cluster = Cluster.make(Sizes(pods=50))
        async with SyntheticServer(cluster) as server, Discovery(pace=Pace(linger_seconds=0.01)) as discovery:
            job = discovery.watch("endpoints", KubernetesSDConfig("endpoints", api_server=server.url))
            await job.synced()
            group = weakref.ref(next(iter(discovery._groups.values())))
            held = len(discovery._symbols) - discovery._symbols.set_aside
            await job.stop()
            await eventually(lambda: group() is None)
            assert len(discovery._symbols) - discovery._symbols.set_aside < held / 5
    finally:
        gc.enable()
