"""Targets: an object of a store becomes label sets, as docs/labels.md says."""

from typing import Self

from typing_extensions import disjoint_base

from ._core import Store

@disjoint_base
class TargetWriter:
    """Writes the targets of one object; `_render.Renderer` decides which."""

    def __new__(cls, store: Store) -> Self: ...
