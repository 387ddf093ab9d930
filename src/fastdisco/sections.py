"""One mapping of a configuration, read key by key, so that every mistake names its key and its reason."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

from .errors import ConfigError

T = TypeVar("T")

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w|y)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}
_NAMES: dict[type, str] = {str: "a string", bool: "true or false", int: "an integer", list: "a list", Mapping: "a mapping"}


class Section:
    """A mapping whose keys are taken one by one; leaving it as a context puts its name before errors, unknown keys included."""

    def __init__(self, mapping: Mapping[str, Any], directory: str = "", name: str = "") -> None:
        # YAML gives None for a key without a value, which stands for its absence.
        self._left = {key: value for key, value in mapping.items() if value is not None}
        self._directory = directory
        self._name = name

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
        """A file name; a relative one starts at the directory of the configuration file."""
        name = self.text(key)
        return str(Path(self._directory) / name) if name and self._directory else name

    def duration(self, key: str, default: float) -> float:
        try:
            return parse_duration(self._left.pop(key, default))
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from None

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(_typed(place, value, str) for place, value in self.items(key))

    def items(self, key: str) -> Iterator[tuple[str, Any]]:
        """Each value of a list with its own place in the configuration, such as `names[2]`."""
        for index, value in enumerate(self._take(key, list, [])):
            yield f"{key}[{index}]", value

    def section(self, key: str) -> Section | None:
        return self.nested(key, self._left.pop(key)) if key in self._left else None

    def nested(self, place: str, value: object) -> Section:
        return Section(_typed(place, value, Mapping), self._directory, place)  # type: ignore[type-abstract]

    def take(self, key: str, default: Any = None) -> Any:
        """Whatever stands there; the default if nothing does."""
        return self._left.pop(key, default)

    def keys(self) -> tuple[str, ...]:
        """Of what nobody has taken yet."""
        return tuple(self._left)

    def end(self, unsupported: Collection[str] = ()) -> None:
        """Refuse what nobody has taken."""
        for key in self._left:
            raise ConfigError(f"{key}: {'not supported' if key in unsupported else 'unknown key'}")

    def _take(self, key: str, wanted: type[T], default: T) -> T:
        return _typed(key, self._left.pop(key, default), wanted)


@contextmanager
def within(prefix: str) -> Iterator[None]:
    """Mistakes found inside are told as seen from outside `prefix`."""
    try:
        yield
    except ConfigError as error:
        raise error.within(prefix) from None


def parse_duration(value: object) -> float:
    """Seconds out of a number of seconds or a text such as `30s`, `5m`, `1h30m` or `500ms`; the ConfigError has no key."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and value:
        parts = _DURATION.findall(value)
        if "".join(number + unit for number, unit in parts) == value:
            return math.fsum(float(number) * _SECONDS[unit] for number, unit in parts)
        if value == "0":
            return 0.0
    raise ConfigError(f"must be a duration such as 30s or 5m, not {value!r}")


def _typed(place: str, value: object, wanted: type[T]) -> T:
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise ConfigError(f"{place}: must be {_NAMES[wanted]}, not {_kind(value)}")
    return value


def _kind(value: object) -> str:
    for known, name in _NAMES.items():
        if isinstance(value, known):
            return name
    return type(value).__name__
