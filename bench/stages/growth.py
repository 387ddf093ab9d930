"""`growth`: whether time and memory per pod stay the same as a cluster grows."""

from __future__ import annotations

from collections.abc import Iterator

from ..attempts import best, keep
from ..cases import ENGINE, Below, Case
from ..jobs import Job
from ..plan import STATED, Plan, app_near
from .sync import HOLD


def measure(plan: Plan) -> Iterator[Case]:
    """Four sizes, each twice the one before; the time and the memory of a cluster of one pod are taken off.

    Of each the fastest of some runs counts: what others do on the machine only ever adds time. How far the sizes differ is told
    of large ones alone.
    """
    empty = Case("growth", "start-up alone: one pod")
    with plan.server(1) as server:
        nothing = best(plan, empty, server, [Job("all")])
    keep(empty, "wall", "steady")
    yield empty
    per_pod: dict[str, list[float]] = {"per_pod": [], "bytes_per_pod": []}
    sizes = [plan.sizes.growth << doubled for doubled in range(4)]
    for pods in sizes:
        case = Case("growth", f"{pods:,} pods", floors=(HOLD,))
        with plan.server(pods) as server:
            figures = best(plan, case, server, [Job("one", app=app_near(server, pods // 500))])
        if figures is not None and nothing is not None:
            figures["per_pod"] = (figures["wall"] - nothing["wall"]) / pods * 1e6
            figures["bytes_per_pod"] = (figures["steady"] - nothing["steady"]) / pods * 2**20
            for name, values in per_pod.items():
                values.append(figures[name])
        keep(case, "wall", "steady", "per_pod", "bytes_per_pod", "hold")
        yield case
    if plan.sizes.growth >= STATED.growth and plan.stated("repeats"):  # of less, and of single runs, the spread is that of the machine
        case = Case("growth", f"from {sizes[0]:,} to {sizes[-1]:,} pods")
        if len(per_pod["per_pod"]) == len(sizes):
            spread = {name: 100 * (max(values) / min(values) - 1) for name, values in per_pod.items()}
            case.results[ENGINE] = {"time_spread": spread["per_pod"], "memory_spread": spread["bytes_per_pod"]}
            case.floors = (Below("time_spread", 15), Below("memory_spread", 15)) if plan.stated("growth") else ()
        yield case
