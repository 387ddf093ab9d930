"""A discovery for synchronous programs."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fastdisco import ConfigError, Discovery, KubernetesSDConfig, Labels, NotSynced, RelabelConfig, TargetDefaults
from fastdisco.synthetic import SyntheticProcess
from fastdisco.thread import DiscoveryThread


@pytest.fixture(scope="module")
def server() -> Iterator[SyntheticProcess]:
    with SyntheticProcess(pods=50, oddities=0.0) as running:
        yield running


@pytest.fixture
def config(server: SyntheticProcess) -> KubernetesSDConfig:
    return KubernetesSDConfig("pod", api_server=server.url)


@pytest.fixture
def discovery() -> Iterator[DiscoveryThread]:
    with Discovery.run_in_thread() as running:
        yield running


def test_a_synchronous_program_gets_works_and_changes(
    server: SyntheticProcess, discovery: DiscoveryThread, config: KubernetesSDConfig
) -> None:
    """The same methods block: sync, a snapshot of works, changes as they come, an object."""
    job = discovery.watch("pods", config, lambda labels: labels["__meta_kubernetes_pod_name"])
    assert job.synced(timeout=60) == ()
    works = job.scrape_works()
    assert len(works) == 150
    changes = job.changes()
    assert next(changes).works == works
    namespace, pod = next(iter(_pods(server)))
    server.delete("pods", f"{namespace}/{pod}")
    assert [next(changes).work for _ in range(3)] == [pod] * 3
    assert len(works) == 150
    assert len(job.scrape_works()) == 147
    assert discovery.get_object(config, "pod", namespace, pod) is None
    assert discovery.status()["jobs"]["pods"]["scrape_works"] == 147


def test_constructors_run_on_the_discovery_thread_and_may_use_it(discovery: DiscoveryThread, config: KubernetesSDConfig) -> None:
    """Plain methods, stop and resync work there; what would wait for itself is refused; the engine goes on."""
    threads: set[str] = set()
    refused: list[RuntimeError] = []
    started: list[Any] = []

    def construct(labels: Labels) -> Labels:
        threads.add(threading.current_thread().name)
        if not started:
            started.append(discovery.watch("second", config))
            started[0].resync()
            try:
                started[0].synced()
            except RuntimeError as error:
                refused.append(error)
        return labels

    first = discovery.watch("first", config, construct)
    first.synced(timeout=60)
    started[0].synced(timeout=60)
    assert threads == {"fastdisco"}
    assert len(refused) == 1
    assert started[0].scrape_works() == first.scrape_works()


def test_a_job_that_stops_itself_in_its_constructor(discovery: DiscoveryThread, config: KubernetesSDConfig) -> None:
    """Stopping on the loop's thread is begun, not waited for; whoever waits for the sync is told."""
    jobs: list[Any] = []
    ready = threading.Event()

    def construct(labels: Labels) -> Labels:
        ready.wait(60)
        jobs[0].stop()
        return labels

    jobs.append(discovery.watch("short", config, construct))
    ready.set()
    with pytest.raises(NotSynced):
        jobs[0].synced(timeout=60)
    other = discovery.watch("other", config)
    other.synced(timeout=60)
    assert len(other.scrape_works()) > 0


def test_changes_end_when_the_job_stops(discovery: DiscoveryThread, config: KubernetesSDConfig) -> None:
    """A reader in another thread does not hang."""
    job = discovery.watch("pods", config)
    seen: list[str] = []
    first = threading.Event()

    def read() -> None:
        for change in job.changes():
            seen.append(change.kind)
            first.set()

    reader = threading.Thread(target=read)
    reader.start()
    assert first.wait(60)
    job.stop()
    reader.join(60)
    assert not reader.is_alive()
    assert seen == ["snapshot"]


def test_after_close_everything_is_refused(config: KubernetesSDConfig) -> None:
    """No call can hang on a loop that is gone; labels stay readable on any thread."""
    discovery = Discovery.run_in_thread()
    job = discovery.watch("pods", config)
    job.synced(timeout=60)
    labels = job.scrape_works()[0]
    discovery.close()
    discovery.close()
    with pytest.raises(RuntimeError):
        job.scrape_works()
    with pytest.raises(RuntimeError):
        discovery.watch("more", config)
    assert labels["__address__"]


def test_after_close_nothing_is_left_to_stop(config: KubernetesSDConfig) -> None:
    """Stopping and listing again do nothing, and readers have read all, also those that were between two changes."""
    discovery = Discovery.run_in_thread()
    job = discovery.watch("pods", config)
    changes = job.changes()
    assert next(changes).kind == "snapshot"
    discovery.close()
    job.stop()
    job.resync()
    assert list(changes) == []
    assert list(job.changes()) == []


def test_any_number_of_threads_may_close(config: KubernetesSDConfig) -> None:
    """Each returns when all has ended."""
    discovery = Discovery.run_in_thread()
    discovery.watch("pods", config).synced(timeout=60)
    together = threading.Barrier(8)

    def close() -> None:
        together.wait(60)
        discovery.close()

    with ThreadPoolExecutor(8) as threads:
        for closed in [threads.submit(close) for _ in range(8)]:
            closed.result(60)
    assert not discovery._thread.is_alive()


