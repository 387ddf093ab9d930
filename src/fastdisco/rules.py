"""A relabeling rule as written becomes a rule as run: what it reads, what it writes, and a function of the values read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import xxhash

from .errors import ConfigError
from .regexes import Groups, Pattern, Runs, Search, Template, compile_re2, matches_anything, no_groups
from .relabel_config import VICTORIAMETRICS_ACTIONS, RelabelConfig

Values = Sequence[str]

# What a rule does with the outcome of its function.
SET = "set"  # outcome: a value for each of `targets`, or None for no change
COPY_VALUE = "copy value"  # a SET whose outcome is always the value of its one source
SET_NAMED = "set named"  # outcome: (label, value), or None for no change
KEEP = "keep"  # outcome: whether the target is kept
COPY_LABELS = "copy labels"  # function of each label's name; outcome: the name to copy to, or None
RENAME_LABELS = "rename labels"  # the same, renaming; outcome: the new name
KEEP_LABELS = "keep labels"  # function of each label's name; outcome: whether the label is kept


class Guard(NamedTuple):
    """The `if` of a rule."""

    sources: tuple[str, ...]
    function: Callable[[Values], bool]
    function_of_all: Callable[[Sequence[Values]], bool]
    """The same where names repeat: of the values of each name, any counts."""
    drops: bool
    """`keep` drops the target where its `if` does not match; other rules are passed over."""


class Rule(NamedTuple):
    """A rule as run. `function` is pure, so its outcome may be remembered for the values that it was given."""

    config: RelabelConfig
    kind: str
    sources: tuple[str, ...]
    """Labels whose values the function is given, in order; what is not there is empty. Of rules over names: none."""
    targets: tuple[str, ...]
    function: Callable[[Any], Any]
    guard: Guard | None = None
    prometheus: bool = False
    """How labels are set: an empty value takes the label away, and a rule over names does not see what it writes itself."""
    uses_re2: bool = False


def compile_rule(config: RelabelConfig, dialect: str, runs: Runs) -> Rule:
    """ConfigError, with the key, for a rule that makes no sense. All differences between the dialects are made here; docs/relabeling.md
    has them as a table."""
    _check_fields(config, dialect)
    prometheus = dialect == "prometheus"
    guard = _guard(config, runs)
    action, separator, sources = config.action, config.separator, config.source_labels
    if action in ("keep_metrics", "drop_metrics"):
        action, sources = action.partition("_")[0], ("__name__",)
    expression = "(.*)" if config.regex is None else config.regex
    # VictoriaMetrics takes every spelling of "anything" for the default, whose first group is all of the text
    is_default = config.regex is None or (not prometheus and matches_anything(expression))
    if is_default:
        compile_re2(expression)
        expression = ".*" if action.endswith("_all") and not prometheus else "(.*)"
    template = Template("$1" if config.replacement is None else config.replacement)
    uses_re2 = False

    def anchored() -> Pattern:
        nonlocal uses_re2
        pattern = Pattern(expression, runs)
        uses_re2 |= pattern.needs_re2
        return pattern

    def made(kind: str, function: Callable[[Any], Any], *, reads: tuple[str, ...] = sources, writes: tuple[str, ...] = ()) -> Rule:
        return Rule(config, kind, reads, writes, function, guard, prometheus, uses_re2 or action.endswith("_all"))

    match action:
        case "replace" if prometheus:
            kind, function = _prometheus_replace(config, anchored(), template)
            if kind == SET and len(sources) == 1 and (expression, template.text) == ("(.*)", "$1"):
                kind = COPY_VALUE
            return made(kind, function, writes=() if kind == SET_NAMED else (config.target_label,))
        case "replace":
            references = _references(template.text)
            kind, function = _victoriametrics_replace(config, anchored(), template, references, is_default=is_default)
            if kind == SET and len(sources) == 1 and is_default and template.text == "$1":
                kind = COPY_VALUE
            return made(kind, function, reads=sources + references, writes=() if kind == SET_NAMED else (config.target_label,))
        case "replace_all":
            search = Search(expression, runs)

            def replace_all(values: Values) -> tuple[str] | None:
                joined = separator.join(values)
                replaced = search.replace_all(joined, template)
                return None if replaced == joined else (replaced,)

            return made(SET, replace_all, writes=(config.target_label,))
        case "keep" | "drop":
            keeps = action == "keep"
            if is_default:  # the `if` alone decides
                return made(KEEP, lambda _: keeps, reads=())
            pattern = anchored()
            return made(KEEP, lambda values: pattern.matches(separator.join(values)) == keeps)
        case "keepequal" | "dropequal":
            keeps = action == "keepequal"
            return made(KEEP, lambda values: (separator.join(values[:-1]) == values[-1]) == keeps, reads=(*sources, config.target_label))
        case "keep_if_equal" | "drop_if_equal":
            keeps = action == "keep_if_equal"
            return made(KEEP, lambda values: (len(set(values)) == 1) == keeps)
        case "keep_if_contains" | "drop_if_contains":
            keeps = action == "keep_if_contains"
            return made(KEEP, lambda values: all(one in values[-1] for one in values[:-1]) == keeps, reads=(*sources, config.target_label))
        case "hashmod":
            remainder = _md5_remainder if prometheus else _xxhash_remainder
            return made(SET, lambda values: (remainder(separator.join(values), config.modulus),), writes=(config.target_label,))
        case "lowercase":
            return made(SET, lambda values: (_lower(separator.join(values)),), writes=(config.target_label,))
        case "uppercase":
            return made(SET, lambda values: (_upper(separator.join(values)),), writes=(config.target_label,))
        case "labelmap":
            mapping = _prometheus_labelmap if prometheus else _victoriametrics_labelmap
            return made(COPY_LABELS, mapping(anchored(), template), reads=())
        case "labelmap_all":
            renaming = Search(expression, runs)
            return made(RENAME_LABELS, lambda name: renaming.replace_all(name, template), reads=())
        case "labeldrop":
            pattern = anchored()
            return made(KEEP_LABELS, lambda name: not pattern.matches(name), reads=())
        case "labelkeep":
            return made(KEEP_LABELS, anchored().matches, reads=())
        case _:
            return made(SET, _graphite(config), reads=("__name__",), writes=tuple(name for name, _ in config.labels))


def _prometheus_replace(config: RelabelConfig, pattern: Pattern, template: Template) -> tuple[str, Callable[[Values], Any]]:
    separator, target = config.separator, Template(config.target_label)

    def value(values: Values) -> tuple[str] | None:
        groups = pattern.groups(separator.join(values))
        return None if groups is None else (template.expand(groups),)

    def named(values: Values) -> tuple[str, str] | None:
        groups = pattern.groups(separator.join(values))
        name = "" if groups is None else target.expand(groups)
        return (name, template.expand(groups)) if name and groups is not None else None

    return (SET_NAMED, named) if "$" in target.text else (SET, value)


def _victoriametrics_replace(
    config: RelabelConfig, pattern: Pattern, template: Template, references: tuple[str, ...], *, is_default: bool
) -> tuple[str, Callable[[Values], Any]]:
    separator, count, target = config.separator, len(config.source_labels), Template(config.target_label)

    def found(values: Values) -> tuple[str, Groups] | None:
        """The value, and the groups for the target's name."""
        joined = separator.join(values[:count])
        text = _filled(template.text, dict(zip(references, values[count:], strict=True))) if references else template.text
        if is_default and "$" not in target.text:
            if text == "$1":
                return joined, no_groups
            if "$" not in template.text:
                return text, no_groups
        # a match may reach across newlines, but not to take groups from it
        groups = pattern.groups(joined, newlines=False)
        if groups is None and ("\n" not in joined or not pattern.matches(joined)):
            return None
        if text != template.text:
            return Template(text).expand(groups or no_groups), groups or no_groups
        return joined if groups is None else template.expand(groups), groups or no_groups

    def value(values: Values) -> tuple[str] | None:
        outcome = found(values)
        return None if outcome is None else (outcome[0],)

    def named(values: Values) -> tuple[str, str] | None:
        outcome = found(values)
        return None if outcome is None else (target.expand(outcome[1]), outcome[0])

    return (SET_NAMED, named) if "$" in target.text else (SET, value)


