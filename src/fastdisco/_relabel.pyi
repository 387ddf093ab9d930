"""Relabeling: the rules of a job, run over the symbols of its targets' labels, with their outcomes remembered.

Labels are lists as the original programs have them: sorted by name at first, then what rules add; docs/relabeling.md.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Self, TypeAlias, final

from ._batch import Batch
from ._core import IdTable, Symbols
from ._labels import Labels
from ._steps import Step
from .rules import Rule

_Label: TypeAlias = tuple[str, str]
_Part: TypeAlias = tuple[int, tuple[tuple[int, Labels], ...]]
_Ending: TypeAlias = Labels | int | str

@final
class Filter:
    """The labels that decide whether a target is kept; made by a Relabeling."""

    def __new__(cls, symbols: Symbols, names: tuple[int, ...], bound: int) -> Self: ...

@final
class Relabeling(IdTable):
    """The rules of one job, and the labels that its targets have besides the discovered ones, which win.

    `instance` makes the label of that name out of an address and a scheme. `refusal` tells of an address, an interval and a timeout why a
    target with them cannot be scraped; empty: it can. Without `filtered` all rules run for every target, without `compiled` for every one
    that is kept, which gives the same.
    """

    def __new__(
        cls,
        symbols: Symbols,
        rules: Iterable[Rule | Step],
        defaults: Mapping[str, str],
        instance: Callable[[str, str], str],
        *,
        refusal: Callable[[str, str, str], str] | None = None,
        bound: int = 65536,
        filtered: bool = True,
        compiled: bool = True,
    ) -> Self: ...
    def survivors(
        self, batch: Batch, role: str, profile: int, below: int | None = None, *, row: int = 0, effort: int = ...
    ) -> tuple[list[_Part], int | None]:
        """The parts that have targets which are kept: (key, ((position, final labels), ...)), as `Batch.targets` has them.

        Begins at `row` and ends with the part that takes up the effort; gives the row to go on from, None at the end. The effort is one
        for each rule that a target is given to, and 32 where the rule's function has to be asked.
        """

    def steps_of(self, labels: Labels) -> tuple[list[tuple[Rule, list[_Label], list[_Label]]], _Ending]:
        """What each rule does to one target: (rule, labels before, labels after), up to the rule that drops it, and what comes of it:
        the final labels, the number of the rule that drops it, or why there are no labels.
        """

    @property
    def rules(self) -> tuple[Rule, ...]: ...
    @property
    def drops(self) -> tuple[tuple[int, ...], int, int, int]:
        """Targets dropped so far: by each rule, because no label was left, because there was no address, and because of a refusal."""

    @property
    def remembered(self) -> int:
        """Outcomes remembered now, of rules and filters; those of a rule that others share are counted here, too."""

    @property
    def seen(self) -> int:
        """Targets asked about so far."""

    @property
    def evaluated(self) -> int:
        """Of these, those for which rules ran: the filter had not seen their labels, or they were kept."""

    @property
    def followed(self) -> int:
        """Of these, those for which a program was followed instead of running rule after rule."""
