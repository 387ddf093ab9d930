"""Targets as Prometheus' API shows them, before their first scrape: nothing here scrapes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlencode

import orjson

from fastdisco.discovery import Discovery
from fastdisco.target_labels import stored_labels, victoriametrics_instance

_SLICE = 100  # targets between two turns of the loop: a millisecond or two
_BEFORE_RULES = {"__metrics_path__": "/metrics", "__scheme__": "http", "__scrape_interval__": "1m", "__scrape_timeout__": "10s"}
_NEVER = "0001-01-01T00:00:00Z"


async def active_targets(discovery: Discovery, pool: str = "") -> AsyncIterator[bytes]:
    """All targets of the jobs that have synced, or of the job `pool`, as JSON objects between commas, some at a time."""
    for name in sorted(discovery.jobs):
        job = discovery.jobs.get(name)  # it may have gone since
        if job is None or not job.is_synced or (pool and pool != name):
            continue
        works = job.scrape_works()
        made = target if job.relabel_configs is None else relabeled_target
        await asyncio.sleep(0)  # a tuple of 300,000 is a slice of its own
        for start in range(0, len(works), _SLICE):
            text = orjson.dumps([made(name, labels) for labels in works[start : start + _SLICE]])
            yield text[1:-1]
            await asyncio.sleep(0)  # writing to a fast reader never waits


def target(pool: str, discovered: Mapping[str, str]) -> dict[str, Any]:
    """One target as it is without relabeling rules."""
    labels = dict(discovered)
    address = with_port(labels.get("__address__", ""))
    final = {name: value for name, value in labels.items() if not name.startswith("__")}
    final["job"] = pool
    final.setdefault("instance", address)
    return _shown(pool, labels | _BEFORE_RULES | {"job": pool}, final, f"http://{address}/metrics")


def relabeled_target(pool: str, final: Mapping[str, str]) -> dict[str, Any]:
    """One target of a job with rules, by its final labels. Discovered ones are not kept: `fastdisco explain` shows them."""
    labels = dict(final)
    scheme, path = labels.get("__scheme__", "http"), labels.get("__metrics_path__", "/metrics")
    params = [(name.removeprefix("__param_"), value) for name, value in labels.items() if name.startswith("__param_")]
    url = f"{scheme}://{victoriametrics_instance(labels.get('__address__', ''), scheme)}{'' if path.startswith('/') else '/'}{path}"
    if params:
        url += f"{'&' if '?' in path else '?'}{urlencode(params)}"
    return _shown(pool, {}, stored_labels(labels), url) | {
        "scrapeInterval": labels.get("__scrape_interval__", ""),
        "scrapeTimeout": labels.get("__scrape_timeout__", ""),
    }


def _shown(pool: str, discovered: Mapping[str, str], final: Mapping[str, str], url: str) -> dict[str, Any]:
    return {
        "discoveredLabels": discovered,
        "labels": final,
        "scrapePool": pool,
        "scrapeUrl": url,
        "globalUrl": url,
        "lastError": "",
        "lastScrape": _NEVER,
        "lastScrapeDuration": 0,
        "health": "unknown",
        "scrapeInterval": "1m",
        "scrapeTimeout": "10s",
    }


def with_port(address: str) -> str:
    """What is scraped: port 80 of what names none."""
    return address if ":" in address else f"{address}:80"