def _prometheus_labelmap(pattern: Pattern, template: Template) -> Callable[[str], str | None]:
    def mapped(name: str) -> str | None:
        groups = pattern.groups(name)
        return None if groups is None else template.expand(groups)

    return mapped


def _victoriametrics_labelmap(pattern: Pattern, template: Template) -> Callable[[str], str | None]:
    # the one form in which a group reaches across newlines
    plain = re.fullmatch(r"([^\\.+*?()|\[\]{}^$]+)\(\.[*+]\)", pattern.bare) if template.text == "$1" else None

    def mapped(name: str) -> str | None:
        groups = pattern.groups(name, newlines=plain is not None)
        return None if groups is None else template.expand(groups)

    return mapped


def _references(replacement: str) -> tuple[str, ...]:
    """Labels that a replacement names as {{label}}."""
    names, rest = [], replacement
    while (start := rest.find("{{")) >= 0 and (end := rest.find("}}", start + 2)) >= 0:
        names.append(rest[start + 2 : end])
        rest = rest[end + 2 :]
    return tuple(dict.fromkeys(names))


def _filled(text: str, values: dict[str, str]) -> str:
    made = []
    while (start := text.find("{{")) >= 0 and (end := text.find("}}", start + 2)) >= 0:
        made += [text[:start], values[text[start + 2 : end]]]
        text = text[end + 2 :]
    return "".join(made) + text


