"""Targets as http_sd and file_sd have them: copied out of the engine, then sorted and written without it."""

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias, final

from ._batch import Batch
from ._core import Symbols
from ._labels import Labels
from ._relabel import Relabeling

_Syntax: TypeAlias = Literal["json", "yaml"]
SYNTAXES: Final[tuple[_Syntax, ...]]

@final
class Snapshot:
    """The targets of one export, as they were when they were added: a group for each, without empty labels.

    Filled on the engine's thread, then sealed; after that it refers to nothing of the engine, and may be used on any thread.
    `wanted`, asked once per name and shape of labels, says which labels are written; the address always is. `split`, given the labels of
    a target whose address or path holds more than that, gives those to be written in their place.
    """

    def __new__(
        cls,
        symbols: Symbols,
        wanted: Callable[[str], bool] | None = None,
        split: Callable[[Mapping[str, str]], Mapping[str, str]] | None = None,
    ) -> Snapshot: ...
    @property
    def without_address(self) -> int:
        """Targets that were left out, for they have no address."""

    def __len__(self) -> int:
        """Targets added; once arranged, those that are written."""

    def add_batch(self, batch: Batch, role: str, profile: int, relabeling: Relabeling | None = None) -> None:
        """The batch's targets of this role and profile, with the labels that they were discovered with; with rules, those kept."""

    def add_labels(self, labels: Labels) -> None:
        """One target."""

    def seal(self) -> None:
        """Nothing is added any more; lets go of the engine, and so belongs on its thread."""

    def arrange(self, distinct: bool = False) -> bytes:
        """Sorts by address, then by all labels; `distinct`: equal targets become one. Gives 16 bytes for each target: equal for equal
        targets, in every process. To be called once, after `seal`; releases the GIL."""

    @property
    def slices(self) -> int:
        """How many slices there are to render, once arranged: one or more, each of about a quarter of a megabyte."""

    def length(self, syntax: _Syntax) -> int:
        """Bytes of all slices together."""

    def render(self, number: int, syntax: _Syntax) -> bytes:
        """One slice, from 0 on; all of them in order are the document. Releases the GIL."""
