"""Objects that labels need and the cache lacks, loaded one by one: which, how often, how many at once."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from fastdisco.direct_loads import DirectLoads, Wanted
from fastdisco.errors import ApiError, DecodeError, NetworkError
from fastdisco.metrics import Metrics

from .live import Live, endpoints, endpointslice, live, node, pod, service, web
from .rig import eventually


class Loader:
    """A loader with a server that answers when the test says so."""

    def __init__(self, **options: Any) -> None:
        self.metrics = Metrics()
        self.now = 0.0
        self.fetching: dict[Wanted, asyncio.Future[bytes]] = {}
        self.asked: list[Wanted] = []
        self.delivered: list[tuple[Wanted, bytes]] = []
        self.here: set[Wanted] = set()
        self.loads = DirectLoads(self.fetch, self.here.__contains__, self.deliver, self.metrics, clock=lambda: self.now, **options)

    async def fetch(self, wanted: Wanted) -> bytes:
        self.asked.append(wanted)
        self.fetching[wanted] = asyncio.get_running_loop().create_future()
        return await self.fetching[wanted]

    def deliver(self, wanted: Wanted, body: bytes) -> None:
        if body == b"bad":
            raise DecodeError("bad")
        self.delivered.append((wanted, body))

    async def until_asked(self, count: int) -> None:
        async with asyncio.timeout(5):
            await eventually(lambda: len(self.asked) == count)

    async def answer(self, wanted: Wanted, answer: bytes | Exception) -> None:
        future = self.fetching.pop(wanted)
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
        async with asyncio.timeout(5):
            await eventually(lambda: wanted not in self.loads._under_way)

    def counts(self) -> tuple[int, int, int]:
        totals = self.metrics.role("pod")
        return totals.direct_loads, totals.direct_load_errors, totals.direct_load_misses


def wanted(number: int) -> Wanted:
    return ("pod", "default", f"p{number}")


async def test_at_most_eight_are_in_flight() -> None:
    """The others wait, in their order, for one to end."""
    it = Loader()
    for number in range(20):
        it.loads.want(wanted(number))
    await it.until_asked(8)
    assert it.asked == [wanted(number) for number in range(8)]
    await it.answer(wanted(3), b"{}")
    await it.until_asked(9)
    assert it.asked[-1] == wanted(8)
    await it.loads.stop()


async def test_what_came_by_itself_is_not_asked_for() -> None:
    """While it waited for its turn, its watch delivered it."""
    it = Loader(at_once=1)
    for number in range(3):
        it.loads.want(wanted(number))
    await it.until_asked(1)
    it.here.add(wanted(1))
    await it.answer(wanted(0), b"{}")
    await it.until_asked(2)
    assert it.asked == [wanted(0), wanted(2)]
    await it.loads.stop()


async def test_no_more_than_so_many_are_asked_for_in_a_minute() -> None:
    """However many pods go at once while something still names them: neither requests nor memory follow their number."""
    it = Loader(most=5)
    for number in range(20):
        it.loads.want(wanted(number))
    await it.until_asked(5)
    for number in range(5):
        await it.answer(wanted(number), ApiError(404))
    assert (len(it.asked), len(it.loads._known)) == (5, 5)
    it.now = 60.0
    it.loads.want(wanted(10))
    await it.until_asked(6)
    await it.loads.stop()


@pytest.mark.parametrize("answer", [b"{}", ApiError(404), ApiError(500), NetworkError("reset", "")])
async def test_an_object_is_asked_for_once_a_minute_however_it_ended(answer: bytes | Exception) -> None:
    """Neither while it is being loaded nor for a while after; other objects are."""
    it = Loader()
    for _ in range(3):
        it.loads.want(wanted(1))
    await it.until_asked(1)
    await it.answer(wanted(1), answer)
    it.now = 59.0
    it.loads.want(wanted(1))
    it.loads.want(wanted(2))
    await it.until_asked(2)
    assert it.asked == [wanted(1), wanted(2)]
    it.now = 60.0
    it.loads.want(wanted(1))
    await it.until_asked(3)
    await it.loads.stop()


@pytest.mark.parametrize(
    ("answer", "counts"),
    [
        (b"{}", (1, 0, 0)),
        (b"bad", (1, 1, 0)),
        (ApiError(404), (1, 0, 1)),
        (ApiError(403), (1, 1, 0)),
        (NetworkError("reset", ""), (1, 1, 0)),
    ],
)
async def test_loads_errors_and_misses_are_counted(answer: bytes | Exception, counts: tuple[int, int, int]) -> None:
    """A 404 is a miss and no error; what fails is not delivered and ends nothing."""
    it = Loader()
    it.loads.want(wanted(1))
    await it.until_asked(1)
    await it.answer(wanted(1), answer)
    assert it.counts() == counts
    assert it.delivered == ([(wanted(1), b"{}")] if answer == b"{}" else [])


async def test_nothing_is_delivered_after_stop() -> None:
    """What is in flight is given up, what waits is forgotten."""
    it = Loader(at_once=1)
    it.loads.want(wanted(1))
    it.loads.want(wanted(2))
    await it.until_asked(1)
    await it.loads.stop()
    assert it.fetching[wanted(1)].cancelled()
    assert (it.asked, it.delivered) == ([wanted(1)], [])


async def test_stopping_again_is_no_mistake() -> None:
    """At once, after a stop that was cancelled half way, and when all is over; what is wanted later is not asked for."""
    it = Loader(at_once=1)
    it.loads.want(wanted(1))
    await it.until_asked(1)
    cut_short = asyncio.ensure_future(it.loads.stop())
    await asyncio.sleep(0)
    cut_short.cancel()
    await asyncio.gather(it.loads.stop(), it.loads.stop())
    await it.loads.stop()
    it.loads.want(wanted(2))
    assert (it.asked, it.loads._under_way) == ([wanted(1)], {})


# ---- in a group ----


async def assert_nothing_is_loaded(it: Live) -> None:
    """What was wanted before has been asked for when this object has."""
    await it.discovery.get_object(it.config("pod"), "pod", "default", "barrier")
    assert [request["path"] for request in it.asked("get")] == ["/api/v1/namespaces/default/pods/barrier"]


async def hide_pods(it: Live) -> None:
    """The watch of pods goes deaf at the version that it has; as an API server that lags behind."""
    it.server.control.faults([{"path": "/api/v1/pods", "verb": "watch", "silent": True}])
    it.server.control.watches("/api/v1/pods", ending="end")
    await until_deaf(it, "/api/v1/pods")


async def until_deaf(it: Live, path: str) -> None:
    async with asyncio.timeout(5):
        await eventually(lambda: any(watch._silent for watch in it.server.watches if watch.path == path))


@pytest.mark.parametrize("role", ["endpoints", "endpointslice"])
async def test_a_pod_that_is_named_but_not_there_is_loaded_once(role: str) -> None:
    """Endpoints may know a pod before the watch of pods does: its targets have its labels all the same."""
    async with live(web(2)) as it:
        job = it.watch("job", role)
        await job.synced()
        await hide_pods(it)
        it.put("pods", pod("late", "127.3.9.9", app="late"))
        named = {"p000": "127.3.0.0", "late": "127.3.9.9"}
        it.put("endpoints", endpoints("web", named), endpoints("other", named))
        it.put("endpointslices", endpointslice("web-1", "web", named), endpointslice("other-1", "other", named))
        await it.converge(job)
        (asked,) = it.asked("get", "/api/v1/namespaces/default/pods")
        assert asked["path"].endswith("/pods/late")
        assert it.metrics()["direct_object_loads_total{pod}"] == 1


async def test_a_pod_that_the_first_list_lacks_is_loaded() -> None:
    """The list came from a cache that lagged behind: the job's first targets find the pod missing."""
    async with live(web(2)) as it:
        it.server.control.faults([{"path": "/api/v1/pods", "verb": "watch", "silent": True}])
        gate = it.server.hold("list", "/api/v1/endpoints")
        job = it.watch("job", "endpoints")
        await until_deaf(it, "/api/v1/pods")
        it.put("pods", pod("late", "127.3.9.9", app="late"))
        it.put("endpoints", endpoints("web", {"p000": "127.3.0.0", "late": "127.3.9.9"}))
        gate.set()
        await job.synced()
        await it.converge(job)


