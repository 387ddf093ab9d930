"""Whether it runs and whether it is ready, and what its metrics say of each job's export."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fastdisco.configuration import Configuration
from fastdisco.sidecar.web_config import WebConfig

from .live import pod
from .rig import eventually
from .service_rig import Exporting, exporting

PODS = [pod("a", "127.0.0.1", app="web"), pod("b", "127.0.0.2", app="db", ports=(8080, 9090))]
KEEP = {"source_labels": ["__meta_kubernetes_pod_label_app"], "regex": "web", "action": "keep"}


async def ready(it: Exporting, query: str = "") -> tuple[int, str]:
    status, _, text = await it.get(f"/-/ready{query}")
    return status, text


async def exposed(it: Exporting) -> dict[str, float]:
    """By name and values of labels."""
    _, _, text = await it.get("/metrics")
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.startswith("fastdisco_sidecar_"):
                name = sample.name.removeprefix("fastdisco_sidecar_")
                found[f"{name}{{{','.join(value for _, value in sorted(sample.labels.items()))}}}"] = sample.value
    return found


async def test_it_is_ready_when_each_job_has_a_definite_answer() -> None:
    """A sync, or a refusal, for which a rollout would wait for ever; `?job=` asks whether that one has synced."""
    async with exporting({"pods": PODS}) as it:
        gate = it.live.server.hold("list", "/api/v1/pods")
        it.live.server.control.faults(path="/api/v1/nodes", status=403)
        await it.start(it.job("web"), it.job("nodes", "node"))
        assert (await it.get("/-/healthy"))[0] == 200
        async with asyncio.timeout(10):
            await eventually(lambda: it.service.discovery.jobs["nodes"].is_settled)
        assert await ready(it) == (503, "fastdisco is not ready: not synced yet: web.\n")
        gate.set()
        await it.service.discovery.jobs["web"].synced()
        assert await ready(it) == (200, "fastdisco is ready.\n")
        assert await ready(it, "?job=web") == (200, "fastdisco is ready.\n")
        assert await ready(it, "?job=nodes") == (503, "fastdisco is not ready: not synced yet: nodes.\n")
        assert (await ready(it, "?job=none"))[0] == 404


async def test_a_job_is_not_settled_before_its_targets_are_there() -> None:
    """Its list alone is no answer: they are yet to be made of it."""
    async with exporting({"pods": [pod(f"p{number}", "127.0.0.1") for number in range(3000)]}) as it:
        await it.start(it.job("web"))
        (job,) = it.service.jobs
        ((group, _),) = job.subscribers
        between = 0
        async with asyncio.timeout(10):
            while not job.is_synced:
                assert not job.is_settled
                between += group.listed("pod")
                await asyncio.sleep(0)
        assert job.is_settled
        assert between


async def test_each_job_has_its_metrics() -> None:
    """Targets, drops by rule, polls by kind of client, requests by code, bytes; those of a job that has gone go with it."""
    async with exporting({"pods": PODS}) as it:
        await it.start(it.job("web", rules=[{"target_label": "x", "replacement": "y"}, KEEP]), it.job("other"))
        await it.synced()
        _, headers, _ = await it.get("/sd/web", **{"User-Agent": "Prometheus/3.16.0"})
        await it.get("/sd/web", **{"User-Agent": "vm_promscrape", "If-None-Match": headers["ETag"]})
        await it.get("/sd/web?labels=x")
        await it.get("/sd/none")
        found = await exposed(it)
        assert (found["targets{web}"], found["targets{other}"], found["synced{web}"]) == (1, 3, 1)
        assert found["dropped_targets_total{web,2}"] == 2
        assert {name: found[name] for name in found if name.startswith("http_sd_requests")} == {
            "http_sd_requests_total{200,web}": 1, "http_sd_requests_total{304,web}": 1, "http_sd_requests_total{400,web}": 1,
            "http_sd_requests_total{404,}": 1,
        }  # fmt: skip
        assert found["http_sd_body_bytes_total{web}"] == int(headers["Content-Length"])
        polls = [found[f"http_sd_last_success_timestamp_seconds{{{client},web}}"] for client in ("prometheus", "vmagent")]
        assert polls[0] <= polls[1]
        assert 0 < found["last_change_timestamp_seconds{web}"] <= polls[0]
        assert found["last_contact_timestamp_seconds{web}"] > 0
        assert found["refused_paths{web}"] == 0
        await it.service.jobs.apply(Configuration((it.job("other"),)))
        assert await it.addresses("web") == []
        assert not [name for name in await exposed(it) if "web" in name]


@pytest.mark.parametrize(("client", "headers"), [
    ("vmagent", {"User-Agent": "Go-http-client/1.1", "X-Prometheus-Refresh-Interval-Seconds": "60"}),  # as vmagent 1.148 asks
    ("prometheus", {"User-Agent": "Prometheus/3.16.0", "X-Prometheus-Refresh-Interval-Seconds": "60"}),
    ("other", {"User-Agent": "Go-http-client/1.1"}),
    ("other", {"User-Agent": "curl/8"}),
])  # fmt: skip
async def test_clients_are_known_by_what_they_send(client: str, headers: dict[str, str]) -> None:
    """One of a few kinds."""
    async with exporting({"pods": PODS}) as it:
        await it.start(it.job("web"))
        await it.synced()
        await it.get("/sd/web", **headers)
        polls = [name for name in await exposed(it) if name.startswith("http_sd_last_success")]
        assert polls == [f"http_sd_last_success_timestamp_seconds{{{client},web}}"]


async def test_the_file_of_the_web_server_has_metrics_where_there_is_one(tmp_path: Path) -> None:
    """Whether it was good when it was last read, and when it was."""
    file = tmp_path / "web.yml"
    file.write_text("{}")
    async with exporting() as it:
        assert not [name for name in await exposed(it) if "web_config" in name]
        it.service.web_config = WebConfig.read(file)
        found = await exposed(it)
        assert found["web_config_last_reload_successful{}"] == 1
        assert found["web_config_last_reload_success_timestamp_seconds{}"] == it.service.web_config.last_success
        it.service.web_config.successful = False
        assert (await exposed(it))["web_config_last_reload_successful{}"] == 0
