"""The files that a configuration was read from, and whether they are still what they were."""

from __future__ import annotations

import glob
import gzip
import hashlib
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from fastdisco.errors import ConfigError

_UNREADABLE = ""  # in place of a checksum


@dataclass(frozen=True, slots=True)
class Sources:
    """What was read: the SHA-256 of each file, and which files each pattern matched."""

    checksums: Mapping[Path, str] = field(default_factory=dict)
    matched: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)

    def changed(self) -> bool:
        """Whether another reading would see anything else."""
        return any(files_of(pattern) != files for pattern, files in self.matched.items()) or any(
            _checksum(file) != checksum for file, checksum in self.checksums.items()
        )


class Reader:
    """Reads each file once, however often it is asked for it, and remembers what it has seen."""

    def __init__(self) -> None:
        self._texts: dict[Path, str | ConfigError] = {}
        self._checksums: dict[Path, str] = {}
        self._matched: dict[str, tuple[Path, ...]] = {}

    def text(self, file: Path) -> str:
        """Unpacked, if the file is gzipped. ConfigError if it cannot be read; its message does not name the file."""
        if file not in self._texts:
            self._texts[file] = self._read(file)
        found = self._texts[file]
        if isinstance(found, ConfigError):
            raise found
        return found

    def watch(self, file: Path) -> None:
        """A change of this file is one of the configuration, too; somebody else reads it."""
        self._checksums.setdefault(file, _checksum(file))

    def files(self, pattern: str) -> tuple[Path, ...]:
        """The files that a pattern matches now, sorted."""
        if pattern not in self._matched:
            self._matched[pattern] = files_of(pattern)
        return self._matched[pattern]

    def sources(self) -> Sources:
        return Sources(MappingProxyType(dict(self._checksums)), MappingProxyType(dict(self._matched)))

    def _read(self, file: Path) -> str | ConfigError:
        self._checksums[file] = _UNREADABLE
        try:
            data = file.read_bytes()
            self._checksums[file] = hashlib.sha256(data).hexdigest()
            return (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode()
        except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
            return ConfigError(f"cannot be read: {error}")


def files_of(pattern: str) -> tuple[Path, ...]:
    """As Go matches: `*` matches names with a dot in front too, `[^…]` is what is not in it, and `**` is no more than `*`. No folders."""
    written = re.sub(r"\\(.)", lambda escaped: f"[{escaped[1]}]", pattern.replace("[^", "[!"))
    found = map(Path, sorted(glob.glob(written, include_hidden=True)))  # noqa: PTH207  patterns may be absolute
    return tuple(file for file in found if not file.is_dir())


def _checksum(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return _UNREADABLE