def _graphite(config: RelabelConfig) -> Callable[[Values], tuple[str, ...] | None]:
    from .graphite import GraphiteTemplate, expand_matches

    template = GraphiteTemplate(config.match)
    texts = [text for _, text in config.labels]

    def outcome(values: Values) -> tuple[str, ...] | None:
        found = template.match(values[0])
        return None if found is None else tuple(expand_matches(text, found) for text in texts)

    return outcome


def _guard(config: RelabelConfig, runs: Runs) -> Guard | None:
    if not config.if_:
        return None
    from .series_selector import SeriesSelector

    selectors = [SeriesSelector(text, runs) for text in config.if_]
    labels = tuple(dict.fromkeys(label for selector in selectors for label in selector.labels))
    places = [[labels.index(label) for label in selector.labels] for selector in selectors]

    def matches(values: Sequence[Values]) -> bool:
        return any(one.matches([values[place] for place in own]) for one, own in zip(selectors, places, strict=True))

    drops = config.action in ("keep", "keep_metrics")
    return Guard(labels, lambda values: matches([(value,) for value in values]), matches, drops)


def _md5_remainder(text: str, modulus: int) -> str:
    """Of the last eight bytes, as Prometheus takes them."""
    return str(int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[8:], "big") % modulus)


def _xxhash_remainder(text: str, modulus: int) -> str:
    """As a signed number, as VictoriaMetrics has it: that shows above 2**63."""
    remainder = xxhash.xxh64_intdigest(text.encode()) % modulus
    return str(remainder if remainder < 1 << 63 else remainder - (1 << 64))


def _lower(text: str) -> str:
    """Character by character, as Go has it."""
    return text.lower() if text.isascii() else "".join("i" if one == "\u0130" else one.lower() for one in text)


def _upper(text: str) -> str:
    """Character by character, each becoming one; those whose capital has several stay, or have a title form of one."""
    if text.isascii():
        return text.upper()
    return "".join(next((made for made in (one.upper(), one.title()) if len(made) == 1), one) for one in text)


