"""One relabeling rule as a user writes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import ConfigError
from .sections import Section, kind_of, mapping_at, meant, within

PROMETHEUS_ACTIONS = (
    "replace", "keep", "drop", "keepequal", "dropequal", "hashmod", "labelmap", "labeldrop", "labelkeep", "lowercase", "uppercase",
)  # fmt: skip
VICTORIAMETRICS_ACTIONS = (
    "replace_all", "labelmap_all", "keep_if_equal", "drop_if_equal", "keep_if_contains", "drop_if_contains", "graphite",
    "keep_metrics", "drop_metrics",
)  # fmt: skip
"""Those that Prometheus has not."""
ACTIONS = PROMETHEUS_ACTIONS + VICTORIAMETRICS_ACTIONS


@dataclass(frozen=True, slots=True)
class RelabelConfig:
    """A rule of `relabel_configs`; None: the key is not given, and its default holds. What it means is checked when it is compiled."""

    action: str = "replace"
    source_labels: tuple[str, ...] = ()
    separator: str = ";"
    target_label: str = ""
    regex: str | None = None
    """A list of several is joined with `|`; the default is `(.*)`."""
    modulus: int = 0
    replacement: str | None = None
    """The default is `$1`."""
    if_: tuple[str, ...] = ()
    """Series selectors, `if` in YAML; the rule runs where one of them matches."""
    match: str = ""
    """Of `graphite`: the template."""
    labels: tuple[tuple[str, str], ...] = ()
    """Of `graphite`: labels and what they are set to."""

    def __post_init__(self) -> None:
        """Takes what YAML may have too: one selector, numbers for texts, a list of expressions."""
        action: Any = self.action
        if not isinstance(action, str) or action.lower() not in ACTIONS:
            raise ConfigError(f"action: must be one of {', '.join(ACTIONS)}, not {action!r}")
        sources: Any = self.source_labels
        if not isinstance(sources, (list, tuple)) or not all(isinstance(one, str) for one in sources):
            raise ConfigError(f"source_labels: must be a list of strings, not {sources!r}")
        given: Any = self.labels.items() if isinstance(self.labels, Mapping) else self.labels
        labels = tuple(map(_pair, given)) if isinstance(given, Iterable) and not isinstance(given, str) else ((),)
        if not all(len(pair) == 2 for pair in labels):
            raise ConfigError(f"labels: must be pairs of names and texts, not {self.labels!r}")
        checked: dict[str, Any] = {
            "action": self.action.lower(),
            "source_labels": tuple(self.source_labels),
            "separator": plain_text("separator", self.separator),
            "target_label": plain_text("target_label", self.target_label),
            "regex": _optional(_regex, self.regex),
            "modulus": _modulus(self.modulus),
            "replacement": _optional(lambda value: plain_text("replacement", value), self.replacement),
            "if_": _selectors(self.if_),
            "match": plain_text("match", self.match),
            "labels": labels,
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
            for text in (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ():
                _check_utf8(name, text)

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any], *, path: str = "") -> RelabelConfig:
        """From a mapping as YAML gives it; `path` leads error messages."""
        mapping = mapping_at(path, mapping)
        with within(path):
            section = Section(mapping)
            rule = cls(
                action=section.text("action") or "replace",
                source_labels=tuple(plain_text(place, value) for place, value in section.items("source_labels")),
                separator=plain_text("separator", section.take("separator", ";")),
                target_label=plain_text("target_label", section.take("target_label", "")),
                regex=_optional(_regex, section.take("regex")),
                modulus=_modulus(section.take("modulus", 0)),
                replacement=_optional(lambda value: plain_text("replacement", value), section.take("replacement")),
                if_=_selectors(section.take("if", ())),
                match=plain_text("match", section.take("match", "")),
                labels=_labels(section),
            )
            section.end()
            return rule


_DEEPEST = 10
_LONGEST_INTEGER = 10**300  # Python writes no more than 4,300 digits


def load_rules(rules: object, *, path: str = "relabel_configs") -> tuple[RelabelConfig, ...]:
    """A list of rules as YAML gives it."""
    if rules is None:
        return ()
    if not isinstance(rules, Sequence) or isinstance(rules, str):
        raise ConfigError(f"{path}: must be a list, not {kind_of(rules)}")
    return tuple(RelabelConfig.from_dict(rule, path=f"{path}[{index}]") for index, rule in enumerate(rules))


def _optional(read: Callable[[Any], str], value: object) -> str | None:
    return None if value is None else read(value)


def plain_text(place: str, value: object) -> str:
    """A number stands for its text, as in `replacement: 9100`; of true and false outside of a file nobody knows how they were written."""
    if isinstance(value, bool):
        raise ConfigError(f"{place}: must be a string; put it in quotes")
    if isinstance(value, (str, int, float)):
        return _number(value)
    raise ConfigError(f"{place}: must be a string, not {kind_of(value)}")


def _regex(value: object, depth: int = 0) -> str:
    """Numbers and booleans stand for their text, and a list for its alternatives."""
    value = meant(value)
    if isinstance(value, (list, tuple)):
        if depth == _DEEPEST:  # YAML's aliases can make a list that holds itself
            raise ConfigError("regex: lists in lists, without end")
        return "|".join("null" if one is None else _regex(one, depth + 1) for one in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return _number(value)
    raise ConfigError(f"regex: must be a string or a list of strings, not {kind_of(value)}")


def _pair(pair: object) -> tuple[str, ...]:
    if not isinstance(pair, (list, tuple)):
        return ()
    return tuple(plain_text("labels", one) for one in pair)


def _check_utf8(name: str, text: object) -> None:
    """A lone surrogate is no character: no label can have it."""
    try:
        if isinstance(text, str):
            text.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"{name.rstrip('_')}: no valid text: {text!r}") from None


def _number(value: str | float) -> str:
    """As Go writes it: 1.0 is 1, and there is no exponent."""
    if isinstance(value, int) and not -_LONGEST_INTEGER < value < _LONGEST_INTEGER:
        raise ConfigError("an integer of so many digits must be in quotes")
    if isinstance(value, float) and math.isfinite(value):
        from decimal import Decimal

        return f"{Decimal(repr(value)).normalize():f}"
    return str(value)


def _modulus(value: object) -> int:
    value = meant(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 64:
        raise ConfigError(f"modulus: must be a whole number, not {_short(value)}")
    return value


def _short(value: object) -> str:
    """For a message; a number may have more digits than Python writes."""
    return "a longer one" if isinstance(value, int) and abs(value) >= _LONGEST_INTEGER else repr(value)


def _selectors(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value) and value != []:
        return tuple(value)
    raise ConfigError("if: must be a series selector or a list of them")


def _labels(section: Section) -> tuple[tuple[str, str], ...]:
    inner = section.section("labels")
    if inner is None:
        return ()
    with inner:
        return tuple((plain_text("name", name), plain_text(name, inner.take(name))) for name in inner.keys())  # noqa: SIM118  (a Section is no mapping)
