"""Graphite templates of relabeling: `foo.*.bar` matches dotted names, `$1` is what the first star stood for."""

from __future__ import annotations

import re
from collections.abc import Sequence

_REFERENCE = re.compile(r"\$(?:\{([^}]*)\}|(\{).*|([0-9]*))", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[0-9]+")


class GraphiteTemplate:
    """A star stands for as few characters as may be, none of them a dot."""

    def __init__(self, text: str) -> None:
        self._parts = [part for part in re.split(r"(\*)", text) if part]

    def match(self, name: str) -> list[str] | None:
        """The whole name and what each star stood for; None: no match."""
        parts, found, rest = iter(self._parts), [name], name
        for part in parts:
            if part != "*":
                if not rest.startswith(part):
                    return None
                rest = rest[len(part) :]
                continue
            following = next(parts, None)
            stood, _, after = (rest, "", "") if following is None else rest.partition(following)
            if "." in stood or (following is not None and following not in rest):
                return None
            found.append(stood)
            rest = after
        return None if rest else found


def expand_matches(text: str, found: Sequence[str]) -> str:
    """A label's value; a reference to a star that is not there stays as it is."""

    def group(match: re.Match[str]) -> str:
        if match[2]:  # a brace that is never closed
            return match[0]
        number = match[3] if match[1] is None else match[1]
        place = int(number) if len(number) < 10 and _NUMBER.fullmatch(number) else -1
        return found[place] if 0 <= place < len(found) else match[0]

    return _REFERENCE.sub(group, text)
