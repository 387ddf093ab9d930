"""Targets by part of an object, in plain memory; looked into from Cython only."""

from collections.abc import Iterable
from typing import final

from ._labels import Labels

@final
class Parts:
    """The parts of which a job has targets, found by key."""

@final
class Rendered:
    """What a batch has for one job: parts with the targets that are kept, also parts that have none any more."""

    def __init__(self, keys: Iterable[int] = (), parts: Iterable[tuple[int, Iterable[tuple[int, Labels]]]] = ()) -> None:
        """`parts` are (key, ((position, labels), ...)), and of a key that comes twice the last counts; `keys` have no targets else."""
