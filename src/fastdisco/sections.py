"""A configuration file, and each mapping in it read key by key, so that every mistake names its key and its reason."""

from __future__ import annotations

import datetime
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from .errors import ConfigError

if TYPE_CHECKING:
    import yaml

P = ParamSpec("P")
T = TypeVar("T")

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w|y)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}
_NAMES: dict[type, str] = {
    str: "a string", bool: "true or false", int: "an integer", float: "a number", list: "a list", Mapping: "a mapping",
    type(None): "nothing", datetime.date: "a date",
}  # fmt: skip


class Written(str):
    """A scalar of a YAML file that is a number, a date, or true or false, by its text: where a text is due, that is what counts."""

    __slots__ = ("value",)

    def __new__(cls, text: str, value: object) -> Self:
        made = super().__new__(cls, text)
        made.value = value
        return made

    value: object
    """What YAML takes it for."""


class Section:
    """A mapping whose keys are taken one by one; leaving it as a context puts its name before errors, unknown keys included.

    `refused` has what is said of keys that nobody takes, where it is more than that they are unknown.
    """

    def __init__(self, mapping: Mapping[str, Any], directory: str = "", name: str = "", refused: Mapping[str, str] | None = None) -> None:
        # YAML gives None for a key without a value, which stands for its absence.
        self._left = {key: value for key, value in mapping.items() if value is not None}
        self._directory = directory
        self._name = name
        self._refused = refused or {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if error is None:
            with within(self._name):
                self.end()
        elif isinstance(error, ConfigError):
            raise error.within(self._name) from None

    def text(self, key: str, default: str = "") -> str:
        return self._take(key, str, default)

    def flag(self, key: str) -> bool:
        return self._take(key, bool, False)

    def integer(self, key: str, default: int = 0) -> int:
        return self._take(key, int, default)

    def file(self, key: str) -> str:
        """A file name; a relative one starts at the directory of the configuration file.

        Made absolute and without `..`, as Go joins names: two spellings of one file are one.
        """
        name = self.text(key)
        if not name or not self._directory:
            return name
        return str(Path(name)) if Path(name).is_absolute() else os.path.abspath(Path(self._directory) / name)  # noqa: PTH100  resolves no links

    def duration(self, key: str, default: float) -> float:
        try:
            return parse_duration(self._left.pop(key, default))
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from None

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(typed(place, value, str) for place, value in self.items(key))

    def items(self, key: str) -> Iterator[tuple[str, Any]]:
        """Each value of a list with its own place in the configuration, such as `names[2]`."""
        for index, value in enumerate(self._take(key, list, [])):
            yield f"{key}[{index}]", value

    def section(self, key: str) -> Section | None:
        return self.nested(key, self._left.pop(key)) if key in self._left else None

    def nested(self, place: str, value: object) -> Section:
        return Section(mapping_at(place, value), self._directory, place)

    def take(self, key: str, default: Any = None) -> Any:
        """Whatever stands there; the default if nothing does."""
        return self._left.pop(key, default)

    def keys(self) -> tuple[str, ...]:
        """Of what nobody has taken yet."""
        return tuple(self._left)

    def end(self) -> None:
        """Refuse what nobody has taken, first of all that of which more is to be said."""
        for key in sorted(self._left, key=lambda key: key not in self._refused):
            raise ConfigError(f"{key}: {self._refused.get(key, 'unknown key')}")

    def make(self, made: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Out of all that was taken; an unknown key is told first, for it may be why another is missing."""
        self.end()
        return made(*args, **kwargs)

    def _take(self, key: str, wanted: type[T], default: T) -> T:
        return typed(key, self._left.pop(key, default), wanted)


@contextmanager
def within(prefix: str) -> Iterator[None]:
    """Mistakes found inside are told as seen from outside `prefix`."""
    try:
        yield
    except ConfigError as error:
        raise error.within(prefix) from None


def parse_duration(value: object) -> float:
    """Seconds out of a number of seconds or a text such as `30s`, `5m`, `1h30m` or `500ms`; the ConfigError has no key."""
    value = meant(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and value:
        parts = _DURATION.findall(value)
        if "".join(number + unit for number, unit in parts) == value:
            return math.fsum(float(number) * _SECONDS[unit] for number, unit in parts)
        if value == "0":
            return 0.0
    raise ConfigError(f"must be a duration such as 30s or 5m, not {value!r}")


def meant(value: object) -> Any:
    """What a scalar of a file stands for where it is not to be a text; anything else is what it is."""
    return value.value if isinstance(value, Written) else value


def typed(place: str, value: object, wanted: type[T]) -> T:
    """The value, if it is of that type; an empty `place` is the whole file."""
    value = str(value) if isinstance(value, Written) and wanted is str else meant(value)
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise ConfigError(f"{place}{': ' if place else ''}must be {_NAMES[wanted]}, not {kind_of(value)}")
    return value


def mapping_at(place: str, value: object) -> Mapping[str, Any]:
    return typed(place, value, Mapping)  # type: ignore[type-abstract]


def kind_of(value: object) -> str:
    """What a YAML value is, for people."""
    value = meant(value)
    for known, name in _NAMES.items():
        if isinstance(value, known):
            return name
    return type(value).__name__


def load_yaml(file: Path) -> Any:
    """What a YAML file holds; ConfigError if it cannot be read, is no YAML or gives a key twice."""
    try:
        loaded, repeated = parse_yaml(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from None
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None
    if repeated:
        raise ConfigError(f"{file}: {repeated[0]}")
    return loaded


def parse_yaml(text: str) -> tuple[Any, tuple[str, ...]]:
    """What a YAML text holds, and a mistake for each key that is given twice; then it holds nothing. ConfigError if it is no YAML."""
    import yaml

    try:
        loader = _loader()(text)
        node = loader.get_single_node()
        repeated = tuple(_repeated(node, "", set()))
        return loader.construct_document(node) if node is not None and not repeated else None, repeated
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date or a number that is none
        # not the error's own text: it may quote the line, and a password in it
        mark = getattr(error, "problem_mark", None)
        place = f", in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"no valid YAML: {getattr(error, 'problem', None) or error}{place}") from None


@cache
def _loader() -> type[yaml.SafeLoader]:
    """As Go reads YAML: what is written stays known, whatever it looks like."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the fast one where there is libyaml
        pass

    def written(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
        try:
            return Written(node.value, yaml.SafeLoader.yaml_constructors[node.tag](loader, node))
        except ValueError:  # a date that there is not
            return str(node.value)

    for tag in ("int", "float", "bool", "timestamp"):
        Loader.add_constructor(f"tag:yaml.org,2002:{tag}", written)
    return Loader


def _repeated(node: yaml.Node | None, path: str, seen: set[int]) -> Iterator[str]:
    """A message for each key that its mapping has already; a node may stand in several places, even inside itself."""
    from yaml import MappingNode, ScalarNode, SequenceNode

    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, SequenceNode):
        for index, item in enumerate(node.value):
            yield from _repeated(item, f"{path}[{index}]", seen)
    elif isinstance(node, MappingNode):
        lines: dict[tuple[str, str], int] = {}
        for key, value in node.value:
            place = f"{path}{'.' if path else ''}{key.value if isinstance(key, ScalarNode) else '?'}"
            if isinstance(key, ScalarNode) and key.value != "<<":
                line, same = key.start_mark.line + 1, (key.tag, key.value)
                if same in lines:
                    yield f"{place}: given twice, on lines {lines[same]} and {line}"
                lines[same] = line
            yield from _repeated(value, place, seen)
