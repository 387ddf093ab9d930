"""Targets over HTTP, as a client gets them: what it is told when, and what it is never told."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import aiohttp
import orjson
import pytest
from yarl import URL

from fastdisco.configuration import Configuration
from fastdisco.errors import NotSynced
from fastdisco.sidecar.query import Query
from fastdisco.sidecar.snapshots import take

from . import live, reference
from .live import namespace, node
from .service_rig import exporting

M = "__meta_kubernetes_"
KEEP_WEB = {"source_labels": [f"{M}pod_label_app"], "regex": "web", "action": "keep"}


def pod(name: str, ip: str, **more: Any) -> live.Item:
    """With a uid of its own, else the server would give it any."""
    made = live.pod(name, ip, **more)
    return {**made, "metadata": {**made["metadata"], "uid": f"uid-{name}"}}


PODS = [
    pod("a", "127.0.0.1", app="web", team="x"),
    pod("b", "127.0.0.2", app="web", ports=(8080, 9090)),
    pod("c", "127.0.0.3", app="db"),
]


def groups(targets: list[dict[str, str]]) -> list[dict[str, Any]]:
    """In the form of http_sd: by address, without empty labels."""
    return [
        {"targets": [labels["__address__"]], "labels": {k: v for k, v in sorted(labels.items()) if v and k != "__address__"}}
        for labels in sorted(targets, key=lambda labels: labels["__address__"])
    ]


def discovered(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return groups(reference.targets("pod", {"pods": pods}))


async def test_a_job_exports_the_discovered_labels_of_the_targets_that_its_rules_keep() -> None:
    """The client's own rules run again on them. `targets` and `labels` are all that there is: Prometheus refuses anything else."""
    async with exporting({"pods": PODS}) as it:
        await it.start(it.job("web", rules=[KEEP_WEB, {"target_label": "__address__", "replacement": "elsewhere"}]))
        status, headers, found = await it.get("/sd/web")
        assert (status, headers["Content-Type"]) == (200, "application/json")
        assert found == discovered(PODS[:2])
        assert all(set(group) == {"targets", "labels"} for group in found)


async def test_parameters_choose_targets_and_labels() -> None:
    """Those that are dropped too; only labels that rules read; or the final ones, each target once."""
    async with exporting({"pods": PODS}) as it:
        same = {"target_label": "__address__", "replacement": "http://host:1/p?x=1"}
        rules: list[dict[str, Any]] = [KEEP_WEB, same, {"target_label": "__tmp_x", "replacement": "y"}]
        await it.start(it.job("web", rules=rules))
        assert (await it.get("/sd/web?dropped=include"))[2] == discovered(PODS)
        _, _, used = await it.get("/sd/web?labels=used")
        assert [group["labels"] for group in used] == [{f"{M}pod_label_app": "web"}] * 3
        _, _, every = await it.get("/sd/web?labels=used&dropped=include")
        assert [group["labels"] for group in every] == [{f"{M}pod_label_app": "web"}] * 3 + [{f"{M}pod_label_app": "db"}]
        _, _, final = await it.get("/sd/web?labels=final")
        labels = {
            "__metrics_path__": "/p", "__param_x": "1", "__scheme__": "http", "__scrape_interval__": "1m0s", "__scrape_timeout__": "10s",
            "instance": "host:1", "job": "web",
        }  # fmt: skip
        assert final == [{"targets": ["host:1"], "labels": labels}]
        for query in ("labels=some", "dropped=yes", "labels=final&dropped=include", "label=final"):
            assert (await it.get(f"/sd/web?{query}"))[0] == 400
        status, _, reason = await it.get("/sd?labels=final")
        assert (status, reason) == (400, "labels: means nothing without job\n")


