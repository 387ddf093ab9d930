from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, final

from typing_extensions import disjoint_base

from ._labels import Labels

_Entry: TypeAlias = tuple[int, Labels, Any]
"""A target: its position, its labels, and its work; None: it has none."""

NO_WORK: object
"""What stands for the work of a target that got none: its constructor has raised."""

@disjoint_base
class Holder:
    """Whoever has targets."""

    works: int
    """Works of its targets; of shared ones those that it was the first to show."""

@final
class Works:
    """Makes works, and counts the targets of each: it is there from the first that shows it until the last of them goes.

    While `sharing`, targets with equal labels have one work: so a job with rules never has two works that scrape the same. Else each
    target has its own: where discovered labels are shown, nothing is merged.
    """

    constructor: Callable[[Labels], Any] | None
    """None: the labels are the work."""
    sharing: bool
    def __init__(
        self, constructor: Callable[[Labels], Any] | None, failed: Callable[[BaseException], None], *, sharing: bool, holders: int = 1
    ) -> None: ...
    def make(self, labels: Labels) -> Any:
        """The work of a target, or NO_WORK."""

    def keep(self, before: Labels, work: Any, labels: Labels) -> int:
        """A target that had the labels `before` has others now, and still its work."""

    def show(self, labels: Labels, work: Any, holder: Holder) -> bool:
        """A target shows what `make` gave; whether it is the first to show it."""

    def drop(self, labels: Labels, work: Any, holder: Holder) -> bool:
        """A target that showed it goes; whether it was the last."""

    def distinct(self, entries: Iterable[_Entry]) -> list[Any]:
        """The works that these targets show, each once."""

    @property
    def duplicates(self) -> int:
        """Targets that show the work of another one."""

    @property
    def remembered(self) -> int:
        """Entries about shared works; none once no target has one."""

    def forget(self) -> None:
        """The job has stopped: what was made and never shown goes too."""
