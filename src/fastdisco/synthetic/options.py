"""The options of a list or a watch, checked as the API checks them."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from fastdisco.synthetic.status import EXPIRED_CONTINUE, StatusError, invalid_options


@dataclass(frozen=True, slots=True)
class Token:
    """A `continue` token: the list's version (-1: the latest) and the first key that is still to come."""

    version: int
    start: str

    def encode(self) -> str:
        """As the API server writes it: JSON in base64url without padding."""
        raw = orjson.dumps({"v": "meta.k8s.io/v1", "rv": self.version, "start": self.start})
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    @classmethod
    def decode(cls, text: str) -> Token:
        """The token of a request; 400 if it is none of ours."""
        try:
            fields = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            return cls(int(fields["rv"]), str(fields["start"]))
        except (ValueError, KeyError, TypeError):
            raise StatusError(400, "continue key is not valid: illegal base64 data") from None


@dataclass(frozen=True, slots=True)
class Options:
    """ListOptions; `version` is `None` where it was not given."""

    version: int | None
    match: str
    limit: int
    token: Token | None
    watch: bool
    bookmarks: bool
    initial: bool | None  # sendInitialEvents
    timeout: float  # seconds; 0: the server chooses
    labels: str
    fields: str


def truth(text: str) -> bool:
    """A boolean query parameter: present and not denied."""
    return text.lower() not in ("", "0", "false", "f")


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name) or "0"
    if not re.fullmatch(r"-?\d+", text):
        raise StatusError(400, f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def parse_options(query: Mapping[str, str], *, watch_list: bool) -> Options:
    """The options of a query; 400, 422 or 500 as a real server answers. Without `watch_list` initial events are forbidden."""
    text = query.get("resourceVersion", "")
    if text and not text.isdecimal():
        message = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise StatusError(500, message, reason="")
    version = int(text) if text else None
    match = query.get("resourceVersionMatch", "")
    watch = truth(query.get("watch", ""))
    initial = truth(query["sendInitialEvents"]) if "sendInitialEvents" in query else None
    continued = query.get("continue", "")
    if watch:
        _check_watch(match, initial, watch_list)
    else:
        _check_list(version, match, initial, continued)
    if watch and watch_list and initial is None and not version:
        initial = True
    return Options(
        version=version,
        match=match,
        limit=max(0, _number(query, "limit")),
        token=Token.decode(continued) if continued and not watch else None,
        watch=watch,
        bookmarks=truth(query.get("allowWatchBookmarks", "")),
        initial=initial,
        timeout=float(max(0, _number(query, "timeoutSeconds"))),
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
    )


def _check_watch(match: str, initial: bool | None, watch_list: bool) -> None:
    if initial is None:
        if match:
            message = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            raise invalid_options("resourceVersionMatch", message)
        return
    if not watch_list:
        message = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        raise invalid_options("sendInitialEvents", message)
    if match != "NotOlderThan":
        message = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise invalid_options("resourceVersionMatch", message)


def _check_list(version: int | None, match: str, initial: bool | None, continued: str) -> None:
    if initial is not None:
        raise invalid_options("sendInitialEvents", "sendInitialEvents is forbidden for list")
    if continued and match:
        raise invalid_options("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
    if continued and version:
        raise StatusError(400, "specifying resource version is not allowed when using continue")
    if match and version is None:
        raise invalid_options("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided")
    if match not in ("", "Exact", "NotOlderThan"):
        raise invalid_options("resourceVersionMatch", f'unsupported value "{match}": supported values: "Exact", "NotOlderThan"')
    if match == "Exact" and version == 0:
        raise invalid_options("resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')


def expired(start: str) -> StatusError:
    """A `continue` whose version is gone, with a token for the inconsistent rest."""
    return StatusError(410, EXPIRED_CONTINUE, metadata={"continue": Token(-1, start).encode()})
