"""The `if` of a rule: a series selector, such as `{app="web",env=~"prod|test" or job!=""}`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import ConfigError
from .regexes import Pattern, Runs

_TOKEN = re.compile(
    r"""(?:\s|\#[^\n]*+)*+(?:
    (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)
    | (?P<op>=~|!~|!=|=)
    | (?P<mark>[{},+])
    | (?P<name>(?:[^\W\d]|:|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[^\sxuXU])(?:[\w:.]|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[^\sxuXU])*)
    | (?P<end>\Z))""",
    re.DOTALL | re.VERBOSE,
)
_NAME_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))|([^\\]+)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", '"': '"'}

Filter = tuple[int, str, str | Pattern]
"""Place in `labels`, operator, and what is wanted."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


class SeriesSelector:
    """Alternatives of filters: it matches where all filters of one alternative do. A label that is not there is empty."""

    def __init__(self, text: str, runs: Runs) -> None:
        self.text = text
        self._tokens = self._split()
        self._at = 0
        self._runs = runs
        self.labels: tuple[str, ...] = ()
        """The labels that it reads."""
        self._alternatives = self._parse()

    def matches(self, values: Sequence[Sequence[str]]) -> bool:
        """`values` are those of each of `labels`: one, or several where a name is there more than once, and then any of them counts."""
        return any(all(self._holds(one, values[one[0]]) for one in filters) for filters in self._alternatives)

    def _holds(self, one: Filter, values: Sequence[str]) -> bool:
        place, op, wanted = one
        if isinstance(wanted, Pattern):
            found = any(map(wanted.matches, values))
        else:
            # VictoriaMetrics finds no empty name where there is no name
            found = wanted in values and (wanted != "" or self.labels[place] != "__name__")
        return found != op.startswith("!")

    def _parse(self) -> list[list[Filter]]:
        """`name`, `{filters}` or `name{filters or filters}`."""
        metric = self._next().text if self._peek("name") else None
        alternatives: list[list[Filter]] = [[]]
        names: list[str | None] = [metric]  # of each alternative: the metric that it names
        if metric is not None and self._peek("end"):
            return [[self._filter("__name__", "=", metric)]]
        self._expect("mark", "{")
        while not self._peek("mark", "}"):
            self._one_filter(alternatives[-1], names)
            if self._peek_or():
                self._next()
                alternatives.append([])
                names.append(metric)
                if self._peek("mark", "}"):
                    raise self._error()
            elif not self._peek("mark", "}"):
                self._expect("mark", ",")
        self._next()
        self._expect("end")
        # as in MetricsQL, alternatives without a metric take the one that the others agree on
        named = {name for name in names if name}
        shared = next(iter(named)) if len(named) == 1 else None
        for filters, name in zip(alternatives, names, strict=True):
            if name is None and shared is not None and not any(self.labels[place] == "__name__" for place, _, _ in filters):
                name = shared
            if name is not None:
                filters.insert(0, self._filter("__name__", "=", name))
        if not all(alternatives):
            raise ConfigError(f"if: {self.text!r} selects nothing")
        return alternatives

    def _one_filter(self, filters: list[Filter], names: list[str | None]) -> None:
        token = self._next()
        if token.kind not in ("name", "string"):
            raise self._error(token)
        if token.kind == "string" and not self._peek("op"):
            self._name_metric(token.text, names)
            return
        op = self._expect("op").text
        value = self._expect("string").text
        while self._peek("mark", "+"):
            self._next()
            value += self._expect("string").text
        if token.text == "__name__" and op == "=":
            self._name_metric(value, names)
        else:
            filters.append(self._filter(token.text, op, value))

    def _name_metric(self, name: str, names: list[str | None]) -> None:
        if names[-1] and names[-1] != name:
            raise ConfigError(f"if: two metric names, {names[-1]!r} and {name!r}, in {self.text!r}")
        names[-1] = name

    def _filter(self, name: str, op: str, value: str) -> Filter:
        if name not in self.labels:
            self.labels += (name,)
        wanted: str | Pattern = value
        if "~" in op:
            try:
                wanted = Pattern(value, self._runs)
            except ConfigError as error:
                raise ConfigError(f"if: {self.text!r}: {error}") from None
        return self.labels.index(name), op, wanted

    def _peek(self, kind: str, text: str = "") -> bool:
        token = self._tokens[self._at]
        return token.kind == kind and text in ("", token.text)

    def _peek_or(self) -> bool:
        return self._peek("name") and self._tokens[self._at].text.lower() == "or"

    def _next(self) -> _Token:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _expect(self, kind: str, text: str = "") -> _Token:
        if not self._peek(kind, text):
            raise self._error()
        return self._next()

    def _error(self, token: _Token | None = None) -> ConfigError:
        token = token or self._tokens[self._at]
        what = "ends too early" if token.kind == "end" else f"unexpected {token.text!r}"
        return ConfigError(f"if: {self.text!r} is no series selector: {what}")

    def _split(self) -> list[_Token]:
        found: list[_Token] = []
        at = 0
        while not found or found[-1].kind != "end":
            match = _TOKEN.match(self.text, at)
            if match is None:
                raise ConfigError(f"if: {self.text!r} is no series selector: unexpected {self.text[at:].strip()[:10]!r}")
            kind = str(match.lastgroup)
            found.append(_Token(kind, _plain(kind, match[kind])))
            at = match.end()
        return found


def _plain(kind: str, text: str) -> str:
    if kind == "name":
        return _NAME_ESCAPE.sub(lambda match: match[3] or chr(int(match[1] or match[2], 16)), text)
    if kind != "string" or text.startswith("`"):
        return text[1:-1] if kind == "string" else text
    inner = text[1:-1].replace("\\'", "'") if text.startswith("'") else text[1:-1]
    # \x and \ooo are bytes, of which several may make one character
    made = b""
    for match in _ESCAPE.finditer(inner):
        byte, short, long, octal, one, plain = match.groups()
        if one is not None and one not in _ESCAPED:
            raise ConfigError(f"if: unknown escape \\{one} in {text}")
        if byte or octal:
            made += bytes([int(byte, 16) if byte else int(octal, 8) & 0xFF])
        else:
            made += (plain or _ESCAPED.get(one or "") or chr(int(short or long, 16))).encode("utf-8", "replace")
    return made.decode("utf-8", "replace")
