"""How labels are written: names and values in the order of a role become a target."""

from typing import Self

from typing_extensions import disjoint_base

from ._core import Store

@disjoint_base
class LabelWriter:
    """Writes labels; `_targets` and `_endpoints` know which."""

    def __new__(cls, store: Store) -> Self: ...
