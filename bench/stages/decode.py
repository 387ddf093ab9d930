"""`decode`: the decoder alone, against parsers of JSON, on the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fastdisco.synthetic import SyntheticProcess

from ..attempts import attempt
from ..cases import Case, Times
from ..plan import Plan
from ..runs.child import run
from ..runs.decode import DECODERS


def measure(plan: Plan) -> Iterator[Case]:
    """One list of pods, from memory."""
    pods = plan.sizes.decode
    with plan.server(pods) as server:
        case = Case("decode", f"{pods:,} pods")
        case.floors = (Times("throughput", 10, "orjson"), Times("throughput", 3.5, "msgspec")) if plan.stated("decode") else ()
        _measure(plan, case, server, collector=True)
        yield case
        case = Case("decode", f"{pods:,} pods, without the garbage collector")
        _measure(plan, case, server, collector=False)
        yield case


def _measure(plan: Plan, case: Case, server: SyntheticProcess, *, collector: bool) -> None:
    for decoder in DECODERS:
        attempt(plan, case, decoder, partial(run, "decode", plan.timeout, url=server.url, decoder=decoder, collector=collector))
