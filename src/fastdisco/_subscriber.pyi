from collections.abc import Iterable, Iterator
from typing import Any, Protocol, final

from ._batch import Batch
from ._labels import Labels
from ._parts import Rendered
from ._relabel import Relabeling
from ._works import Holder, Works

PART_BITS: int
"""A key is the object's slot above these bits, and a part of the object in them."""

class _Job(Protocol):
    """What a subscriber tells its job."""

    def caught_up(self) -> None:
        """A subscriber of the job has rendered all that its store holds."""

    def failed(self, error: Exception) -> None:
        """Something of the subscriber's went wrong that should not; its targets may be stale."""

    def added(self, work: Any) -> None: ...
    def updated(self, old: Any, new: Any) -> None: ...
    def removed(self, work: Any) -> None: ...

@final
class Subscriber(Holder):
    """What one configuration of a job has made of a group's objects; `working` once its first pass over them is complete."""

    relabeling: Relabeling | None
    """None: targets have their discovered labels, all of them."""
    working: bool
    stale: bool
    """Some of its targets have yet to be evaluated by the rules that it has now."""
    stopped: bool
    quiet: bool
    """Its job wants to know of no single change yet."""
    def __init__(
        self, job: _Job, role: str, profile: int, needs: tuple[str, ...], makes: Works, relabeling: Relabeling | None = None
    ) -> None: ...
    @property
    def job(self) -> _Job: ...
    @property
    def role(self) -> str: ...
    @property
    def profile(self) -> int: ...
    @property
    def needs(self) -> tuple[str, ...]: ...
    @property
    def revision(self) -> int:
        """Rises when a target's labels may have changed, also discovered ones that no rule has looked at."""

    def take(self, batch: Batch, below: int | None, *, walking: bool = False) -> Iterable[None]:
        """Brings what a batch has rendered up to date, of parts before the key `below`.

        Gives the steps that are left to do: between two of them the loop may go on. Of an object that goes on in the next batch of its
        kind, changes or a pass, everything waits for its last part.
        """

    def end_pass(self) -> Iterable[None]:
        """Applies also what there is of an object that changes are in the middle of: the pass has promised to show all. As `take`."""

    def apply(self, rendered: Rendered) -> Iterable[None]:
        """Brings parts of objects up to date. Gives steps as `take` does.

        Each object changes at once: nothing is told of it before all its works are made.
        """

    @property
    def targets(self) -> int:
        """How many there are; `works` does not count those that show the work of another one, or have none."""

    def keys(self) -> list[int]:
        """Of the parts that have targets."""

    def labels(self) -> list[Labels]:
        """Of all targets."""

    def entries(self) -> list[tuple[int, Labels, Any]]:
        """(position, labels, work) of all targets; None: it has no work."""

    def release(self) -> Iterator[None]:
        """Lets go of all targets, in steps."""
