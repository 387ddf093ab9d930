"""What is rendered when: what has changed, everything for those who register, or one object."""

from collections.abc import Iterable
from typing import TypeAlias, final

from ._batch import Batch
from ._endpoints import EndpointsWriter
from ._labels import Labels

_Part: TypeAlias = tuple[int, tuple[tuple[int, Labels], ...]]

@final
class Renderer(EndpointsWriter):
    """Renders what changes in a store. One per store: what it takes is no longer dirty."""

    def subscribe(self, role: str, profile: int) -> None:
        """From now on changes of that role's objects are rendered with this profile; counted. What is there already, `walk` renders."""

    def unsubscribe(self, role: str, profile: int) -> None:
        """Takes one `subscribe` back."""

    def keep_apart(self) -> None:
        """Namespaces were named: where the dialect has it so, endpoints of one do not see pods of another."""

    def know_nodes(self, budget: int = 20000) -> bool:
        """All nodes have been listed: pods of others go where the dialect has it so. In slices of objects; True: call again."""

    @property
    def dirty(self) -> int:
        """Entries that wait to be rendered; some may turn out to have been rendered with others. 0: nothing is to do."""

    @property
    def queued(self) -> int:
        """Entries that have ever been queued; what is queued now has been rendered when `taken` is there."""

    @property
    def taken(self) -> int:
        """Entries that have ever been taken to be rendered."""

    def render(self, budget: int = 2000) -> Batch:
        """The next dirty objects and parts, until about `budget` targets; empty if nothing is dirty."""

    def walk(self, cursor: int, wanted: Iterable[tuple[str, int]], budget: int = 2000) -> tuple[Batch, int, bool]:
        """All objects from `cursor` (at first 0) on, for these roles and profiles, until about `budget` targets.

        Gives the batch, the next cursor, and whether the end was reached. What changes behind the cursor is for `render`.
        """

    def again(self, keys: list[int], place: int, role: str, profile: int, budget: int = 2000) -> tuple[Batch, int]:
        """The parts of objects that `keys` name, from `place` on, as they are now, until about `budget` targets; what has gone since is
        passed over. Gives the batch and the next place."""

    def discovered(self, role: str, namespace: str, name: str, profile: int) -> list[_Part] | None:
        """The targets of one object as they are now; None if there is no such object."""
