"""`clients`: listing all pods through the Kubernetes clients that Python has, against the engine's targets of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fastdisco.synthetic import SyntheticProcess

from ..attempts import attempt, engine
from ..cases import ENGINE, Case, Times
from ..jobs import Job
from ..plan import Plan, app_near
from ..runs.child import run
from ..runs.clients import CLIENTS


def measure(plan: Plan) -> Iterator[Case]:
    """From the first request: theirs until the objects are there, the engine's until its job's targets are, too."""
    pods = plan.sizes.clients
    with plan.server(pods) as server:
        case = Case("clients", f"{pods:,} pods listed; of their targets the engine keeps one application's")
        case.floors = (Times("wall", 100, "kubernetes-asyncio"),) if plan.stated("clients") else ()
        _engine(plan, case, server, Job("one", app=app_near(server, pods // 500)))
        for client in CLIENTS:
            attempt(plan, case, client, partial(run, "clients", plan.timeout, url=server.url, client=client))
        yield case
        every = Case("clients", f"{pods:,} pods listed; the engine keeps all {3 * pods:,} targets")
        _engine(plan, every, server, Job("all"))
        every.results |= {name: figures for name, figures in case.results.items() if name not in every.results}
        yield every


def _engine(plan: Plan, case: Case, server: SyntheticProcess, job: Job) -> None:
    figures = engine(plan, case, server, [job])
    if figures is not None:
        case.results[ENGINE] = {"wall": figures["listed"], "cpu": figures["cpu"], "peak": figures["peak"]}
