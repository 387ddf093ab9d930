"""Files that are always whole: written beside their place, made safe on the disk, and then put there in one step."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_PARTIAL = ".partial"  # no glob of a scraper matches it
_ABANDONED_SECONDS = 600.0  # what a process has left that was killed while it wrote


@contextmanager
def whole_file(path: Path, *, mode: int = 0o600, beside: Path | None = None) -> Iterator[BinaryIO]:
    """Writes what takes the place of `path` if no exception is raised; else the old file stays. OSError.

    `beside`: the directory of the partial file, on the same file system.
    """
    descriptor, name = tempfile.mkstemp(_PARTIAL, f"{path.name}.", beside or path.parent)
    partial = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise
    _sync_directory(path.parent)


def make_directory(path: Path, mode: int) -> None:
    """With those above it that are missing, all with just this mode, whatever the process's mask; what is there stays as it is. OSError."""
    if not path.is_dir():
        make_directory(path.parent, mode)
        path.mkdir(exist_ok=True)
        path.chmod(mode)


def remove_abandoned(directory: Path) -> None:
    """Partial files that nobody can be writing any more."""
    for partial in directory.glob(f"*{_PARTIAL}"):
        with suppress(OSError):
            if time.time() - partial.stat().st_mtime > _ABANDONED_SECONDS:
                partial.unlink()


def _sync_directory(directory: Path) -> None:
    """So that the new name, too, outlives a crash of the machine."""
    with suppress(OSError):  # some file systems cannot
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
