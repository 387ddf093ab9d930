"""Decodes JSON from the API server: list bodies and watch streams, cut anywhere, into the store.

Read are the fields that labels need (docs/labels.md), with their exact spelling, in any order of keys; of duplicate keys the last replaces
the earlier one whole. Invalid UTF-8 and lone surrogates become U+FFFD. In what is not read, only strings and the balance of brackets are
checked. Everything else that is not valid is a `DecodeError` with its offset.
"""

from typing import Any, Self, final

from ._core import Store
from .errors import DecodeError

@final
class Decoder:
    """Reads what one URL watcher receives, and owns that watcher's part of the store. Its memory is the largest single object.

    A list: `begin_list`, `feed` each chunk, `end_page`; with a continue token `begin_page` and again; then `apply_list` until it is False.
    A watch: `begin_watch`, `feed` each chunk, `end_watch`. After any DecodeError one of the three begins comes next.
    """

    def __new__(cls, store: Store, kind: str, *, limit: int = 67108864, kernel: str = "") -> Self:
        """`limit`: bytes of the largest object or line. `kernel`: for tests, see `_parse.Parser`."""

    resource_version: str
    """The newest version seen, of a list, event or bookmark. A list sets it; an event moves it on, never back unless one is no number."""

    @property
    def store(self) -> Store: ...
    @property
    def kind(self) -> str: ...
    @property
    def listed(self) -> bool:
        """Whether a list has ever been applied to its end."""

    @property
    def list_counts(self) -> tuple[int, int, int]:
        """Objects added, known already and removed, by the list in progress or the last one."""

    @property
    def rewound(self) -> bool:
        """Whether a bookmark of this watch was older than what had been seen: the server's history has gone back."""

    @property
    def unknown_events(self) -> int:
        """Events of a type that Kubernetes does not have, in all watches."""

    @property
    def blocks_scanned(self) -> int:
        """Blocks of 64 bytes that the scanner has gone over since the decoder was made; those begun and not ended count again."""

    def begin_list(self) -> None:
        """A new list. Until one has been applied, items go into the store as they come; later into a side buffer."""

    def begin_page(self) -> None:
        """The next page of the same list, after `end_page` gave a continue token."""

    def feed(self, chunk: bytes | bytearray | memoryview) -> int:
        """Decodes the next bytes; gives the number of items or lines that ended in them, bad ones and bookmarks too.

        DecodeError if the items of a list cannot be told apart any more, or if an object or line is above the limit.
        RuntimeError before a beginning.
        """

    def end_page(self) -> tuple[str, str]:
        """The list's version and its continue token, "" where it has none; DecodeError if the body is not whole."""

    def apply_list(self, budget: int = 2000) -> bool:
        """After the last page: about `budget` changes of the list, upserts before removals; True: call again.

        Removed is what this decoder owns and the list did not have. With an item that could not even be named, nothing is.
        """

    def abort_list(self) -> None:
        """Gives up the list in progress. What a first list has put into the store stays until a later one tells."""

    def begin_watch(self) -> None:
        """A new watch stream."""

    def end_watch(self) -> int:
        """The stream has ended: a last line without newline counts if it is whole, else it is forgotten. Gives the lines of this watch."""

    def take_errors(self) -> list[tuple[str | None, DecodeError]]:
        """Objects and lines skipped since the last call: namespace/name where known, and why. Known objects stay as they were."""

    def take_statuses(self) -> list[bytes]:
        """Objects of ERROR events since the last call, as JSON."""

    def load(self, body: bytes) -> None:
        """Puts one object from a GET into the store, unless the watch has delivered it meanwhile; DecodeError if it is not valid."""

def decode_object(kind: str, body: bytes) -> dict[str, Any]:
    """One object from a GET, as `Store.get` gives it; DecodeError if it is not valid or has no name."""
