"""Status bodies, worded as a real API server words them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "AlreadyExists",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
PHRASES = {
    200: "OK",
    201: "Created",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    410: "Gone",
    422: "Unprocessable Entity",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}
EXPIRED_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue "
    "parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token "
    "results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and "
    "now may show up in the list."
)


class StatusError(Exception):
    """A request that is answered with a Status."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str | None = None,
        details: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = REASONS.get(code, "") if reason is None else reason
        self.details = details
        self.metadata = metadata or {}
        self.headers = headers

    def body(self, *, pretty: bool = False) -> bytes:
        """The Status as JSON, keys in the order of the real thing."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return orjson.dumps(status, option=orjson.OPT_INDENT_2 if pretty else None)


def too_large(wanted: int, current: int) -> StatusError:
    """A version that the server has not reached."""
    return StatusError(
        504,
        f"Timeout: Too large resource version: {wanted}, current: {current}",
        details={
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
        headers=(("Retry-After", "1"),),
    )


def too_old(wanted: int, oldest: int) -> StatusError:
    """A version that the server's history no longer holds."""
    return StatusError(410, f"too old resource version: {wanted} ({oldest})")


def no_object(plural: str, group: str, name: str) -> StatusError:
    """A GET, PUT or DELETE of what is not there."""
    full = f"{plural}.{group}" if group else plural
    details = {"name": name, "group": group, "kind": plural} if group else {"name": name, "kind": plural}
    return StatusError(404, f'{full} "{name}" not found', details=details)


def no_resource() -> StatusError:
    """A path that the server does not serve."""
    return StatusError(404, "the server could not find the requested resource", details={})


def invalid_options(field: str, message: str) -> StatusError:
    """A combination of list options that the API forbids."""
    return StatusError(
        422,
        f'ListOptions.meta.k8s.io "" is invalid: {field}: Forbidden: {message}',
        details={
            "group": "meta.k8s.io",
            "kind": "ListOptions",
            "causes": [{"reason": "FieldValueForbidden", "message": f"Forbidden: {message}", "field": field}],
        },
    )
