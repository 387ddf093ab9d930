from collections.abc import Callable
from typing import Any, final

from typing_extensions import disjoint_base

from ._labels import Labels

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
        self, constructor: Callable[[Labels], Any] | None, failed: Callable[[BaseException], None], *, sharing: bool
    ) -> None: ...
    def __len__(self) -> int:
        """Works that some target has, shown or not."""

    def join(self, holder: Holder) -> None:
        """To be called once for whoever will show works."""

    def make(self, labels: Labels) -> int:
        """The number of a target's work; 0 where the constructor raised."""

    def show(self, number: int, holder: Holder) -> bool:
        """A target shows what `make` gave; whether a work appears by that."""

    def drop(self, number: int) -> bool:
        """A target that showed it goes; whether a work disappears by that."""

    def work(self, number: int) -> Any:
        """None where the number is 0, and where that is what the constructor gave."""

    def shown(self) -> list[Any]:
        """Those that some target shows, each once."""

    @property
    def duplicates(self) -> int:
        """Targets that show the work of another one."""

    def forget(self) -> None:
        """The job has stopped: what was made and never shown goes too."""
