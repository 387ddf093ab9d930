"""The labels of one target while rules run; looked into from Cython only."""

from typing import Self, final

from ._core import Symbols
from ._steps import Step

@final
class LabelList:
    """Names and values as rules see them, in their order."""

    def __new__(cls, symbols: Symbols, steps: list[Step]) -> Self: ...
