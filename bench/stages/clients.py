"""`clients`: listing all pods through the Kubernetes clients that Python has, against the engine's targets of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..attempts import attempt, engine
from ..cases import ENGINE, Case, Times
from ..jobs import Job
from ..plan import Plan
from ..runs.child import run
from ..runs.clients import CLIENTS


def measure(plan: Plan) -> Iterator[Case]:
    """From the first request: theirs until the objects are there, the engine's until the targets are."""
    pods = plan.sizes.clients
    case = Case("clients", f"{pods:,} pods listed")
    case.floors = (Times("wall", 100, "kubernetes-asyncio"),) if plan.stated("clients") else ()
    with plan.server(pods) as server:
        figures = engine(plan, case, server, [Job("all")])
        if figures is not None:
            case.results[ENGINE] = {"wall": figures["listed"], "cpu": figures["cpu"], "peak": figures["peak"]}
        for client in CLIENTS:
            attempt(plan, case, client, partial(run, "clients", plan.timeout, url=server.url, client=client))
    yield case
