"""Which labels an export has: those that some rule can read, or the final ones, as every scraper takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import parse_qsl

from fastdisco.rules import COPY_LABELS, RENAME_LABELS, Rule

_SCHEMES = ("http", "https")


def used_label(rules: Sequence[Rule]) -> Callable[[str], bool]:
    """Whether a label may matter to a scraper with these rules: it has no `__meta_` name, or a rule reads it, copies or renames it."""
    sources = {name for rule in rules for name in (*rule.sources, *(rule.guard.sources if rule.guard is not None else ()))}
    over_names = [rule for rule in rules if rule.kind in (COPY_LABELS, RENAME_LABELS)]

    def wanted(name: str) -> bool:
        if not name.startswith("__meta_") or name in sources:
            return True
        return any(rule.function(name) not in (None, name) for rule in over_names)

    return wanted


def final_label(name: str) -> bool:
    """What is left after the last rule."""
    return not name.startswith(("__meta_", "__tmp"))


def split_address(labels: Mapping[str, str]) -> dict[str, str]:
    """A scheme, path or query inside an address, and a query inside a path, as labels of their own: vmagent takes such addresses,
    Prometheus refuses them. Of parameters that are there twice the one in the address wins, the first one in vmagent's URL."""
    split = dict(labels)
    address = split.get("__address__", "")
    scheme, mark, rest = address.partition("://")
    if mark and scheme in _SCHEMES:
        split["__scheme__"], address = scheme, rest
    place = next((place for place, character in enumerate(address) if character in "/?"), len(address))
    address, path = address[:place], address[place:]
    if path:
        split["__metrics_path__"] = path if path.startswith("/") else f"/{path}"
    path, mark, query = split.get("__metrics_path__", "").partition("?")
    if mark:
        split["__metrics_path__"] = path
        for name, value in reversed(parse_qsl(query, keep_blank_values=True)):
            split[f"__param_{name}"] = value
    split["__address__"] = address
    return split
