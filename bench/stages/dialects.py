"""`dialects`: jobs of one dialect, of the other, and of both over the same objects, which are there once."""

from __future__ import annotations

from collections.abc import Iterator

from fastdisco.config import DIALECTS

from ..attempts import attempt, median
from ..cases import ENGINE, Case
from ..plan import Plan, app_near
from ..runs.child import run
from .sync import HOLD


def measure(plan: Plan) -> Iterator[Case]:
    """Until all are registered."""
    pods = plan.sizes.roles
    with plan.server(pods) as server:
        app = app_near(server, pods // 100)
        for dialects in ([DIALECTS[0]], [DIALECTS[1]], list(DIALECTS)):
            case = Case("dialects", f"three roles over {pods:,} pods, {' and '.join(dialects)}", floors=(HOLD,))
            given = {"url": server.url, "dialects": dialects, "app": app}
            attempt(plan, case, ENGINE, lambda given=given: median(plan, lambda: run("dialects", plan.timeout, **given)))  # type: ignore[misc]
            yield case
