"""One rule over symbols, with its outcomes remembered."""

from typing import Self, final

from ._core import Symbols
from .rules import Rule

KINDS_OF_RULES: tuple[str, ...]

@final
class Step:
    """A rule with its labels as symbols and its remembered outcomes; relabelings of the same symbols may share it."""

    def __new__(cls, symbols: Symbols, rule: Rule, bound: int = 65536) -> Self: ...
    @property
    def rule(self) -> Rule: ...
    @property
    def remembered(self) -> int:
        """Outcomes remembered now, those of the `if` too."""

    @property
    def given_up(self) -> bool:
        """Whether remembering did not pay, and was stopped."""
