"""Remembered outcomes of rules, by tuples of ids; looked into from Cython only."""

from typing import Self, final

from ._core import IdTable, Symbols

@final
class Memo(IdTable):
    """Up to `bound` outcomes of a pure function of `width` symbols, in `results` words, which are symbols and owned if `owns`."""

    def __new__(cls, symbols: Symbols, width: int, results: int, owns: bool, bound: int = 65536, ages: bool = False) -> Self: ...
    def __len__(self) -> int:
        """Outcomes remembered."""

    @property
    def width(self) -> int: ...
    @property
    def results(self) -> int: ...
    @property
    def given_up(self) -> bool:
        """Of several thousand questions fewer than a tenth had been asked before, so nothing is remembered any more."""
