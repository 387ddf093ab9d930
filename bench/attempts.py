"""Who does the work of a case: the engine in fresh processes, and each peer; what fails is noted where its figures would stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from fastdisco.synthetic import SyntheticProcess

from .cases import ENGINE, Case, Figures
from .jobs import Job
from .peers import Peer
from .peers.program import RunningPeer
from .peers.samples import Samples
from .plan import Plan
from .runs.child import MissingError, RunError, run


def attempt(plan: Plan, case: Case, who: str, measure: Callable[[], Figures]) -> Figures | None:
    """The figures, put into the case as those of `who`; None if that failed."""
    plan.say(f"{case.stage}: {case.name}: {who}")
    try:
        figures = measure()
    except MissingError as error:
        case.absent[who] = str(error)
        return None
    except (RunError, OSError, ValueError) as error:
        case.failures[who] = str(error)
        return None
    case.results[who] = figures
    return figures


def engine(plan: Plan, case: Case, server: SyntheticProcess, jobs: Sequence[Job], **more: Any) -> Figures | None:
    """Some runs of the engine, each of them checked; see `median`."""
    given = [asdict(job) for job in jobs]
    return attempt(plan, case, ENGINE, partial(median, plan, partial(run, "engine", plan.timeout, url=server.url, jobs=given, **more)))


def best(plan: Plan, case: Case, server: SyntheticProcess, jobs: Sequence[Job]) -> Figures | None:
    """Some more runs of the engine: the one with the shortest wall time, and the longest hold of all."""
    given = [asdict(job) for job in jobs]
    times = range(2 * plan.sizes.repeats - 1)

    def measure() -> Figures:
        runs = [run("engine", plan.timeout, url=server.url, jobs=given) for _ in times]
        return min(runs, key=lambda figures: figures["wall"]) | {"hold": max(one["hold"] for one in runs)}

    return attempt(plan, case, ENGINE, measure)


def keep(case: Case, *figures: str) -> None:
    """Leave out of the case what the engine's runs measure besides these figures."""
    ours = case.results.get(ENGINE, {})
    for name in set(ours) - set(figures):
        del ours[name]


def median(plan: Plan, measure: Callable[[], Figures]) -> Figures:
    """The run with the median wall time, and the longest hold of all."""
    runs = sorted((measure() for _ in range(plan.sizes.repeats)), key=lambda figures: figures["wall"])
    figures = dict(runs[len(runs) // 2])
    if "hold" in figures:
        figures["hold"] = max(one["hold"] for one in runs)
    return figures


def peers(plan: Plan, case: Case, measure: Callable[[Peer], Figures]) -> None:
    """Each peer of the plan once; one that has failed is left out of the cases that the stage still has, which is said once."""
    for peer in plan.peers:
        if plan.left_out(case.stage, peer.name):
            continue
        if attempt(plan, case, peer.name, partial(measure, peer)) is None:
            case.failures[peer.name] += "\nIt is left out of the rest of this stage."
            plan.leave_out(case.stage, peer.name)


def registered(plan: Plan, running: RunningPeer, server: SyntheticProcess, jobs: Sequence[Job]) -> Figures:
    """Waits until a peer has the targets of all jobs, as many as the server's objects give."""
    everything = server.control("targets", app="")["targets"]
    kept = {job.name: server.control("targets", app=job.app)["targets"] if job.app else everything for job in jobs}

    def done(samples: Samples) -> bool:
        return running.peer.registered(samples, kept, everything)

    now = running.wait(done, timeout=plan.timeout, what=f"{sum(kept.values()):,} targets of {len(jobs)} jobs")
    return running.figures(now)


def burst(plan: Plan, running: RunningPeer, server: SyntheticProcess, job: Job, events: int) -> Figures:
    """Events at full speed, until the peer is done with all of them; or, if it does not tell, until the last one's target is there."""
    server.control("burst", events=events, turned=0.2, marker=job.app, hold=True)
    expected: int = server.control("targets", app=job.app)["targets"]
    before, cpu = running.peer.handled(running.samples()), running.cpu()
    began = server.control("release", {})["time"] / 1e9

    def handled(samples: Samples) -> bool:
        return (running.peer.handled(samples) or 0.0) >= (before or 0.0) + events

    def shown(samples: Samples) -> bool:
        return running.peer.kept(samples).get(job.name) == expected

    if before is not None:
        now, cpu = running.wait(handled, timeout=plan.timeout, what=f"{events} events"), running.cpu() - cpu
        running.wait(shown, timeout=plan.timeout, what=f"{expected} targets")
    else:
        now, cpu = running.wait(shown, timeout=plan.timeout, what=f"{expected} targets"), running.cpu() - cpu
    return {"events": events / (now - began), "events_per_cpu": events / cpu}
