"""A configuration that changes while it runs, on files as people have them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer

from fastdisco.errors import ConfigError
from fastdisco.sidecar import Service, ServiceOptions, make_app
from fastdisco.sidecar.loading import Options, load

from .live import live, pod
from .rig import eventually
from .service_rig import Exporting

NAMESPACES = [f"ns{number}" for number in range(50)]
PODS = [pod(f"p{number}", f"127.0.0.{number + 1}", namespace=name, app=f"a{number % 2}") for number, name in enumerate(NAMESPACES)]
KEEP = {"source_labels": ["__meta_kubernetes_pod_label_app"], "regex": "a1", "action": "keep"}


class Reloading(Exporting):
    """A service that has its jobs from a file."""

    file: Path

    def write(self, jobs: Mapping[str, Mapping[str, Any]], rules: Mapping[str, Sequence[Mapping[str, Any]]] = {}, **more: Any) -> None:
        """Jobs by name: what each has beside the role and the server."""
        scrape = [
            {
                "job_name": name,
                "kubernetes_sd_configs": [{"role": "pod", "api_server": self.live.server.url, **job}],
                "relabel_configs": list(rules.get(name, ())),
            }
            for name, job in jobs.items()
        ]
        self.file.write_bytes(orjson.dumps({"scrape_configs": scrape, **more}))

    def lists(self) -> Counter[str]:
        """Requests for lists and watches so far, by path."""
        return Counter(request["path"] for request in self.live.server.books.requests)


@asynccontextmanager
async def reloading(
    folder: Path, jobs: Mapping[str, Mapping[str, Any]], *, lifecycle: bool = True, **options: Any
) -> AsyncIterator[Reloading]:
    async with live({"pods": PODS}) as made:
        source = Options(folder / "jobs.yml")
        service = Service(made.discovery, ServiceOptions(**options), source)
        async with TestClient(TestServer(make_app(service, lifecycle=lifecycle))) as client:
            it = Reloading(made, service, client)
            it.file = source.file
            it.write(jobs)
            await service.start(load(source))
            await it.synced()
            try:
                yield it
            finally:
                await service.stop()


def each() -> dict[str, dict[str, Any]]:
    return {name: {"namespaces": {"names": [name]}} for name in NAMESPACES}


async def reload(it: Reloading, method: str = "POST") -> tuple[int, str]:
    async with it.client.request(method, "/-/reload") as answer:
        return answer.status, await answer.text()


async def test_a_reload_that_changes_one_of_fifty_jobs_asks_for_nothing_of_the_others(tmp_path: Path) -> None:
    """They keep their watches, their targets and what is known of them; the server's books have requests of the one only."""
    async with reloading(tmp_path, each()) as it:
        await it.live.watching(50)
        kept = {job.name: job for job in it.service.jobs}
        before = it.lists()
        jobs = each() | {"ns7": {"namespaces": {"names": ["ns7"]}, "selectors": [{"role": "pod", "label": "app=a1"}]}}
        it.write(jobs)
        assert await reload(it) == (200, "")
        await it.synced()
        assert set(it.lists() - before) == {"/api/v1/namespaces/ns7/pods"}
        assert {job.name for job in it.service.jobs if kept[job.name] is not job} == {"ns7"}
        assert len(await it.addresses("ns7")) == len(await it.addresses("ns8")) == 1


async def test_new_rules_send_no_request_and_targets_change_at_once_as_a_whole(tmp_path: Path) -> None:
    """Never is there an answer with some targets by the old rules and some by the new ones."""
    async with reloading(tmp_path, {"all": {}}) as it:
        await it.live.watching(1)
        before = it.lists()
        old = await it.addresses("all")
        it.write({"all": {}}, {"all": [KEEP]})
        reloaded = asyncio.create_task(reload(it, "PUT"))
        seen = [await it.addresses("all")]
        assert await reloaded == (200, "")
        seen.append(await it.addresses("all"))
        it.write({"all": {}}, {"all": [{**KEEP, "action": "drop"}]})
        assert await reload(it) == (200, "")
        seen.append(await it.addresses("all"))
        odd = [address for number, address in enumerate(sorted(old, key=lambda one: int(one.split(".")[3].split(":")[0]))) if number % 2]
        assert set(seen[1]) == set(odd)
        assert set(seen[2]) == set(old) - set(odd)
        assert seen[0] in (old, seen[1])
        assert it.lists() == before


