"""The errors of fastdisco: one class for each kind of failure that some code catches."""

from __future__ import annotations


class FastdiscoError(Exception):
    """Base of all errors that fastdisco raises on purpose."""


class ConfigError(FastdiscoError, ValueError):
    """A mistake in what the user wrote: `path.to.key: reason`, with `FILE: ` before it if it came from a file."""

    def within(self, prefix: str) -> ConfigError:
        """The same mistake as seen from one level further out."""
        if not prefix:
            return self
        return ConfigError(f"{prefix}{'' if str(self).startswith('[') else '.'}{self}")


class DecodeError(FastdiscoError, ValueError):
    """Bytes that are not what they should be; `offset` counts bytes from the start of the list body or of the stream."""

    def __init__(self, reason: str, offset: int = 0) -> None:
        super().__init__(reason, offset)
        self.reason = reason
        self.offset = offset

    def __str__(self) -> str:
        return f"{self.reason} at byte {self.offset}"


class ApiError(FastdiscoError):
    """An answer of the API server other than success: an HTTP status, or an ERROR event inside a watch."""

    def __init__(
        self, code: int, reason: str = "", message: str = "", *, retry_after: float | None = None, cause: str = "", text: str = ""
    ) -> None:
        super().__init__(code, reason, message)
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        """Seconds that the server wants to be left alone, if it said so."""
        self.cause = cause
        """`details.causes[0].reason` of the Status, or empty."""
        self.text = text or message or reason
        """What a log should say about it."""

    def __str__(self) -> str:
        return f"status code {self.code}: {self.text}" if self.text else f"status code {self.code}"

    @property
    def expired(self) -> bool:
        """Whether the version or the continue token is too old for the server."""
        return self.code == 410 or self.reason in ("Expired", "Gone")

    @property
    def too_large(self) -> bool:
        """Whether the version is one that this server has yet to reach; before 1.18.6 only the message tells."""
        return self.cause == "ResourceVersionTooLarge" or (self.code == 504 and "Too large resource version" in self.message)


class NetworkError(FastdiscoError):
    """No answer, or none to the end; `kind` is `timeout`, `silent`, `reset`, `connect` or `credentials`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return self.message


class NotSynced(FastdiscoError):  # noqa: N818  a state that one asks about, rather than a fault
    """Something was asked for that is known only after the first sync."""
