"""What is shown of the cases: a table for each stage on a terminal, plain lines elsewhere, and JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .cases import ENGINE, FIGURES, Case, Floor, ratio_of

if TYPE_CHECKING:
    from rich.table import Table

_VERDICTS = {True: "met", False: "MISSED", None: "not compared"}


def lines(case: Case) -> Iterator[str]:
    """One line for each figure of a case, and one for each that there is not."""
    for figure, row in _rows(case):
        shown = [f"{who} {text}" for who, text in row.items()]
        floors = [f"floor {floor}: {_VERDICTS[met]}" for floor, met in case.verdicts() if floor.figure == figure]
        yield f"{case.stage}: {case.name}: {FIGURES[figure].title}: {'; '.join([*shown, *floors])}"
    for who, why in (case.failures | case.absent).items():
        yield f"{case.stage}: {case.name}: {who}: {'FAILED: ' if who in case.failures else ''}{why}"


def table(cases: Sequence[Case]) -> Table:
    """The cases of one stage; needs rich."""
    from rich.table import Table

    whos = list(dict.fromkeys(who for case in cases for who in (*case.results, *case.failures, *case.absent)))
    whos.sort(key=lambda who: who != ENGINE)
    made = Table(title=cases[0].stage, title_justify="left", title_style="bold")
    for name in ("case", "figure"):
        made.add_column(name)
    for who in whos:
        made.add_column(who, justify="right")
    made.add_column("floor")
    for case in cases:
        name = case.name
        for figure, row in _rows(case):
            made.add_row(name, FIGURES[figure].title, *(row.get(who, "") for who in whos), _coloured(case, figure))
            name = ""
        for who, why in (case.failures | case.absent).items():
            made.add_row(name, "[red]failed[/]" if who in case.failures else "", *(why if who == one else "" for one in whos), "")
            name = ""
        made.add_section()
    return made


def as_json(case: Case) -> dict[str, Any]:
    """Everything about a case."""
    floors = [{"figure": floor.figure, "floor": str(floor), "met": met} for floor, met in case.verdicts()]
    ratios = {
        who: {figure: ratio for figure in FIGURES if (ratio := ratio_of(figure, case.results, who)) is not None}
        for who in case.results
        if who != ENGINE
    }
    return {
        "stage": case.stage, "case": case.name, "results": case.results, "ratios": ratios, "floors": floors,
        "failures": case.failures, "absent": case.absent,
    }  # fmt: skip


def _rows(case: Case) -> Iterator[tuple[str, dict[str, str]]]:
    """The figures of a case, each with what everybody has; rivals' with how many times better the engine is."""
    for figure, unit in FIGURES.items():
        row = {}
        for who, figures in case.results.items():
            if figure in figures:
                ratio = ratio_of(figure, case.results, who) if who != ENGINE else None
                compared = f" ({_short(ratio)} ×)" if ratio is not None else ""
                row[who] = f"{_number(figures[figure], unit.digits)} {unit.unit}".rstrip() + compared
        if row:
            yield figure, row


def _number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}" if value == 0 or value >= 10 ** (1 - digits) else f"{value:.2g}"


def _short(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"


def _coloured(case: Case, figure: str) -> str:
    colours = {True: "green", False: "bold red", None: "dim"}

    def one(floor: Floor, met: bool | None) -> str:
        return f"[{colours[met]}]{floor}: {_VERDICTS[met]}[/]"

    return "\n".join(one(floor, met) for floor, met in case.verdicts() if floor.figure == figure)
