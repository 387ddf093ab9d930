"""`dialects`: what jobs of the second dialect cost beside those of the first: labels, but no object."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fastdisco.config import DIALECTS

from ..attempts import attempt, median
from ..cases import ENGINE, Case
from ..plan import Plan
from ..runs.child import run
from .sync import HOLD


def measure(plan: Plan) -> Iterator[Case]:
    """One dialect, the other, and both."""
    with plan.server(plan.sizes.roles) as server:
        for dialects in (*([one] for one in DIALECTS), [*DIALECTS]):
            case = Case("dialects", f"pods and slices of {plan.sizes.roles:,} pods, {' and '.join(dialects)}", floors=(HOLD,))
            once = partial(run, "dialects", plan.timeout, url=server.url, dialects=dialects)
            attempt(plan, case, ENGINE, partial(median, plan, once))
            yield case
