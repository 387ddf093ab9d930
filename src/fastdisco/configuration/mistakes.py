"""All mistakes of a configuration at once, each as `FILE: YAML.path: reason`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from fastdisco.errors import ConfigError

T = TypeVar("T")

_PLACE = re.compile(r"([^.\[:]+)(?:\[(\d+)\])?")


class Mistakes:
    """What has been found so far."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, file: Path, mistake: ConfigError | str) -> None:
        self.found.append(f"{file}: {mistake}")

    @contextmanager
    def at(self, file: Path, path: str = "") -> Iterator[None]:
        """A mistake inside ends the block, and nothing else."""
        try:
            yield
        except ConfigError as error:
            self.add(file, error.within(path))

    def read(self, file: Path, path: str, mapping: Mapping[str, object], reader: Callable[[Mapping[str, object]], T]) -> T | None:
        """What the reader makes of a mapping, or None; its mistakes are added, one for each key or item of a list.

        A reader stops at its first mistake. So what that names is taken out, and the rest is read again.
        """
        left = dict(mapping)
        removed: dict[str, list[int]] = {}
        while True:
            try:
                made = reader(left)
            except ConfigError as error:
                key, index = _named(error)
                if key in removed and (not removed[key] or index is None):
                    return None  # it is missed now: that is no other mistake
                self.add(file, _renumbered(error, key, index, removed.get(key, [])).within(path))
                if not _take_out(left, key, index, removed.setdefault(key, [])):
                    return None
            else:
                return None if removed else made


def _named(error: ConfigError) -> tuple[str, int | None]:
    """The key, and the place in its list, that a mistake begins with."""
    match = _PLACE.match(str(error))
    return (match[1], int(match[2]) if match[2] else None) if match else ("", None)


def _take_out(left: dict[str, object], key: str, index: int | None, removed: list[int]) -> bool:
    items = left.get(key)
    if index is not None and isinstance(items, list) and index < len(items):
        left[key] = items[:index] + items[index + 1 :]
        removed.append(_original(index, removed))
        return True
    return left.pop(key, None) is not None


def _renumbered(error: ConfigError, key: str, index: int | None, removed: list[int]) -> ConfigError:
    if index is None or not removed:
        return error
    written = f"{key}[{_original(index, removed)}]"
    return ConfigError(written + str(error).removeprefix(f"{key}[{index}]"))


def _original(index: int, removed: list[int]) -> int:
    """The place of an item in the list as it is written."""
    for gone in sorted(removed):
        index += gone <= index
    return index
