"""`events`: watch events at full speed, and how long a change takes to its targets at a steady rate."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator

from fastdisco.synthetic import SyntheticProcess

from ..attempts import burst, engine, keep, peers, registered
from ..cases import Below, Case, Figures, Times
from ..jobs import Job
from ..peers import Peer
from ..peers.samples import Samples
from ..plan import MANY_APPS, Plan, app_near
from .sync import HOLD

_PEER_EVENTS = 20_000  # a peer takes some thousands a second
_LONGEST = 60.0  # seconds after which no further mark is set: a peer that is behind falls further behind
_PAUSE = 2.0  # seconds between two marks at most, by chance: a peer that looks at intervals must not be met in step


def measure(plan: Plan) -> Iterator[Case]:
    """MODIFIED, ADDED and DELETED, four to one of either of the others together, every one of another version."""
    pods, count = plan.sizes.events, plan.sizes.burst
    with plan.server(pods, apps=MANY_APPS) as server:
        job = Job("one", app=app_near(server, pods // MANY_APPS))
        case = Case("events", f"{pods:,} pods, one job, at full speed")
        case.floors = (HOLD, *((Times("events", 15, "vmagent"),) if plan.stated("events") else ()))
        engine(plan, case, server, [job], burst=count)
        keep(case, "events", "events_per_cpu", "hold")
        peers(plan, case, lambda peer: _burst(plan, peer, server, job, min(count, _PEER_EVENTS)))
        yield case
    pods = plan.sizes.delay
    with plan.server(pods) as server:
        everything = Job("all")
        case = Case("events", f"{pods:,} pods, {plan.sizes.rate:,} events a second, from write to target")
        case.floors = (HOLD, *((Below("p99", 50),) if plan.stated("delay", "rate") else ()))
        engine(plan, case, server, [everything], churn={"rate": plan.sizes.rate, "seconds": plan.sizes.seconds})
        keep(case, "p50", "p99", "max", "hold", "collection")
        job = Job("one", app=app_near(server, pods // 500))
        peers(plan, case, lambda peer: _delays(plan, peer, server, job))
        yield case


def _burst(plan: Plan, peer: Peer, server: SyntheticProcess, job: Job, count: int) -> Figures:
    with peer.run(server.url, [job]) as running:
        registered(plan, running, server, [job])
        return burst(plan, running, server, job, count)


def _delays(plan: Plan, peer: Peer, server: SyntheticProcess, job: Job) -> Figures:
    """Now and then the last event of a small burst is a new pod of the job, whose targets are waited for in the peer's metrics."""
    with peer.run(server.url, [job]) as running:
        registered(plan, running, server, [job])
        server.control("churn", rate=plan.sizes.rate, change="time", follow=False)
        delays: list[float] = []
        pauses = random.Random(plan.seed)
        try:
            until = time.monotonic() + _LONGEST
            while len(delays) < plan.sizes.marks and (not delays or time.monotonic() < until):
                before = server.control("targets", app=job.app)["targets"]
                server.control("burst", events=1, marker=job.app, hold=True)
                began = server.control("release", {})["time"] / 1e9

                def shown(samples: Samples, expected: int = before + 3) -> bool:
                    return peer.kept(samples).get(job.name) == expected

                now = running.wait(shown, timeout=plan.timeout, what=f"{before + 3} targets")
                delays.append(1000 * (now - began))
                time.sleep(pauses.uniform(0, _PAUSE))
        finally:
            server.control("churn", rate=0)
        return {"p50": statistics.median(delays), "max": max(delays)}
