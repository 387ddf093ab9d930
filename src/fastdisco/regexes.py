"""Regular expressions of relabeling rules: RE2, unless the expression is so plain that no engine is needed."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from .errors import ConfigError

Groups = Callable[[int | str], str]
"""What a group has matched, by its number or name; empty if there is no such group."""

_TEXT = r"(?:[^\\.+*?()|\[\]{}^$]|\\[^\w\s])*"
_TEXTS = re.compile(rf"(?P<open>\(\?:|\((?!\?))?(?P<texts>{_TEXT}(?:\|{_TEXT})*)(?(open)\))")
_AROUND = re.compile(rf"(?P<before>{_TEXT})(?P<any>\.[*+]|\(\.[*+]\))(?P<after>{_TEXT})")
_ANY = re.compile(r"(?:\^|\(\?[is]+\)|\((?:\?(?:[is]*:|P?<\w+>))?)*\.\*[)$]*")


class Template:
    """A replacement such as `$1:${port}`, as Go expands it: `$$` is a dollar, and so is one that begins no reference."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts: list[str | tuple[int | str]] = []  # a reference is in a tuple
        before, dollar, rest = text.partition("$")
        while dollar:
            if rest.startswith("$"):
                name, rest = "", rest[1:]
            else:
                name, rest = _reference(rest)
            self._parts += [before, (_number(name),)] if name else [before, "$"]
            before, dollar, rest = rest.partition("$")
        self._parts.append(before)

    def expand(self, groups: Groups) -> str:
        """The text, with the group of each reference in its place."""
        return "".join(part if isinstance(part, str) else groups(part[0]) for part in self._parts)


class Runs:
    """How often RE2 has run; for tests and for `explain`."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Pattern:
    """An expression anchored at both ends, `.` matching newlines too; `^` and `$` around it mean nothing more."""

    def __init__(self, expression: str, runs: Runs) -> None:
        self.expression = expression
        self._runs = runs
        self.bare = without_anchors(expression)
        self._texts: frozenset[str] | None = None
        self._before = self._after = ""
        self._least = 0
        self._grouped = False
        self._re2: Any = None
        self._re2_narrow: Any = None
        compile_re2(self.bare)  # what RE2 refuses is refused, also where it is not needed
        if (match := _TEXTS.fullmatch(self.bare)) is not None:
            # not by str.split: an escaped | is text
            self._texts = frozenset(map(_unescape, _alternatives(match["texts"])))
            self._grouped = match["open"] == "("
        elif (match := _AROUND.fullmatch(self.bare)) is not None:
            self._before, self._after = _unescape(match["before"]), _unescape(match["after"])
            self._least = len(self._before) + len(self._after) + ("+" in match["any"])
            self._grouped = match["any"].startswith("(")
        else:
            self._re2 = compile_re2(f"^(?s:{self.bare})$")

    @property
    def needs_re2(self) -> bool:
        return self._re2 is not None

    def matches(self, text: str) -> bool:
        if self._texts is not None:
            return text in self._texts
        if self._re2 is None:
            return len(text) >= self._least and text.startswith(self._before) and text.endswith(self._after)
        self._runs.count += 1
        return self._re2.match(text) is not None

    def groups(self, text: str, *, newlines: bool = True) -> Groups | None:
        """None: no match. Without `newlines`, `.` matches none."""
        if self._re2 is None:
            if not self.matches(text):
                return None
            middle = text if self._texts is not None else text[len(self._before) : len(text) - len(self._after)]
            if not newlines and self._texts is None and "\n" in middle:
                return None
            found = (text, middle) if self._grouped else (text,)
            return lambda name: found[name] if isinstance(name, int) and name < len(found) else ""
        if newlines or "\n" not in text:
            compiled = self._re2
        else:
            compiled = self._re2_narrow = self._re2_narrow or compile_re2(f"^(?:{self.bare})$")
        self._runs.count += 1
        match = compiled.match(text)
        return None if match is None else partial(_group, match)


class Search:
    """An expression that is looked for anywhere; here `.` matches no newline."""

    def __init__(self, expression: str, runs: Runs) -> None:
        self._re2 = compile_re2(expression)
        self._runs = runs

    def replace_all(self, text: str, template: Template) -> str:
        """Each match replaced. As Go has it, an empty match right after another match is none."""
        self._runs.count += 1
        made, at, last = [], 0, -1
        for match in self._re2.finditer(text):
            if match.start() == match.end() == last:
                continue
            made += [text[at : match.start()], template.expand(partial(_group, match))]
            at = last = match.end()
        return "".join(made) + text[at:]


def matches_anything(expression: str) -> bool:
    """Whether an expression is another spelling of `.*`."""
    return _ANY.fullmatch(expression) is not None


def no_groups(_name: int | str) -> str:
    """The groups where nothing has matched."""
    return ""


def without_anchors(expression: str) -> str:
    expression = expression.lstrip("^")
    while expression.endswith("$") and not expression.endswith("\\$"):
        expression = expression[:-1]
    return expression


def compile_re2(expression: str) -> Any:
    """ConfigError, with RE2's reason, for what is no expression."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        raise ConfigError(f"regex: {reason.decode() if isinstance(reason, bytes) else reason}") from None


def _alternatives(texts: str) -> list[str]:
    found = [""]
    for part in re.findall(r"\\.|\||[^\\|]+", texts, re.DOTALL):
        if part == "|":
            found.append("")
        else:
            found[-1] += part
    return found


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _reference(text: str) -> tuple[str, str]:
    """The name that a reference after its dollar has, and the rest; without name the dollar is one."""
    braced = text.startswith("{")
    end = start = int(braced)
    while end < len(text) and (text[end] == "_" or text[end].isalpha() or text[end].isdecimal()):
        end += 1
    if end == start or (braced and text[end : end + 1] != "}"):
        return "", text
    return text[start:end], text[end + braced :]


def _number(name: str) -> int | str:
    """A group's number, if the name is one; a number with zeros in front is none."""
    is_number = name.isascii() and name.isdigit() and len(name) <= 9 and (name == "0" or not name.startswith("0"))
    return int(name) if is_number else name


def _group(match: Any, name: int | str) -> str:
    try:
        return match.group(name) or ""
    except (IndexError, KeyError):
        return ""