def test_closing_on_the_thread_itself_is_begun(config: KubernetesSDConfig) -> None:
    """Other threads that close wait for its end."""
    discovery = Discovery.run_in_thread()
    begun = threading.Event()

    def construct(_: Labels) -> None:
        discovery.close()
        begun.set()

    discovery.watch("pods", config, construct)
    assert begun.wait(60)
    discovery.close()
    assert not discovery._thread.is_alive()


class Stuck:
    """A discovery that never gets an answer."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    async def get_object(self, *_: Any, **__: Any) -> None:
        self.asked.set()
        await asyncio.get_running_loop().create_future()

    async def close(self) -> None: ...


def test_whoever_waits_when_it_closes_is_told(config: KubernetesSDConfig) -> None:
    """A call that would have no end in another thread gets the same error as one that comes later."""
    stuck = Stuck()
    discovery = DiscoveryThread(lambda: stuck)  # type: ignore[arg-type, return-value]
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(discovery.get_object, config, "pod", "default", "p")
        assert stuck.asked.wait(60)
        discovery.close()
        with pytest.raises(RuntimeError, match="the discovery is closed"):
            waiting.result(60)
    with pytest.raises(RuntimeError, match="the discovery is closed"):
        discovery.get_object(config, "pod", "default", "p")


def test_rules_and_explanations_are_there_too(server: SyntheticProcess, discovery: DiscoveryThread, config: KubernetesSDConfig) -> None:
    """Relabeled works, new rules from the cache, a rule that makes no sense, and what became of an object."""
    namespace, name = next(_pods(server))
    keep = RelabelConfig("keep", ("__meta_kubernetes_pod_name",), regex=name)
    one_port = RelabelConfig("keep", ("__meta_kubernetes_pod_container_port_name",), regex="http")
    job = discovery.watch("pods", config, relabel_configs=[keep, one_port], target_defaults=TargetDefaults(metrics_path="/probe"))
    job.synced(timeout=60)
    (labels,) = job.scrape_works()
    assert (labels["job"], labels["__metrics_path__"]) == ("pods", "/probe")
    (found,) = job.explain(namespace, name)
    assert sorted(target.dropped for target in found.targets)[:2] == ["", "rule 2: keep"]
    assert [target.labels for target in found.targets if not target.dropped] == [labels]
    changes = job.changes()
    assert next(changes).works == (labels,)
    with pytest.raises(ConfigError, match=r"^relabel_configs\[0\]\.modulus: missing"):
        job.reconfigure(relabel_configs=[RelabelConfig("hashmod", ("a",), target_label="b")])
    job.reconfigure(relabel_configs=[keep])
    assert {next(changes).kind for _ in range(2)} == {"added"}
    assert labels in job.scrape_works()
    (found,) = job.explain(namespace, "ghost")
    assert (found.known, found.reason) == (False, "the API server has no such object")
    assert job.status()["dropped_by_rule"] == [3 * (len(list(_pods(server))) - 1)]


def test_explaining_in_a_constructor_is_refused(discovery: DiscoveryThread, config: KubernetesSDConfig) -> None:
    """It may have to ask the server, and would wait for its own thread; new rules are taken there."""
    refused: list[RuntimeError] = []
    jobs: list[Any] = []
    ready = threading.Event()

    def construct(labels: Labels) -> Labels:
        ready.wait(60)
        if not refused:
            try:
                jobs[0].explain("default", "a")
            except RuntimeError as error:
                refused.append(error)
            jobs[0].reconfigure(relabel_configs=[RelabelConfig("replace", target_label="__address__", replacement="127.0.0.1:1")])
        return labels

    jobs.append(discovery.watch("pods", config, construct, relabel_configs=()))
    ready.set()
    jobs[0].synced(timeout=60)
    assert len(refused) == 1
    assert [work["instance"] for work in jobs[0].scrape_works()] == ["127.0.0.1:1"]


def test_a_mistake_in_the_options_is_raised_to_the_caller() -> None:
    """And leaves no thread behind."""
    before = threading.active_count()
    with pytest.raises(ValueError, match="dialect"):
        Discovery.run_in_thread(dialect="nonsense")
    assert threading.active_count() == before


def _pods(server: SyntheticProcess) -> Iterator[tuple[str, str]]:
    import orjson

    _, body = server.request("GET", "/api/v1/pods")
    for item in orjson.loads(body)["items"]:
        yield item["metadata"]["namespace"], item["metadata"]["name"]


def test_jobs_and_what_their_rules_drop(discovery: DiscoveryThread, config: KubernetesSDConfig) -> None:
    """As the asynchronous discovery tells them."""
    rule = RelabelConfig("keep", ("__meta_kubernetes_pod_container_port_name",), regex="http")
    job = discovery.watch("http", config, relabel_configs=[rule])
    job.synced(timeout=60)
    assert list(discovery.jobs) == ["http"]
    assert discovery.jobs["http"].scrape_works() == job.scrape_works()
    everything = discovery.watch("all", config)
    everything.synced(timeout=60)
    assert discovery.dropped_counts() == {"http": len(everything.scrape_works()) - len(job.scrape_works())}
