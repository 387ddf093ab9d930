"""Label and field selectors, compiled to predicates; what is malformed or unsupported is a 400."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from fastdisco.synthetic.status import StatusError

if TYPE_CHECKING:
    from fastdisco.synthetic.resources import Resource
    from fastdisco.synthetic.store import Entry

Labels = Mapping[str, str]
Requirement = Callable[[Labels], bool]

_TOKEN = re.compile(r"\s*(==|!=|[=!,()<>]|[^\s=!,()<>]+)")
_PUNCTUATION = ("=", "==", "!=", "!", ",", "(", ")", "<", ">")
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_KEY = re.compile(rf"(?:[a-z0-9](?:[a-z0-9.-]{{0,251}}[a-z0-9])?/)?{_NAME}")
_VALUE = re.compile(rf"(?:{_NAME})?")


def _refuse(found: str, expected: str) -> StatusError:
    return StatusError(400, f"unable to parse requirement: found '{found}', expected: {expected}")


def _tokens(text: str) -> Iterator[str]:
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None  # the last alternative takes whatever the others leave
        yield match[1]
        position = match.end()
    while True:
        yield ""


def _key(token: str) -> str:
    if not token or token in _PUNCTUATION:
        raise _refuse(token, "identifier")
    if not _KEY.fullmatch(token):
        raise StatusError(400, f'unable to parse requirement: invalid label key "{token}"')
    return token


def _value(token: str) -> str:
    if token in _PUNCTUATION:
        raise _refuse(token, "identifier")
    if not _VALUE.fullmatch(token):
        raise StatusError(400, f'unable to parse requirement: invalid label value "{token}"')
    return token


def _values(tokens: Iterator[str]) -> frozenset[str]:
    if (token := next(tokens)) != "(":
        raise _refuse(token, "'('")
    values = set()
    empty = True
    while True:
        token = next(tokens)
        if token in (",", ")"):
            if empty:
                values.add("")
            if token == ")":
                return frozenset(values)
            empty = True
        elif not empty or not token:
            raise _refuse(token, "',' or ')'")
        else:
            values.add(_value(token))
            empty = False


def _compare(key: str, operator: str, bound: str) -> Requirement:
    if not re.fullmatch(r"-?\d+", bound):
        raise StatusError(400, f"unable to parse requirement: for 'Gt', 'Lt' operators, the value must be an integer: \"{bound}\"")
    number, sign = int(bound), 1 if operator == ">" else -1

    def holds(labels: Labels) -> bool:
        value = labels.get(key, "")
        return re.fullmatch(r"-?\d+", value) is not None and sign * int(value) > sign * number

    return holds


def _exists(key: str, wanted: bool) -> Requirement:
    return lambda labels: (key in labels) is wanted


def _one_of(key: str, values: frozenset[str], wanted: bool) -> Requirement:
    return lambda labels: (labels.get(key) in values) is wanted


def _requirement(token: str, tokens: Iterator[str]) -> tuple[Requirement, str]:
    """One requirement that starts with this token, and the token after it."""
    if token == "!":
        return _exists(_key(next(tokens)), False), next(tokens)
    key, operator = _key(token), next(tokens)
    if operator in ("", ","):
        return _exists(key, True), operator
    if operator in ("=", "==", "!="):
        value = next(tokens)
        following = value if value in ("", ",") else next(tokens)
        wanted = "" if value in ("", ",") else _value(value)
        return _one_of(key, frozenset((wanted,)), operator != "!="), following
    if operator in ("in", "notin"):
        return _one_of(key, _values(tokens), operator == "in"), next(tokens)
    if operator in ("<", ">"):
        return _compare(key, operator, next(tokens)), next(tokens)
    raise _refuse(operator, "in, notin, =, ==, !=, gt, lt")


def parse_labels(text: str) -> Requirement | None:
    """The predicate of a label selector; `None` if everything matches."""
    if not text.strip():
        return None
    tokens = _tokens(text)
    requirements = []
    token = ","
    while token == ",":
        requirement, token = _requirement(next(tokens), tokens)
        requirements.append(requirement)
    if token:
        raise _refuse(token, "',' or 'end of string'")
    if len(requirements) == 1:
        return requirements[0]
    return lambda labels: all(holds(labels) for holds in requirements)


def parse_fields(text: str, resource: Resource) -> Callable[[Entry], bool] | None:
    """The predicate of a field selector over what the resource supports; `None` if everything matches."""
    terms: list[tuple[str, str, bool]] = []
    for term in re.split(r"(?<!\\),", text):
        if not term.strip():
            continue
        parts = re.match(r"\s*([^=!]+?)\s*(==|!=|=)(.*)", term)
        if parts is None:
            raise StatusError(400, f"invalid selector: '{term}'; can't understand '{term}'")
        name, operator, value = parts[1], parts[2], re.sub(r"\\(.)", r"\1", parts[3].strip())
        if name not in resource.fields:
            if resource.plural == "pods":
                raise StatusError(400, f"field label not supported: {name}")
            known = ", ".join(f'"{field}"' for field in resource.fields)
            raise StatusError(400, f'"{name}" is not a known field selector: only {known}')
        terms.append((name, value, operator != "!="))
    if not terms:
        return None
    return lambda entry: all((entry.field(name) == value) is equal for name, value, equal in terms)


def parse_selectors(labels: str, fields: str, resource: Resource) -> Callable[[Entry], bool] | None:
    """Both selectors of a request as one predicate; `None` if neither narrows anything."""
    by_label, by_field = parse_labels(labels), parse_fields(fields, resource)
    if by_label is None:
        return by_field
    if by_field is None:
        return lambda entry: by_label(entry.labels)
    return lambda entry: by_label(entry.labels) and by_field(entry)
