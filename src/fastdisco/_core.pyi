"""Symbols (each string once) and the Store (what is kept of each object, who refers to whom, what has to be rendered).

Everything runs under the GIL on one thread; only owners of symbols (`Labels`) may be read and released on any.
"""

from typing import Any, Self, final

from typing_extensions import disjoint_base

@disjoint_base
class IdTable:
    """A table keyed by ids that it does not own: a sweep has it forget them before it frees any."""


@final
class Symbols:
    """Every string once, as UTF-8, known by a number. One per discovery, shared by its stores.

    A string that nothing owns any more is set aside: found again, it is taken back; a sweep frees it and its number.
    """

    @property
    def live(self) -> int:
        """Strings held, those set aside too; the same as `len`."""

    @property
    def set_aside(self) -> int:
        """Strings that nothing owns."""

    def __len__(self) -> int: ...
    def due(self) -> bool:
        """Whether a sweep is under way, or a tenth of all strings (and not just a few) are set aside."""

    def sweep(self, budget: int = 20000) -> bool:
        """Frees what is set aside among the next `budget` strings; True: there is more to do.

        Does nothing while a `Batch` is open.
        """

    def bytes_held(self) -> int:
        """Bytes of all strings held, without their tables; it counts them one by one."""

@final
class Store:
    """Objects by kind, namespace and name, in parts that belong to decoders, which alone write to it.

    An object that changes in a field that labels need is dirty, and so is whatever shows it; a `Renderer` takes it from there.
    """

    def __new__(cls, symbols: Symbols) -> Self: ...
    @property
    def symbols(self) -> Symbols: ...
    def objects(self, kind: str) -> int:
        """Objects of that kind now."""

    def counters(self, kind: str) -> tuple[int, int, int, int]:
        """Objects added, updated, removed and rendered since the store was made; a known object in a list counts as updated."""

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """The fields that labels need, nested as in the API, without what is absent or null; None if the object is not here."""

    def take_missing(self) -> list[tuple[str, str, str]]:
        """(kind, namespace, name) of what rendering since the last call found named but not here, and that still is not."""
