"""Relabeling once more, in plain Python and by what the two programs document and do: rules as YAML gives them, a list of labels, `re`.

Nothing is shared with the code under test. What the compiled heart, vmagent and Prometheus are compared with.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import xxhash

Rule = Mapping[str, Any]
Pairs = list[list[str]]  # name, value, and in Prometheus' dialect SET if a rule has set it
SET = "set"
Groups = Callable[[str], str]


@dataclass(frozen=True)
class Outcome:
    """`labels` in their final order, None if the target was dropped, and then by which rule; `moved`: see `relabel`."""

    labels: list[tuple[str, str]] | None
    dropped_by: int | None = None


def relabel(labels: Mapping[str, str], rules: Sequence[Rule], dialect: str, *, room: int | None = None) -> Outcome:
    """What is left of the labels after the last rule, empty ones taken away.

    `room` is for VictoriaMetrics' labelmap, which goes over a list that moves in memory when it grows beyond its room, and from then on
    sees no more of what it writes itself. None: there is always room.
    """
    here = [[name, value] for name, value in sorted(labels.items(), key=lambda label: label[0].encode())]
    if dialect == "prometheus":
        here = [label for label in here if label[1]]
    for index, rule in enumerate(rules):
        kept = _apply(here, rule, dialect == "prometheus", room)
        if not kept or (not here and dialect != "prometheus"):
            return Outcome(None, index)
    return Outcome([(name, value) for name, value, *_ in here if name and value])


def final(labels: Mapping[str, str], rules: Sequence[Rule], dialect: str = "victoriametrics") -> dict[str, str] | int | str:
    """The labels that a scraper needs, or the number of the rule that drops the target, or another reason why there are none."""
    outcome = relabel(labels, rules, dialect)
    if outcome.labels is None:
        assert outcome.dropped_by is not None
        return outcome.dropped_by
    left = [label for label in outcome.labels if not label[0].startswith("__meta_")]
    if not left:
        return "no label is left"
    address = _get([list(label) for label in left], "__address__")
    if not address:
        return "no address"
    scheme = _get([list(label) for label in left], "__scheme__")
    made = {name: value for name, value in left if not name.startswith("__tmp")}
    if "instance" not in made:
        made["instance"] = address if dialect == "prometheus" else _with_port(address, scheme)
    return made


def _with_port(address: str, scheme: str) -> str:
    for prefix in ("http://", "https://"):
        if address.startswith(prefix):
            address, scheme = address[len(prefix) :], prefix[:-3]
            break
    host = address.split("/", 1)[0]
    if ":" in host:
        return host
    return host + (":443" if scheme == "https" else ":80")


def _get(here: Pairs, name: str) -> str:
    return next((label[1] for label in here if label[0] == name), "")


def _set(here: Pairs, name: str, value: str, prometheus: bool) -> bool:
    """Whether a label was added."""
    if prometheus and not value:
        here[:] = [label for label in here if label[0] != name]
        return False
    for place, label in enumerate(here):
        if label[0] == name:
            label[1] = value
            if prometheus and len(label) == 2:  # Prometheus' builder keeps what was set apart, behind what there was
                here.append([*here.pop(place), SET])
            return False
    here.append([name, value, SET] if prometheus else [name, value])
    return True


def _apply(here: Pairs, rule: Rule, prometheus: bool, room: int | None) -> bool:
    """One rule, in place; False: the target is dropped."""
    action = str(rule.get("action", "replace")).lower()
    selectors = rule.get("if")
    if selectors is not None and not any(_selected(here, one) for one in ([selectors] if isinstance(selectors, str) else selectors)):
        return action not in ("keep", "keep_metrics")
    sources = ["__name__"] if action.endswith("_metrics") else rule.get("source_labels", [])
    values = [_get(here, name) for name in sources]
    joined = rule.get("separator", ";").join(values)
    target = rule.get("target_label", "")
    default = "regex" not in rule or (not prometheus and _text(rule["regex"]) in ("(.*)", ".*", "^.*$", "^(.*)$", "((.*))", "(?P<all>.*)"))
    regex = "(.*)" if default else _text(rule["regex"])
    replacement = str(rule.get("replacement", "$1"))
    match action:
        case "replace":
            _replace(here, rule, joined, regex, replacement, default, prometheus)
        case "replace_all":
            made = _replace_all(".*" if default and not prometheus else regex, joined, replacement)
            if made != joined:
                _set(here, target, made, prometheus)
        case "keep" | "keep_metrics":
            return _matches(regex, joined)
        case "drop" | "drop_metrics":
            return not _matches(regex, joined)
        case "keepequal":
            return bool(joined == _get(here, target))
        case "dropequal":
            return bool(joined != _get(here, target))
        case "keep_if_equal":
            return len(set(values)) == 1
        case "drop_if_equal":
            return len(set(values)) != 1
        case "keep_if_contains":
            return all(value in _get(here, target) for value in values)
        case "drop_if_contains":
            return not all(value in _get(here, target) for value in values)
        case "hashmod":
            if prometheus:
                number = int(hashlib.md5(joined.encode(), usedforsecurity=False).hexdigest()[16:], 16) % rule["modulus"]
            else:
                number = xxhash.xxh64(joined.encode()).intdigest() % rule["modulus"]
                number -= (1 << 64) if number >= 1 << 63 else 0
            _set(here, target, str(number), prometheus)
        case "lowercase":
            _set(here, target, "".join("i" if one == "İ" else one.lower() for one in joined), prometheus)
        case "uppercase":
            _set(here, target, "".join(one if one in "ßŉﬁ" else "ᾼ" if one == "ᾳ" else one.upper() for one in joined), prometheus)
        case "labelmap":
            _labelmap(here, regex, replacement, default, prometheus, room)
        case "labelmap_all":
            for label in here:
                label[0] = _replace_all(".*" if default and not prometheus else regex, label[0], replacement)
        case "labeldrop":
            here[:] = [label for label in here if not _matches(regex, label[0])]
        case "labelkeep":
            here[:] = [label for label in here if _matches(regex, label[0])]
        case "graphite":
            _graphite(here, rule, prometheus)
        case _:
            raise AssertionError(action)
    return True


def _replace(here: Pairs, rule: Rule, joined: str, regex: str, replacement: str, default: bool, prometheus: bool) -> None:
    target = rule["target_label"]
    if prometheus:
        match = _match(regex, joined, re.DOTALL)
        if match is not None and (name := _expand(target, _groups(match))):
            _set(here, name, _expand(replacement, _groups(match)), prometheus)
        return
    filled = re.sub(r"\{\{(.*?)\}\}", lambda found: _get(here, found[1]), replacement, flags=re.DOTALL)
    if default and "$" not in target and (filled == "$1" or "$" not in replacement):
        _set(here, target, joined if filled == "$1" else filled, prometheus)
        return
    if not _matches(regex, joined):
        return
    match = _match(regex, joined, 0)
    groups: Groups = (lambda _: "") if match is None else _groups(match)
    value = joined if match is None and filled == replacement else _expand(filled, groups)
    _set(here, _expand(target, groups), value, prometheus)


def _labelmap(here: Pairs, regex: str, replacement: str, default: bool, prometheus: bool, room: int | None) -> None:
    if prometheus:
        for name, value, *_ in [tuple(label) for label in here]:
            match = _match(regex, name, re.DOTALL)
            if match is not None:
                _set(here, _expand(replacement, _groups(match)), value, prometheus)
        return
    seen = list(here)  # the same labels, as long as there is room
    added = 0
    plain = re.fullmatch(r"\^*([\w]+)\(\.[*+]\)\$*", regex) if replacement == "$1" and not default else None
    for place in range(len(seen)):
        name, value = seen[place]
        match = _match(regex, name, re.DOTALL if plain else 0)
        if match is None or (made := _expand(replacement, _groups(match))) == name:
            continue
        before = [list(label) for label in seen]
        if _set(here, made, value, prometheus):
            added += 1
            if room is not None and added == room + 1:
                seen = before


def _graphite(here: Pairs, rule: Rule, prometheus: bool) -> None:
    parts = [part for part in re.split(r"(\*)", rule["match"]) if part]
    expression, place = "", 0
    while place < len(parts):
        if parts[place] == "*":
            following = parts[place + 1] if place + 1 < len(parts) else None
            # as few as lead to the next part, and only there
            expression += r"([^.]*)\Z" if following is None else rf"((?:(?!{re.escape(following)})[^.])*){re.escape(following)}"
            place += 1 if following is None else 2
        else:
            expression += re.escape(parts[place])
            place += 1
    match = re.match(rf"(?:{expression})\Z", _get(here, "__name__"), re.DOTALL)
    if match is None:
        return
    found = [match[0], *match.groups()]

    def group(reference: re.Match[str]) -> str:
        number = int(reference[1] or reference[2] or -1)
        return found[number] if 0 <= number < len(found) else reference[0]

    for name, text in rule["labels"].items():
        _set(here, name, re.sub(r"\$(?:\{(\d+)\}|(\d+))", group, text), prometheus)


def _text(regex: Any) -> str:
    if isinstance(regex, list):
        return "|".join(map(_text, regex))
    return str(regex).lower() if isinstance(regex, bool) else str(regex)


def _bare(regex: str) -> str:
    """Without the anchors around it."""
    regex = regex.lstrip("^")
    while regex.endswith("$") and not regex.endswith("\\$"):
        regex = regex[:-1]
    return regex


def _match(regex: str, text: str, flags: int) -> re.Match[str] | None:
    return re.fullmatch(_bare(regex), text, flags | re.ASCII)


def _matches(regex: str, text: str) -> bool:
    return _match(regex, text, re.DOTALL) is not None


def _groups(match: re.Match[str]) -> Groups:
    def group(name: str) -> str:
        if name.isdecimal() and name.isascii() and (name == "0" or name[0] != "0"):
            return (match[int(name)] or "") if int(name) <= match.re.groups else ""
        return match.groupdict().get(name) or ""

    return group


def _expand(template: str, group: Groups) -> str:
    """As Go's Regexp.Expand."""

    def one(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        return group(found[1] or found[2])

    return re.sub(r"\$\$|\$\{(\w+)\}|\$(\w+)", one, template)


def _replace_all(regex: str, text: str, replacement: str) -> str:
    """As Go's Regexp.ReplaceAllString."""
    compiled = re.compile(regex, re.ASCII)
    made, last, at = "", 0, 0
    while at <= len(text):
        match = compiled.search(text, at)
        if match is None:
            break
        made += text[last : match.start()]
        if match.end() > last or match.start() == 0:
            made += _expand(replacement, _groups(match))
        last = match.end()
        at = last if last > at else at + 1
    return made + text[last:]


def _selected(here: Pairs, selector: str) -> bool:
    """`name{label="value",…or…}`, in the forms that the tests write: strings in double quotes, regular expressions as in rules."""
    name, brace, inside = selector.partition("{")
    alternatives = re.split(r"\s+or\s+(?=[\w.]+\s*[=!])", inside.rstrip("}")) if brace else [""]
    for alternative in alternatives:
        filters = re.findall(r'([\w.]+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"', alternative)
        if name:
            filters.append(("__name__", "=", name))
        if all(_holds(here, *one) for one in filters):
            return True
    return False


def _holds(here: Pairs, label: str, op: str, wanted: str) -> bool:
    wanted = re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), wanted)
    values = [one[1] for one in here if one[0] == label]
    if not values and not (label == "__name__" and "~" not in op):
        values = [""]
    found = any(_matches(wanted, value) if "~" in op else value == wanted for value in values)
    return found != op.startswith("!")
