"""`decode`: the decoder alone, against parsers of JSON, on the same bytes."""

from __future__ import annotations

from collections.abc import Iterator

from ..attempts import attempt
from ..cases import Case, Times
from ..plan import Plan
from ..runs.child import run
from ..runs.decode import DECODERS


def measure(plan: Plan) -> Iterator[Case]:
    """One list of pods, from memory."""
    pods = plan.sizes.decode
    case = Case("decode", f"{pods:,} pods")
    case.floors = (Times("throughput", 10, "orjson"), Times("throughput", 3.5, "msgspec")) if plan.stated("decode") else ()
    with plan.server(pods) as server:
        for decoder in DECODERS:
            attempt(plan, case, decoder, lambda decoder=decoder: run("decode", plan.timeout, url=server.url, decoder=decoder))  # type: ignore[misc]
    yield case