# What has an effect on each action, beside `if`; and without what it makes no sense.
_USES = {
    "replace": ("source_labels", "regex", "target_label", "replacement"),
    "replace_all": ("source_labels", "regex", "target_label", "replacement"),
    "keep": ("source_labels", "regex"), "drop": ("source_labels", "regex"), "keep_metrics": ("regex",), "drop_metrics": ("regex",),
    "keepequal": ("source_labels", "target_label"), "dropequal": ("source_labels", "target_label"),
    "keep_if_equal": ("source_labels",), "drop_if_equal": ("source_labels",),
    "keep_if_contains": ("source_labels", "target_label"), "drop_if_contains": ("source_labels", "target_label"),
    "hashmod": ("source_labels", "target_label", "modulus"),
    "lowercase": ("source_labels", "target_label"), "uppercase": ("source_labels", "target_label"),
    "labelmap": ("regex", "replacement"), "labelmap_all": ("regex", "replacement"), "labeldrop": ("regex",), "labelkeep": ("regex",),
    "graphite": ("match", "labels"),
}  # fmt: skip
_NEEDS = {
    "replace": ("target_label",), "replace_all": ("source_labels", "target_label"), "keepequal": ("target_label",),
    "dropequal": ("target_label",), "keep_if_contains": ("source_labels", "target_label"),
    "drop_if_contains": ("source_labels", "target_label"), "hashmod": ("source_labels", "target_label", "modulus"),
    "lowercase": ("source_labels", "target_label"), "uppercase": ("source_labels", "target_label"),
    "graphite": ("match", "labels"), "keep_if_equal": ("source_labels",), "drop_if_equal": ("source_labels",),
}  # fmt: skip
# Prometheus prints these with every rule, also where they have no effect.
_DEFAULTS = {"regex": "(.*)", "replacement": "$1"}
# Where the programs themselves refuse the defaults, too.
_REFUSES: dict[str, dict[str, tuple[str, ...]]] = {
    "victoriametrics": {
        "graphite": ("regex", "replacement"), "keep_if_contains": ("regex",), "drop_if_contains": ("regex",), "keep_if_equal": ("regex",),
        "drop_if_equal": ("regex",), "keepequal": ("regex",), "dropequal": ("regex",),
    },
    "prometheus": {"keepequal": ("regex",), "dropequal": ("regex",)},
}  # fmt: skip
_FIELDS = ("source_labels", "regex", "target_label", "modulus", "replacement", "match", "labels")


def _check_fields(config: RelabelConfig, dialect: str) -> None:
    action, prometheus = config.action, dialect == "prometheus"
    uses, needs = _USES[action], _NEEDS.get(action, ())
    if prometheus:
        needs = tuple(key for key in needs if key != "source_labels" or action in VICTORIAMETRICS_ACTIONS)
    for key in _FIELDS:
        value = getattr(config, key)
        given = value not in (None, "", (), 0) or (key in _DEFAULTS and value == "")
        if key in needs and not given:
            raise ConfigError(f"{key}: missing; action {action} needs it")
        refused = key in _REFUSES[dialect].get(action, ())
        if given and key not in uses and (refused or value != _DEFAULTS.get(key)):
            raise ConfigError(f"{key}: action {action} has no use for it")
    if action in ("keep_if_equal", "drop_if_equal") and len(config.source_labels) < 2:
        raise ConfigError(f"source_labels: action {action} needs two or more")
    if action in ("keep", "drop") and not prometheus and not config.source_labels and not config.if_:
        raise ConfigError(f"source_labels: missing; action {action} needs them, or an if")
    if action in ("keep_metrics", "drop_metrics") and not config.regex and not config.if_:
        raise ConfigError(f"regex: missing; action {action} needs it, or an if")
    if prometheus and action in ("keepequal", "dropequal", "labeldrop", "labelkeep") and config.separator != ";":
        raise ConfigError(f"separator: action {action} has no use for it")
    if prometheus and action == "labelmap" and config.replacement == "":
        raise ConfigError("replacement: must name a label")
