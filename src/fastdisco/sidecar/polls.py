"""Who has asked for what: counted as it happens, and shown by the metrics."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping

_CLIENTS = {"prometheus/": "prometheus", "vm_promscrape": "vmagent", "vmagent": "vmagent", "alloy": "alloy", "grafanaalloy": "alloy",
            "opentelemetry": "opentelemetry", "otelcol": "opentelemetry"}  # fmt: skip
_GO = "go-http-client/"
_INTERVAL = "X-Prometheus-Refresh-Interval-Seconds"


class Polls:
    """Of each job; the name of a job that does not exist is empty."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.bytes: Counter[str] = Counter()
        self.last: dict[tuple[str, str], float] = {}
        """By job and kind of client: Unix time of the last success."""

    def answered(self, job: str, code: int, headers: Mapping[str, str]) -> None:
        self.requests[job, code] += 1
        if code in (200, 304) and job:
            self.last[job, client(headers)] = time.time()

    def sent(self, job: str, size: int) -> None:
        """Bytes of a body, as they are on the wire."""
        self.bytes[job] += size


def client(headers: Mapping[str, str]) -> str:
    """The kind of client, of a few; `other` for all else, so that nobody can make names up."""
    agent = headers.get("User-Agent", "").lower()
    if agent.startswith(_GO) and _INTERVAL in headers:
        return "vmagent"  # which says how often it asks, as Prometheus does, and not who it is
    return next((kind for begin, kind in _CLIENTS.items() if agent.startswith(begin)), "other")