@pytest.mark.parametrize("name", ["a/b", "a b", "ä%2F?#", "serviceMonitor/ns/name/0", "..", ".", "+", "a\nb", "\x00"])
async def test_a_job_may_be_called_anything(name: str) -> None:
    """In the path, percent-encoded, or as a parameter; the index has the URL."""
    async with exporting({"pods": PODS}) as it:
        await it.start(it.job(name))
        assert len((await it.get(f"/sd?job={quote(name, safe='')}"))[2]) == 4
        _, _, index = await it.get("/sd")
        (entry,) = index["jobs"]
        path = entry["url"].removeprefix(str(it.client.make_url("/")).rstrip("/"))
        # a client resolves dots in a path before it asks
        assert path == f"/sd{'?job=' if name in ('.', '..') else '/'}{quote(name, safe='')}"
        for url in (entry["url"], entry["url_with_dropped"]):
            async with aiohttp.ClientSession() as session, session.get(URL(url, encoded=True)) as answer:
                assert (answer.status, len(orjson.loads(await answer.read()))) == (200, 4)


@pytest.mark.parametrize("host", ["[", "x:99999999", "x:y", ""])
async def test_a_host_that_is_none_is_refused(host: str) -> None:
    """Whatever is asked for: URLs in answers are made of it."""
    async with exporting() as it:
        for path in ("/", "/sd", "/metrics"):
            assert (await it.get(path, Host=host))[0] == 400


async def test_jobs_with_the_same_configuration_have_one_url_for_all_their_targets() -> None:
    """A client that takes everything polls once for all of them."""
    async with exporting({"pods": PODS}) as it:
        await it.start(it.job("one"), it.job("two", rules=[KEEP_WEB]), it.job("nodes", "node"), it.job("three", namespace=True))
        await it.synced()
        _, _, index = await it.get("/sd")
        base = str(it.client.make_url("/sd/"))
        assert {job["job"]: job["url_with_dropped"].removeprefix(base) for job in index["jobs"]} == {
            "one": "one?dropped=include", "two": "one?dropped=include", "nodes": "nodes?dropped=include", "three": "three?dropped=include",
        }  # fmt: skip
        assert {job["job"]: (job["synced"], job["targets"]) for job in index["jobs"]} == {
            "one": (True, 4), "two": (True, 3), "nodes": (True, 0), "three": (True, 4),
        }  # fmt: skip
        before = it.service.exports.taken
        assert (await it.get("/sd/one?dropped=include"))[2] == (await it.get("/sd/two?dropped=include"))[2] == discovered(PODS)
        assert it.service.exports.taken == before + 1


async def test_a_request_before_the_first_sync_is_held_until_it_comes() -> None:
    """A client that is refused would wait for a whole interval, and one that is told of no targets would drop those it has."""
    async with exporting({"pods": PODS}) as it:
        gate = it.live.server.hold("list", "/api/v1/pods")
        await it.start(it.job("web"))
        asking = asyncio.create_task(it.get("/sd/web"))
        done, _ = await asyncio.wait([asking], timeout=0.1)
        assert not done
        gate.set()
        assert len((await asking)[2]) == 4


@pytest.mark.parametrize(("sync_wait", "headers"), [(0.01, {}), (50.0, {"X-Prometheus-Refresh-Interval-Seconds": "0.02"})])
async def test_a_sync_that_does_not_come_is_told_and_is_never_an_empty_list(sync_wait: float, headers: dict[str, str]) -> None:
    """503 with what is waited for, after the wait or half of the client's interval, whichever is shorter."""
    async with exporting({"pods": PODS}, sync_wait=sync_wait) as it:
        it.live.server.hold("list", "/api/v1/pods")
        await it.start(it.job("web"))
        status, answered, text = await it.get("/sd/web", **headers)
        assert (status, answered["Retry-After"]) == (503, "5")
        assert text == "job web has not synced yet: /api/v1/pods (listing): no answer so far\n"


