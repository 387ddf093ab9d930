"""`endpoints`: services with endpoint slices; one pod changes, and the targets that name it follow."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from fastdisco.synthetic import SyntheticProcess

from ..attempts import engine, keep, peers
from ..cases import Below, Case, Figures
from ..jobs import Job
from ..peers import Peer
from ..peers.program import RunningPeer
from ..peers.samples import Samples
from ..plan import Plan, app_near
from ..runs.child import RunError
from .sync import HOLD

SLICE = 50  # addresses
_LONGEST = 90.0  # seconds that a peer is waited for: Prometheus tells nothing until the slice itself changes


def measure(plan: Plan) -> Iterator[Case]:
    """Only pods change, never a slice."""
    pods, services = plan.sizes.endpoints, plan.sizes.services
    with plan.server(pods, apps=services, services=services, slice_size=SLICE) as server:
        slices = server.control("state")["objects"]["endpointslices"]
        case = Case("endpoints", f"{pods:,} pods in {slices:,} slices of {services} services, one pod changes at a time")
        case.floors = (HOLD, Below("rendered", 1.01), *((Below("p99", 20),) if plan.stated("endpoints", "services") else ()))
        churn = {"rate": plan.sizes.endpoints_rate, "seconds": plan.sizes.seconds}
        engine(plan, case, server, [Job("slices", "endpointslice")], churn=churn)
        keep(case, "wall", "cpu", "peak", "p50", "p99", "max", "rendered", "hold")
        peers(plan, case, lambda peer: _peer(plan, peer, server))
        yield case


def _peer(plan: Plan, peer: Peer, server: SyntheticProcess) -> Figures:
    """The job keeps the ready pods of one application, so one that is not ready any more takes its targets away."""
    job = Job("slices", "endpointslice", app=app_near(server, plan.sizes.endpoints // plan.sizes.services), ready=True)
    with peer.run(server.url, [job]) as running:
        expected: int = server.control("targets", app=job.app, ready=True)["targets"]

        def done(samples: Samples) -> bool:
            return peer.kept(samples).get(job.name) == expected

        figures = running.figures(running.wait(done, timeout=plan.timeout, what=f"{expected:,} targets"))
        delays = list(_delays(running, server, job, plan.sizes.marks))
        return figures | ({"p50": statistics.median(delays), "max": max(delays)} if delays else {})


def _delays(running: RunningPeer, server: SyntheticProcess, job: Job, marks: int) -> Iterator[float]:
    """Milliseconds; ends early if a change is not seen at all."""
    for _ in range(marks):
        before = running.peer.kept(running.samples()).get(job.name)
        server.control("burst", events=1, app=job.app, hold=True)
        began = server.control("release", {})["time"] / 1e9

        def changed(samples: Samples, before: float | None = before) -> bool:
            return running.peer.kept(samples).get(job.name) != before

        try:
            yield 1000 * (running.wait(changed, timeout=_LONGEST, what="a changed target") - began)
        except RunError:
            return
