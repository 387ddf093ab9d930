"""Targets of nodes, pods, services and ingresses: an object of a store becomes label sets, as docs/labels.md says."""

from typing import Self

from typing_extensions import disjoint_base

from ._core import Store
from ._writer import LabelWriter

@disjoint_base
class TargetWriter(LabelWriter):
    """Writes the targets of one object that stands alone."""

    def __new__(cls, store: Store) -> Self: ...