async def test_an_unknown_job_is_not_found_and_a_removed_one_has_no_targets_for_a_while() -> None:
    """After a 404 clients keep what they have for ever, so a job that went says first that it has nothing."""
    async with exporting({"pods": PODS}) as it:
        await it.start(it.job("web"), it.job("other"))
        await it.synced()
        await it.service.jobs.apply(Configuration((it.job("other"),)))
        status, headers, found = await it.get("/sd/web")
        assert (status, headers["Content-Type"], found) == (200, "application/json", [])
        assert len(await it.addresses("other")) == 4
        assert (await it.get("/sd/none"))[0] == 404
        it.service.jobs._tombstone_seconds = 0.0
        await it.service.jobs.apply(Configuration(()))
        assert (await it.get("/sd/other"))[0] == 404
        await it.service.jobs.apply(Configuration((it.job("web"),)))
        assert len(await it.addresses("web")) == 4


async def test_no_targets_is_an_empty_list() -> None:
    """Where the server has said so; never null, never without a body."""
    async with exporting({"pods": PODS}) as it:
        await it.start(it.job("none", rules=[{"action": "drop", "source_labels": ["job"], "regex": ".*"}]))
        assert (await it.get("/sd/none"))[::2] == (200, [])


async def test_an_unchanged_answer_costs_nothing() -> None:
    """304 for who has it already: nothing is taken from the engine, and nothing rendered; its tag follows from the content alone."""
    async with exporting({"pods": PODS}) as it, exporting({"pods": PODS[::-1]}) as replica:
        await it.start(it.job("web"))
        await replica.start(replica.job("web"))
        tags = {}
        for query in ("", "?labels=used", "?labels=final", "?dropped=include"):
            for encoding in ("", "gzip"):
                _, headers, body = await it.get(f"/sd/web{query}", **{"Accept-Encoding": encoding})
                assert headers.get("Content-Encoding", "") == encoding
                assert headers["Vary"] == "Accept-Encoding"
                tags[query, encoding] = headers["ETag"]
                before = it.service.exports.taken, it.service.exports.rendered
                status, headers, nothing = await it.get(
                    f"/sd/web{query}", **{"Accept-Encoding": encoding, "If-None-Match": f'"x", W/{headers["ETag"]}'}
                )
                assert (status, headers["ETag"], nothing) == (304, tags[query, encoding], "")
                assert (it.service.exports.taken, it.service.exports.rendered) == before
                assert (await replica.get(f"/sd/web{query}", **{"Accept-Encoding": encoding}))[1]["ETag"] == tags[query, encoding]
                assert body
        assert len(set(tags.values())) == 6  # without rules all targets are kept: the content of two queries is the same


async def test_what_changes_is_exported_also_where_no_rule_looks_at_it() -> None:
    """A discovered label of the pod, of its node, of its namespace; and the tag changes with it."""
    async with exporting({"pods": PODS, "nodes": [node("n1")], "namespaces": [namespace()]}) as it:
        await it.start(it.job("web", rules=[KEEP_WEB, {"target_label": "x", "replacement": "y"}], node=True, namespace=True))
        await it.synced()
        tags = {(await it.get("/sd/web"))[1]["ETag"]}
        it.live.put("pods", pod("a", "127.0.0.1", app="web", team="changed"))
        it.live.put("nodes", node("n1", zone="changed"))
        it.live.put("namespaces", namespace("default", owner="changed"))
        wanted = {f"{M}pod_label_team": "changed", f"{M}node_label_zone": "changed", f"{M}namespace_label_owner": "changed"}
        async with asyncio.timeout(10):
            while True:
                _, headers, (first, *_) = await it.get("/sd/web")
                tags.add(headers["ETag"])
                if wanted.items() <= first["labels"].items():
                    break
        assert len(tags) > 1


async def test_many_clients_cost_one_rendering() -> None:
    """Within the limit the bytes are kept until the targets change."""
    async with exporting({"pods": PODS}) as it:
        await it.start(it.job("web"))
        await it.synced()
        answers = [await it.get("/sd/web") for _ in range(3)] + await asyncio.gather(*(it.get("/sd/web") for _ in range(50)))
        assert all(answer[2] == discovered(PODS) for answer in answers)
        assert (it.service.exports.taken, it.service.exports.rendered) == (1, 1)


