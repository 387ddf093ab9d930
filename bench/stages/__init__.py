"""What is measured, by name, in the order of a whole run: each stage gives its cases as they are done."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..cases import Case
from ..plan import Plan
from . import clients, decode, dialects, endpoints, events, growth, many_jobs, roles, sync, turnovers

STAGES: dict[str, Callable[[Plan], Iterator[Case]]] = {
    "sync": sync.measure,
    "events": events.measure,
    "jobs": many_jobs.measure,
    "endpoints": endpoints.measure,
    "decode": decode.measure,
    "clients": clients.measure,
    "growth": growth.measure,
    "roles": roles.measure,
    "dialects": dialects.measure,
    "turnovers": turnovers.measure,
}
