"""`sync`: from the start of a process to the registered targets of one job."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fastdisco.synthetic import SyntheticProcess

from ..attempts import attempt, engine, keep, median, peers, registered
from ..cases import Below, Case, Figures, Times
from ..jobs import Job
from ..peers import Peer
from ..plan import Plan, app_near
from ..runs.child import run

HOLD = Below("hold", 20)


def measure(plan: Plan) -> Iterator[Case]:
    """Start-up alone; one application kept; all targets kept; and what it takes to receive the bytes at all."""
    pods = plan.sizes.sync
    yield _start_up(plan)
    with plan.server(pods) as server:
        job = Job("one", app=app_near(server, pods // 500))
        targets = server.control("targets", app=job.app)["targets"]
        case = Case("sync", f"{pods:,} pods, {targets:,} of {3 * pods:,} targets kept")
        case.floors = (HOLD, *((Times("wall", 12), Times("cpu", 16), Times("peak", 8), Below("peak", 200)) if plan.stated("sync") else ()))
        engine(plan, case, server, [job])
        peers(plan, case, lambda peer: _peer(plan, peer, server, job))
        yield case
        case = Case("sync", f"{pods:,} pods, all {3 * pods:,} targets kept as Labels")
        case.floors = (HOLD, *((Times("wall", 8), Times("peak", 4)) if plan.stated("sync") else ()))
        engine(plan, case, server, [Job("all")])
        peers(plan, case, lambda peer: _peer(plan, peer, server, Job("all")))
        yield case
        as_dicts = Case("sync", f"{pods:,} pods, all {3 * pods:,} targets kept as dict(labels)")
        engine(plan, as_dicts, server, [Job("all")], keeps="dict")
        as_dicts.results |= {name: figures for name, figures in case.results.items() if name not in as_dicts.results}
        yield as_dicts
        case = Case("sync", f"{pods:,} pods, bytes read and thrown away")
        for reader in ("aiohttp", "protocol"):
            read = partial(run, "readers", plan.timeout, url=server.url, reader=reader)
            attempt(plan, case, reader, partial(median, plan, read))
        yield case


def _start_up(plan: Plan) -> Case:
    """From the start to a job's first targets where there is one pod."""
    case = Case("sync", "start-up alone: one pod")
    with plan.server(1) as server:
        engine(plan, case, server, [Job("all")])
        keep(case, "wall", "cpu", "peak", "steady")
        peers(plan, case, lambda peer: _peer(plan, peer, server, Job("all")))
    return case


def _peer(plan: Plan, peer: Peer, server: SyntheticProcess, job: Job) -> Figures:
    with peer.run(server.url, [job]) as running:
        return registered(plan, running, server, [job])
