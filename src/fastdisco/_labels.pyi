"""Label sets: the read-only mappings that a scrape job's constructor gets."""

from collections.abc import Iterator, Mapping
from typing import Self, TypeVar, final, overload

from ._core import IdTable, Symbols

_T = TypeVar("_T")

@final
class Shapes(IdTable):
    """The runs of label names that label sets have, each once; one for all of a discovery's stores."""

    def __new__(cls, symbols: Symbols) -> Self: ...
    @property
    def symbols(self) -> Symbols: ...
    def __len__(self) -> int:
        """Shapes in use, or remembered."""

@final
class Labels(Mapping[str, str]):
    """The labels of one target: a read-only mapping of names to values, in the byte order of the names.

    It owns what it shows, so it may be kept, read and released on any thread, also after its object, its job and its discovery are gone.
    Equal to any mapping of the same strings; hashable; pickled as a dict. Made by a discovery only: TypeError otherwise.
    """

    def __getitem__(self, name: str, /) -> str: ...
    @overload
    def get(self, name: str, default: None = None) -> str | None: ...
    @overload
    def get(self, name: str, default: _T) -> str | _T: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __hash__(self) -> int: ...
