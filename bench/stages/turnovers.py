"""`turnovers`: all pods replaced, again and again: memory must not follow history."""

from __future__ import annotations

from collections.abc import Iterator

from ..attempts import attempt
from ..cases import ENGINE, Case
from ..plan import Plan
from ..runs.child import run

_TIMES = 20


def measure(plan: Plan) -> Iterator[Case]:
    """The memory after the last turnover against that after the second."""
    pods = plan.sizes.turnovers
    case = Case("turnovers", f"{pods:,} pods replaced {_TIMES} times")
    with plan.server(pods) as server:
        attempt(plan, case, ENGINE, lambda: run("turnovers", plan.timeout, url=server.url, times=_TIMES))
    yield case
