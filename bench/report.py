"""What is shown of the cases: a table for each case on a terminal, plain lines elsewhere, and JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .cases import ENGINE, FIGURES, Case, ratio_of

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

_ANY_WIDTH = 10_000
_VERDICTS = {True: "met", False: "MISSED", None: "not compared"}


def lines(case: Case) -> Iterator[str]:
    """One line for each figure of a case, and one for each that there is not; what a failed program wrote follows indented."""
    for figure, row in _rows(case):
        shown = [f"{who} {text}" for who, text in row.items()]
        floors = [f"floor {floor}: {_VERDICTS[met]}" for floor, met in case.verdicts() if floor.figure == figure]
        yield f"{case.stage}: {case.name}: {FIGURES[figure].title}: {'; '.join([*shown, *floors])}"
    for missing in _missing(case):
        yield f"{case.stage}: {case.name}: {missing}"


def tables(cases: Sequence[Case], console: Console) -> Iterator[RenderableType]:
    """The cases of one stage, each a heading above its own rows; plain lines where its figures are too wide for the console. Needs rich."""
    from rich.measure import Measurement
    from rich.text import Text

    yield Text(cases[0].stage, style="bold")
    for case in cases:
        made = _table(case)
        if Measurement.get(console, console.options.update_width(_ANY_WIDTH), made).minimum > console.width:
            yield from (Text(line) for line in lines(case))
        else:
            yield Text(case.name, style="underline")
            if made.row_count:
                yield made
            yield from (Text(f"  {text}", style=style) for text, style in _remarks(case))
        yield Text()


def _table(case: Case) -> Table:
    """A column for each of those that have figures; words may wrap, figures never."""
    from rich.table import Table

    rows = dict(_rows(case))
    made = Table("", box=None, padding=(0, 2), header_style="dim")
    for who in sorted({who: None for row in rows.values() for who in row}, key=lambda who: who != ENGINE):
        texts = [row.get(who, "") for row in rows.values()]
        made.add_column(who, justify="right", no_wrap=True, min_width=max(map(len, (who, *texts))))
    for figure, row in rows.items():
        made.add_row(FIGURES[figure].title, *(row.get(str(column.header), "") for column in made.columns[1:]))
    return made


def _remarks(case: Case) -> Iterator[tuple[str, str]]:
    """What is said below the figures, each with its style: floors, and who is missing."""
    styles = {True: "green", False: "bold red", None: "dim"}
    for floor, met in case.verdicts():
        yield f"floor of {FIGURES[floor.figure].title}: {floor}: {_VERDICTS[met]}", styles[met]
    for missing in _missing(case):
        yield missing, "red" if missing.partition(": ")[0] in case.failures else ""


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


def _missing(case: Case) -> Iterator[str]:
    """Who has no figures, and why."""
    for who, why in (case.failures | case.absent).items():
        yield f"{who}: {'FAILED: ' if who in case.failures else ''}{why}".replace("\n", "\n    ")


def _number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}" if value == 0 or value >= 10 ** (1 - digits) else f"{value:.2g}"


def _short(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"
