"""What was measured: a case is one piece of work, done by the engine and by others; floors are what the engine must reach there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

ENGINE = "fastdisco"
Figures = dict[str, float]


class Unit(NamedTuple):
    """How a figure is shown, and which way is better."""

    title: str
    unit: str
    digits: int
    more_is_better: bool = False


FIGURES = {
    "wall": Unit("wall", "s", 2),
    "cpu": Unit("CPU", "s", 2),
    "peak": Unit("peak memory", "MB", 0),
    "steady": Unit("steady memory", "MB", 0),
    "throughput": Unit("throughput", "MB/s", 0, True),
    "events": Unit("events", "1/s", 0, True),
    "events_per_cpu": Unit("events per CPU second", "1/s", 0, True),
    "p50": Unit("delay p50", "ms", 1),
    "p99": Unit("delay p99", "ms", 1),
    "max": Unit("delay max", "ms", 1),
    "rendered": Unit("entries rendered per change", "", 2),
    "hold": Unit("longest hold of the loop", "ms", 1),
    "collection": Unit("longest garbage collection", "ms", 1),
    "per_pod": Unit("time per pod", "µs", 2),
    "bytes_per_pod": Unit("memory per pod", "B", 0),
    "time_spread": Unit("time per pod: largest differs from smallest by", "%", 1),
    "memory_spread": Unit("memory per pod: largest differs from smallest by", "%", 1),
    "kept": Unit("memory after all turnovers against that after the second", "%", 0),
}

UNITS = {name: figure.unit or "1" for name, figure in FIGURES.items()} | {"listed": "s"}
"""Of every figure that a case keeps, also of those that are not shown; 1 is a mere number."""


@dataclass(frozen=True, slots=True)
class Below:
    """A floor in absolute terms."""

    figure: str
    limit: float

    def __str__(self) -> str:
        unit = FIGURES[self.figure]
        return f"below {self.limit:g} {unit.unit}".rstrip()

    def met(self, results: Mapping[str, Figures]) -> bool | None:
        """None where the figure is missing."""
        value = results.get(ENGINE, {}).get(self.figure)
        return None if value is None else value < self.limit


@dataclass(frozen=True, slots=True)
class Times:
    """So many times better than a rival in the same run; than the best of all rivals where none is named."""

    figure: str
    times: float
    rival: str = ""

    def __str__(self) -> str:
        return f"{self.times:g} × {self.rival or 'the best'}"

    def met(self, results: Mapping[str, Figures]) -> bool | None:
        """None where there is nothing to compare with."""
        rivals = [name for name in results if name != ENGINE and self.rival in ("", name)]
        ratios = [ratio for name in rivals if (ratio := ratio_of(self.figure, results, name)) is not None]
        return min(ratios) >= self.times if ratios else None


Floor = Below | Times


def ratio_of(figure: str, results: Mapping[str, Figures], rival: str) -> float | None:
    """How many times better the engine is than a rival; None where one of them has no such figure."""
    ours, theirs = results.get(ENGINE, {}).get(figure), results.get(rival, {}).get(figure)
    if ours is None or theirs is None:
        return None
    better, worse = (theirs, ours) if FIGURES[figure].more_is_better else (ours, theirs)
    return worse / better if better else None


@dataclass(slots=True)
class Case:
    """One piece of work: figures by who did it, and why there are none of somebody: failed, or not installed."""

    stage: str
    name: str
    results: dict[str, Figures] = field(default_factory=dict)
    floors: tuple[Floor, ...] = ()
    failures: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)

    def verdicts(self) -> Iterator[tuple[Floor, bool | None]]:
        """Each floor, and whether it is met; None: not compared."""
        for floor in self.floors:
            yield floor, floor.met(self.results)
