"""Chunked transfer coding (RFC 9112, 7.1), taken off in place: a socket writes into one buffer, bytes of the body are taken out of it."""

from typing import Self, final

@final
class Dechunker:
    """`room` and `received` as the socket has bytes, `take` until it gives None; what was taken is valid until then.

    It knows plain chunks. At the last chunk, at an extension and at whatever breaks the rules it is `stuck` for good, and `rest` goes to a
    whole parser. Small chunks that lie in the buffer together are moved together.
    """

    def __new__(cls, size: int, received: bytes = b"") -> Self:
        """`size`: bytes of the buffer, more if `received`, what is there already, needs it."""

    @property
    def stuck(self) -> bool:
        """What follows is no plain chunk."""

    def room(self) -> memoryview:
        """Where to put what is received next; never empty after `received` was True, or after `take` gave None and this is not `stuck`."""

    def received(self, count: int) -> bool:
        """So many bytes are there now; whether there is room for more."""

    def take(self) -> memoryview | None:
        """Bytes of the body, of as many chunks as are there; None if there are none, or if this is `stuck`."""

    def rest(self) -> bytes:
        """What was not taken, as a parser must see it that has seen nothing of the body: a chunk that was begun has its remaining size."""