async def test_a_loaded_object_goes_when_its_watch_proves_it_gone() -> None:
    """The watch catches up: the pod came and went."""
    async with live(web(2)) as it:
        job = it.watch("job", "endpoints")
        await job.synced()
        await hide_pods(it)
        it.put("pods", pod("late", "127.3.9.9"))
        it.put("endpoints", endpoints("web", {"late": "127.3.9.9"}))
        await it.converge(job)
        it.delete("pods", "default/late")
        it.server.control.faults(clear=True)
        it.server.control.watches("/api/v1/pods", ending="end")
        await it.converge(job)
        assert it.group.store.get("pod", "default", "late") is None


async def test_a_loaded_object_that_no_list_has_goes() -> None:
    """Its watch proved it gone by a list."""
    async with live(web(2)) as it:
        job = it.watch("job", "endpoints")
        await job.synced()
        await hide_pods(it)
        it.put("pods", pod("late", "127.3.9.9"))
        it.put("endpoints", endpoints("web", {"late": "127.3.9.9"}))
        await it.converge(job)
        it.delete("pods", "default/late")
        await job.resync()
        await it.converge(job)


async def test_an_answer_that_its_watch_has_overtaken_is_not_taken() -> None:
    """The pod came and went while the answer was under way: taken, it would stay for ever."""
    async with live(web(2)) as it:
        job = it.watch("job", "endpoints")
        await job.synced()
        await hide_pods(it)
        it.put("pods", pod("late", "127.3.9.9"))
        (gone,) = [item for item in it.objects()["pods"] if item["metadata"]["name"] == "late"]
        it.put("endpoints", endpoints("web", {"late": "127.3.9.9"}))
        await it.converge(job)  # loaded
        it.delete("pods", "default/late")
        it.server.control.faults(clear=True)
        it.server.control.watches("/api/v1/pods", ending="end")
        await it.handled("pod", "default", "late", there=False)
        it.group._deliver(("pod", "default", "late"), orjson.dumps(gone))
        it.put("pods", pod("p000", "127.3.0.200"))
        await it.converge(job)
        assert it.group.store.get("pod", "default", "late") is None


