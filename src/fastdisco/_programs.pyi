"""Programs: what rules do to targets of one shape, found once; looked into from Cython only."""

from typing import Self, final

from ._label_list import LabelList
from ._labels import Shapes
from ._steps import Step

@final
class Programs:
    """The programs of one relabeling; rules before the number `decided` may have been asked already whether they keep a target."""

    def __new__(cls, shapes: Shapes, labels: LabelList, steps: list[Step], decided: int) -> Self: ...
