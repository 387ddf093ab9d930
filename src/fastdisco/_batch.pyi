"""Rendered targets.

A *key* stands for a part of an object, among all objects of the store: for endpoints and slices the first address that names a pod, or an
address that names none; else the whole object. A *position* tells the targets of one part apart: container or address, and port; it stays
with its target as long as they do. A *profile* says what is attached: bit 0 node, bit 1 namespace metadata.
"""

from typing import Self, TypeAlias, final

from ._core import Store
from ._labels import Labels

_Part: TypeAlias = tuple[int, tuple[tuple[int, Labels], ...]]
"""(key, ((position, labels), ...))"""

@final
class Batch:
    """What was rendered at once: parts of objects, and their targets.

    While it is open no string is freed and no key is given to another object: `close` it when its targets have been taken.
    """

    unfinished: int
    """The slot of the object with which it ends before the last part, which a later batch of the same kind has; 0: none."""

    def __new__(cls, store: Store) -> Self: ...
    def __len__(self) -> int:
        """Targets rendered, for all roles and profiles together."""

    def keys(self, role: str, below: int | None = None) -> list[int]:
        """Parts of that role that were rendered, or are gone; the targets that they had are to be replaced by what `targets` has of them.

        `below` is a key, and limits them to what `walk` had passed when its cursor was there.
        """

    def key_set(self, role: str, below: int | None = None) -> frozenset[int]:
        """The same as a set, made once for all that ask."""

    def targets(self, role: str, profile: int, below: int | None = None) -> list[_Part]:
        """The parts that have targets: (key, ((position, labels), ...)); the same Labels for whoever asks."""

    def close(self) -> None:
        """Lets go of everything; nothing can be taken afterwards."""
