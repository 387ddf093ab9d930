"""Targets: objects of a store become label sets, as docs/labels.md says, for the roles and profiles that somebody subscribes to.

A *key* stands for a part of an object, among all objects of the store: for endpoints and slices the first address that names a pod, or an
address that names none; else the whole object. A *position* tells the targets of one part apart: container or address, and port; it stays
with its target as long as they do. A *profile* says what is attached: bit 0 node, bit 1 namespace metadata.
"""

from collections.abc import Iterable
from typing import Self, TypeAlias, final

from ._core import Store
from ._labels import Labels

_Part: TypeAlias = tuple[int, tuple[tuple[int, Labels], ...]]

@final
class Batch:
    """What was rendered at once: parts of objects, and their targets.

    While it is open no string is freed and no key is given to another object: `close` it when its targets have been taken.
    """

    def __new__(cls, renderer: Renderer) -> Self: ...
    def __len__(self) -> int:
        """Targets rendered, for all roles and profiles together."""

    def keys(self, role: str, below: int | None = None) -> list[int]:
        """Parts of that role that were rendered, or are gone; the targets that they had are to be replaced by what `targets` has of them.

        `below` limits them to what `walk` had passed when its cursor was there.
        """

    def key_set(self, role: str, below: int | None = None) -> frozenset[int]:
        """The same as a set, made once for all that ask."""

    def targets(self, role: str, profile: int, below: int | None = None) -> list[_Part]:
        """The parts that have targets: (key, ((position, labels), ...)); the same Labels for whoever asks."""

    def close(self) -> None:
        """Lets go of everything; nothing can be taken afterwards."""

@final
class Renderer:
    """Renders what changes in a store. One per store: what it takes is no longer dirty."""

    def __new__(cls, store: Store) -> Self: ...
    def subscribe(self, role: str, profile: int) -> None:
        """From now on changes of that role's objects are rendered with this profile; counted. What is there already, `walk` renders."""

    def unsubscribe(self, role: str, profile: int) -> None:
        """Takes one `subscribe` back."""

    @property
    def dirty(self) -> int:
        """Entries that wait to be rendered; some may turn out to have been rendered with others. 0: nothing is to do."""

    def render(self, budget: int = 2000) -> Batch:
        """The next dirty objects and parts, until about `budget` targets; empty if nothing is dirty."""

    def walk(self, cursor: int, wanted: Iterable[tuple[str, int]], budget: int = 2000) -> tuple[Batch, int, bool]:
        """All objects from `cursor` (at first 0) on, for these roles and profiles, until about `budget` targets.

        Gives the batch, the next cursor, and whether the end was reached. What changes behind the cursor is for `render`.
        """

    def discovered(self, role: str, namespace: str, name: str, profile: int) -> list[_Part] | None:
        """The targets of one object as they are now; None if there is no such object."""
