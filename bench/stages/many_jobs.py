"""`jobs`: many jobs at once, each of which keeps one application; then events with all of them, and one job more."""

from __future__ import annotations

from collections.abc import Iterator

from fastdisco.synthetic import SyntheticProcess

from ..attempts import burst, engine, peers, registered
from ..cases import Below, Case, Figures, Times
from ..jobs import Job
from ..peers import Peer
from ..plan import Plan
from .sync import HOLD

_PEER_EVENTS = 600  # a peer may take some dozens a second


def measure(plan: Plan) -> Iterator[Case]:
    """Twice: with the peers, and with more pods without them."""
    pods, count = plan.sizes.pods_of_jobs, plan.sizes.jobs
    stated = plan.stated("jobs", "pods_of_jobs")
    with plan.server(pods, apps=count) as server:
        jobs = [Job(name, app=name) for name in server.control("apps")]
        case = Case("jobs", f"{count} jobs over {pods:,} pods, until all are registered")
        events = Case("jobs", f"{count} jobs over {pods:,} pods, events at full speed")
        figures = engine(plan, case, server, jobs, burst=plan.sizes.burst_of_jobs, later=True)
        later = Case("jobs", f"one job more, with {count} over {pods:,} pods")
        if figures is not None:
            events.results["fastdisco"] = {name: figures.pop(name) for name in ("events", "events_per_cpu")}
            later.results["fastdisco"] = {name: figures.pop(f"later_{name}") for name in ("wall", "cpu", "hold")}
        case.floors = (HOLD,)
        if stated:
            floors = (("vmagent", 60), ("prometheus", 15))
            case.floors += tuple(Times(figure, times, rival) for rival, times in floors for figure in ("wall", "cpu"))
            events.floors = (Times("events", 200, "vmagent"),)
        peers(plan, case, lambda peer: _peer(plan, peer, server, jobs))
        for name in list(case.results):
            if name != "fastdisco":
                events.results[name] = {figure: case.results[name].pop(figure) for figure in ("events", "events_per_cpu")}
        yield case
        yield events
        yield later
    pods = plan.sizes.pods_of_jobs_alone
    if pods:
        with plan.server(pods, apps=count) as server:
            case = Case("jobs", f"{count} jobs over {pods:,} pods, until all are registered")
            case.floors = (HOLD, *((Below("wall", 10), Below("peak", 400)) if plan.stated("jobs", "pods_of_jobs_alone") else ()))
            engine(plan, case, server, [Job(name, app=name) for name in server.control("apps")])
            yield case


def _peer(plan: Plan, peer: Peer, server: SyntheticProcess, jobs: list[Job]) -> Figures:
    with peer.run(server.url, jobs) as running:
        figures = registered(plan, running, server, jobs)
        return figures | burst(plan, running, server, jobs[0], min(_PEER_EVENTS, plan.sizes.burst_of_jobs))
