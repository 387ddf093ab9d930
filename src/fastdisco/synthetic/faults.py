"""Faults that a test asks for: which requests they meet, and what happens to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

ENDINGS = ("end", "close", "reset", "silence", "error")


@dataclass(slots=True)
class Fault:
    """One rule. `path` is a prefix; `verb` is `list`, `watch`, `get`, `write` or empty for all.

    The first `skip` requests that it meets pass, the next `count` are faulty (all, if `None`).
    `ending` of a list cut by `truncate`, or of a watch after `after` lines: `end` cleanly, `close` without the last chunk,
    `reset` the connection, fall into `silence`, send `error` and end; with `mid_line` half a line goes out first.
    """

    path: str = "/"
    verb: str = ""
    skip: int = 0
    count: int | None = None
    delay: float = 0.0  # seconds before anything else
    hang: bool = False  # no answer at all
    status: int = 0  # refuse with this code
    body: str = "status"  # of a refusal: "status", "pretty", "text", or "none"
    reason: str | None = None
    message: str = "refused by a fault"
    cause: str = ""  # details.causes[0].reason of the Status
    retry_after: str | int | None = None  # the header as it is
    null_items: bool = False  # a list says "items":null
    truncate: int | None = None  # bytes of a list's body that are sent
    after: int | None = None  # lines of a watch before its ending
    ending: str = "end"
    mid_line: bool = False
    error: dict[str, Any] = field(default_factory=dict)  # code, reason, message of the ERROR event
    lines: list[str] = field(default_factory=list)  # a watch sends these first, as they are
    silent: bool = False  # a watch sends its headers and nothing else
    bookmarks: bool = True
    write_size: int = 0  # bytes per chunk and write
    write_delay: float = 0.0  # seconds between writes

    def __post_init__(self) -> None:
        if self.ending not in ENDINGS:
            raise ValueError(f"ending: one of {', '.join(ENDINGS)}")


class Faults:
    """The rules in force; the first that meets a request acts."""

    def __init__(self) -> None:
        self.rules: list[Fault] = []

    def set(self, rules: Iterable[Mapping[str, Any]], *, add: bool = False) -> None:
        """Replace the rules, or add to them; `ValueError` for an unknown key."""
        known = {each.name for each in fields(Fault)}
        made = []
        for rule in rules:
            if unknown := set(rule) - known:
                raise ValueError(f"unknown keys of a fault: {', '.join(sorted(unknown))}")
            made.append(Fault(**rule))
        self.rules = [*self.rules, *made] if add else made

    def take(self, path: str, verb: str) -> Fault | None:
        """The fault that meets this request, counted down."""
        for rule in self.rules:
            if not path.startswith(rule.path) or rule.verb not in ("", verb) or rule.count == 0:
                continue
            if rule.skip > 0:
                rule.skip -= 1
                continue
            if rule.count is not None:
                rule.count -= 1
            return rule
        return None

    def report(self) -> list[dict[str, Any]]:
        """The rules with what is left of their counts."""
        return [asdict(rule) for rule in self.rules]