async def test_no_answer_is_ever_short_of_targets_while_jobs_are_replaced(tmp_path: Path) -> None:
    """A job that is being stopped has none any more; who asks amid that gets those of the job that takes its place."""
    async with reloading(tmp_path, {"all": {}}) as it:
        polling = True

        async def poll() -> set[tuple[int, int]]:
            seen: set[tuple[int, int]] = set()
            while polling:
                status, _, groups = await it.get(f"/sd/all?labels={'final' if len(seen) % 2 else 'used'}")
                seen.add((status, len(groups)))
            return seen

        polls = [asyncio.create_task(poll()) for _ in range(8)]
        for number in range(30):
            it.write({"all": {"selectors": [{"role": "pod", "label": f"none!={number % 3}"}]}})
            assert (await reload(it))[0] == 200
            await asyncio.sleep(0.01)
        polling = False
        assert set().union(*await asyncio.gather(*polls)) == {(200, 50)}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "no valid YAML"),
        ('{"scrape_configs": [{"job_name": "a"}, {"job_name": "a"}]}', "'a'"),
        (None, "No such file"),
    ],
)
async def test_a_bad_configuration_leaves_the_one_before_running(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str | None, reason: str
) -> None:
    """It is told by the answer, in the log, once, and by a metric; the next good one is taken."""
    async with reloading(tmp_path, {"all": {}}) as it:
        it.file.unlink()
        if text is not None:
            it.file.write_text(text)
        for _ in range(2):
            status, answer = await reload(it)
            assert (status, answer.startswith("failed to reload the configuration: "), reason in answer) == (500, True, True)
        assert len([one for one in caplog.records if one.levelname == "ERROR"]) == 1
        assert len(await it.addresses("all")) == 50
        assert "fastdisco_sidecar_config_last_reload_successful 0.0" in (await it.get("/metrics"))[2]
        it.write({"all": {}, "more": {}})
        assert (await reload(it))[0] == 200
        await it.synced()
        assert len(await it.addresses("more")) == 50
        assert "fastdisco_sidecar_config_last_reload_successful 1.0" in (await it.get("/metrics"))[2]


async def test_a_job_that_cannot_be_run_here_changes_nothing(tmp_path: Path) -> None:
    """Also where others of the same file could be: all of a configuration is taken, or nothing."""
    async with reloading(tmp_path, {"all": {}}) as it:
        it.write({"all": {"namespaces": {"names": ["ns1"]}}, "bad": {"api_server": "", "role": "node"}})
        status, answer = await reload(it)
        assert status == 500
        assert "job bad: kubernetes_sd_configs[0]" in answer
        assert [job.name for job in it.service.jobs] == ["all"]
        assert len(await it.addresses("all")) == 50


async def test_files_that_change_are_read_again_where_that_is_asked_for(tmp_path: Path) -> None:
    """By what they contain: a file that is written again as it was is none that has changed."""
    async with reloading(tmp_path, {"all": {}}, auto_reload=0.01) as it:
        assert it.service.reload is not None
        first = it.service.reload.last_success
        it.file.write_bytes(it.file.read_bytes())
        await asyncio.sleep(0.1)
        assert it.service.reload.last_success == first
        it.write({"all": {}}, {"all": [KEEP]})
        async with asyncio.timeout(10):
            await eventually(lambda: it.service.discovery.jobs["all"].relabel_configs)
        assert len(await it.addresses("all")) == 25


async def test_a_file_that_is_again_what_it_was_is_a_good_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Though nothing is to be changed: the metric and the log must not speak of the mistake for ever."""
    caplog.set_level("INFO", "fastdisco")
    async with reloading(tmp_path, {"all": {}}, auto_reload=0.01) as it:
        reload = it.service.reload
        assert reload is not None
        first = reload.last_success
        it.file.rename(tmp_path / "good")  # as a whole, since it may be read at any moment
        async with asyncio.timeout(10):
            await eventually(lambda: not reload.successful)
            (tmp_path / "good").rename(it.file)
            await eventually(lambda: reload.successful)
        assert reload.last_success > first
        assert [one.getMessage() for one in caplog.records if one.getMessage().startswith("reloaded ")][-1:] == [
            f"reloaded {it.file}: jobs added 0, removed 0, replaced 0, relabeled 0, kept 1"
        ]
        assert len(await it.addresses("all")) == 50


async def test_reloading_by_a_request_may_be_forbidden(tmp_path: Path) -> None:
    """As it is on an address that other machines reach; a GET never reloads."""
    async with reloading(tmp_path, {"all": {}}, lifecycle=False) as it:
        status, text = await reload(it)
        assert (status, "--web.enable-lifecycle" in text) == (403, True)
        assert (await reload(it, "GET"))[0] == 405


def test_a_configuration_that_cannot_be_read_is_told_with_its_file(tmp_path: Path) -> None:
    """As at the start."""
    file = tmp_path / "jobs.yml"
    file.write_text("scrape_configs: [{job_name: a, kubernetes_sd_configs: [{role: pots}]}]")
    with pytest.raises(ConfigError, match=r"jobs\.yml: .*role"):
        load(Options(file))