@pytest.mark.parametrize("encoding", ["", "gzip"])
async def test_above_the_limit_those_who_ask_at_the_same_time_share_one_rendering(encoding: str) -> None:
    """Streamed, and nothing of it is kept; who comes later has it rendered again."""
    many = [pod(f"p{number}", "127.0.0.1", ports=(number + 1,), filler="x" * 60) for number in range(2000)]
    async with exporting({"pods": many}) as it:
        it.service.exports._limit = 100_000
        await it.start(it.job("web"))
        await it.synced()
        expected = discovered(many)
        answers = await asyncio.gather(*(it.get("/sd/web", **{"Accept-Encoding": encoding}) for _ in range(20)))
        assert all(len(answer[2]) == 2000 for answer in answers)
        assert sorted(answers[0][2], key=repr) == sorted(expected, key=repr)
        assert (it.service.exports.taken, it.service.exports.rendered) == (1, 1)
        assert ("Content-Length" in answers[0][1]) is (encoding == "")
        await it.get("/sd/web", **{"Accept-Encoding": encoding})
        assert (it.service.exports.taken, it.service.exports.rendered) == (2, 2)
        assert it.service.exports.kept == 0


async def test_the_newest_bodies_are_kept_within_the_limit() -> None:
    """In all; the one that nobody has asked for longest goes first."""
    async with exporting({"pods": PODS}) as it:
        await it.start(*(it.job(f"job{number}") for number in range(5)))
        await it.synced()
        size = int((await it.get("/sd/job0"))[1]["Content-Length"])
        it.service.exports._limit = 3 * size
        for number in (1, 2, 0, 3):
            await it.get(f"/sd/job{number}")
        assert it.service.exports.kept == 3 * size
        before = it.service.exports.rendered
        await it.get("/sd/job0")
        await it.get("/sd/job3")
        assert it.service.exports.rendered == before
        await it.get("/sd/job1")
        assert it.service.exports.rendered == before + 1


async def test_targets_stay_when_the_server_has_gone() -> None:
    """With their age; who would rather have none says how old is too old."""
    async with exporting({"pods": PODS}) as it, exporting({"pods": PODS}, max_staleness=0.001) as strict:
        for one in (it, strict):
            await one.start(one.job("web"))
            await one.synced()
            await one.live.server.__aexit__()
        assert len(await it.addresses("web")) == 4
        status, headers, _ = await it.get("/sd/web")
        assert (status, headers["X-Fastdisco-State"]) == (200, "live")
        assert int(headers["Age"]) >= 0
        assert (await strict.get("/sd/web"))[0] == 503