async def test_a_pod_that_does_not_exist_is_asked_for_once_and_counted_as_a_miss() -> None:
    """However often something that names it is rendered."""
    async with live(web(2)) as it:
        job = it.watch("job", "endpoints")
        await job.synced()
        for version in "abc":
            it.put("endpoints", endpoints("web", {"ghost": "127.3.9.9"}, version=version))
            await it.converge(job)
        async with asyncio.timeout(5):
            await eventually(lambda: it.metrics().get("direct_object_load_misses_total{pod}") == 1)
        assert len(it.asked("get", "/api/v1/namespaces/default/pods/ghost")) == 1
        assert it.metrics()["direct_object_loads_total{pod}"] == 1


async def test_services_and_nodes_are_loaded_too() -> None:
    """Whatever labels need, not only pods."""
    async with live(web(2)) as it:
        job = it.watch("job", "endpoints", node=True)
        await job.synced()
        for plural in ("nodes", "services"):
            path = f"/api/v1/{plural}"
            it.server.control.faults([{"path": path, "verb": "watch", "silent": True}], add=True)
            it.server.control.watches(path, ending="end")
            await until_deaf(it, path)
        it.put("nodes", node("n9", zone="far"))
        it.put("services", service("new", app="new"))
        it.put("pods", pod("p9", "127.3.9.9", node="n9"))
        it.put("endpoints", endpoints("new", {"p9": "127.3.9.9"}))
        await it.converge(job)
        assert {request["path"] for request in it.asked("get")} >= {"/api/v1/nodes/n9", "/api/v1/namespaces/default/services/new"}


async def test_what_a_selector_leaves_out_is_not_loaded() -> None:
    """The user asked not to see it."""
    async with live(web(3)) as it:
        it.put("pods", pod("other", "127.3.9.9", app="other"))
        it.put("endpoints", endpoints("web", {"p000": "127.3.0.0", "other": "127.3.9.9"}))
        job = it.watch("job", "endpoints", selectors=[{"role": "pod", "label": "app=web"}])
        await job.synced()
        assert [work.get("__meta_kubernetes_pod_name") for work in job.scrape_works()] == ["p000", None]
        await assert_nothing_is_loaded(it)


async def test_what_lies_in_a_namespace_that_is_not_watched_is_not_loaded() -> None:
    """Nobody would tell when it goes."""
    objects = web(1)
    objects["pods"].append(pod("far", "127.3.9.9", namespace="far"))
    foreign = endpoints("web", {"far": "127.3.9.9"})
    foreign["subsets"][0]["addresses"][0]["targetRef"]["namespace"] = "far"
    objects["endpoints"] = [foreign]
    async with live(objects) as it:
        job = it.watch("job", "endpoints", namespaces=["default"])
        await job.synced()
        assert len(job.scrape_works()) == 1
        await assert_nothing_is_loaded(it)


async def test_nothing_is_loaded_before_the_list_is_complete() -> None:
    """The list will most likely bring it."""
    async with live(web(3)) as it:
        it.server.control.faults([{"path": "/api/v1/pods", "status": 403}])
        job = it.watch("job", "endpoints")
        await job.synced()
        assert len(job.scrape_works()) == 3
        await assert_nothing_is_loaded(it)


async def test_names_that_lead_elsewhere_are_never_asked_for_there() -> None:
    """Whoever may write endpoints must not choose what our credentials read."""
    async with live(web(1)) as it:
        job = it.watch("job", "endpoints")
        await job.synced()
        it.put("endpoints", endpoints("web", {"../../../secrets/s": "127.3.9.9", "..": "127.3.9.8", "x?limit=1": "127.3.9.7"}))
        await it.converge(job)
        async with asyncio.timeout(5):
            await eventually(lambda: it.metrics().get("direct_object_load_misses_total{pod}") == 3)
        targets = [request["target"] for request in it.asked("get")]
        assert sorted(targets) == [
            "/api/v1/namespaces/default/pods/..%2F..%2F..%2Fsecrets%2Fs",
            "/api/v1/namespaces/default/pods/x%3Flimit=1",
        ]
