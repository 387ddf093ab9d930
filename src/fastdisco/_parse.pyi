"""Reads one JSON object into the words of a record; for the decoder alone, which hands it bytes and masks."""

from typing import Self, final

from ._core import Symbols

@final
class Parser:
    """`kernel` names the scanner: avx2, sse2, neon or scalar; by default the best that this processor has. ValueError if it has not."""

    def __new__(cls, symbols: Symbols, kernel: str = "") -> Self: ...
