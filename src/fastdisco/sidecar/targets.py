"""Targets as Prometheus' API shows them, before their first scrape: nothing here scrapes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson

from fastdisco.discovery import Discovery

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
        await asyncio.sleep(0)  # a tuple of 300,000 is a slice of its own
        for start in range(0, len(works), _SLICE):
            text = orjson.dumps([target(name, labels) for labels in works[start : start + _SLICE]])
            yield text[1:-1]
            await asyncio.sleep(0)  # writing to a fast reader never waits


def target(pool: str, discovered: Mapping[str, str]) -> dict[str, Any]:
    """One target as it is without relabeling rules."""
    labels = dict(discovered)
    address = with_port(labels.get("__address__", ""))
    final = {name: value for name, value in labels.items() if not name.startswith("__")}
    final["job"] = pool
    final.setdefault("instance", address)
    url = f"http://{address}/metrics"
    return {
        "discoveredLabels": labels | _BEFORE_RULES | {"job": pool},
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
