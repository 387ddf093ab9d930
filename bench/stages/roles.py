"""`roles`: all six roles at once, with node and namespace metadata attached."""

from __future__ import annotations

from collections.abc import Iterator

from ..attempts import attempt, median
from ..cases import ENGINE, Case
from ..plan import Plan
from ..runs.child import run
from .sync import HOLD


def measure(plan: Plan) -> Iterator[Case]:
    """Until all are registered."""
    case = Case("roles", f"six roles over {plan.sizes.roles:,} pods, with attached metadata", floors=(HOLD,))
    with plan.server(plan.sizes.roles) as server:
        attempt(plan, case, ENGINE, lambda: median(plan, lambda: run("roles", plan.timeout, url=server.url)))
    yield case