async def test_a_job_long_out_of_touch_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients see it in a header, and get the targets all the same."""
    monkeypatch.setattr("fastdisco.sidecar.http_sd.STALE_SECONDS", -1.0)
    async with exporting({"pods": PODS}) as it:
        await it.start(it.job("web"))
        assert (await it.get("/sd/web"))[1]["X-Fastdisco-State"] == "stale"


async def test_what_is_refused_is_named() -> None:
    """Targets of the other namespaces are served."""
    async with exporting({"pods": [*PODS, pod("d", "127.0.0.4", namespace="secret")]}) as it:
        it.live.server.control.faults(path="/api/v1/namespaces/secret/pods", status=403)
        await it.start(it.job("web", namespaces=["default", "secret"]))
        _, headers, found = await it.get("/sd/web")
        assert (len(found), headers["X-Fastdisco-Incomplete"]) == (4, "/api/v1/namespaces/secret/pods")


async def test_rules_that_share_targets_out_keep_all_of_them_here() -> None:
    """The operator's rules leave a target to every shard that has this label; the client's own run of them takes its part."""
    shard = [{"source_labels": ["__tmp_hash", "__tmp_disable_sharding"], "regex": "1;|.+;.+", "action": "keep"}]
    hashed = {"source_labels": ["__address__"], "target_label": "__tmp_hash", "modulus": 2, "action": "hashmod"}
    rules: list[dict[str, Any]] = [hashed, *shard]
    async with exporting({"pods": PODS}) as it:
        await it.start(it.job("web", rules=rules), it.job("one", rules=rules, disable_sharding=False))
        assert len(await it.addresses("web")) == 4
        assert 0 < len(await it.addresses("one")) < 4
        before = len(it.live.asked())
        await it.service.jobs.apply(Configuration((it.job("web", rules=rules), it.job("one", rules=rules))))
        assert len(await it.addresses("one")) == 4
        assert len(it.live.asked()) == before
        assert not [group for group in (await it.get("/sd/web?labels=final"))[2] if any("tmp" in name for name in group["labels"])]


async def test_each_job_has_the_labels_of_its_dialect() -> None:
    """Whatever that of the other jobs of the file; they share the watches."""
    async with exporting({"pods": PODS[:1]}) as it:
        await it.start(it.job("vm"), it.job("prometheus", dialect="prometheus"))
        await it.synced()
        assert len(it.live.asked("list")) == 1
        for job, dialect in (("vm", "victoriametrics"), ("prometheus", "prometheus")):
            expected = groups(reference.targets("pod", {"pods": PODS[:1]}, dialect=dialect))
            assert (await it.get(f"/sd/{job}"))[2] == expected
        _, _, final = await it.get("/sd/prometheus?labels=final")
        assert final[0]["labels"]["__scrape_interval__"] == "1m"


async def test_a_head_request_tells_all_but_the_targets() -> None:
    """Their length, their tag, their state."""
    async with exporting({"pods": PODS}) as it:
        await it.start(it.job("web"))
        _, expected, _ = await it.get("/sd/web")
        async with it.client.head("/sd/web", headers={"Accept-Encoding": ""}) as answer:
            assert (answer.status, await answer.read()) == (200, b"")
            assert {name: answer.headers[name] for name in ("ETag", "Content-Length", "Content-Type")} == {
                name: expected[name] for name in ("ETag", "Content-Length", "Content-Type")
            }


async def test_a_job_that_ends_gives_no_targets_rather_than_some() -> None:
    """What is taken of it amid that is thrown away: clients would drop what is missing."""
    many = [pod(f"p{number}", "127.0.0.1", ports=(number + 1,)) for number in range(3000)]
    async with exporting({"pods": many}) as it:
        for query in (Query(), Query("final")):
            await it.service.jobs.apply(Configuration((it.job("web"),)))
            await it.synced()
            job = it.service.discovery.jobs["web"]
            taking = asyncio.create_task(take(it.service.discovery.symbols, job, query))
            await asyncio.sleep(0)
            await job.stop()
            with pytest.raises(NotSynced):
                await taking
            with pytest.raises(NotSynced):
                await take(it.service.discovery.symbols, job, query)
            it.service.jobs.configuration = Configuration(())


async def test_a_request_amid_new_rules_is_held_until_all_targets_are_those_of_the_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else those that only the new ones keep would be missing for an interval."""
    async with exporting({"pods": PODS}) as it:
        await it.start(it.job("web", rules=[KEEP_WEB]))
        await it.synced()
        job = it.service.discovery.jobs["web"]
        ((group, subscriber),) = job.subscribers
        evaluate_again = group.evaluate_again
        with monkeypatch.context() as slow:
            slow.setattr(group, "evaluate_again", lambda one: setattr(one, "stale", True))
            job.reconfigure(relabel_configs=())
        asking = asyncio.create_task(it.get("/sd/web"))
        done, _ = await asyncio.wait([asking], timeout=0.1)
        assert not done
        evaluate_again(subscriber)
        assert len((await asking)[2]) == 4
