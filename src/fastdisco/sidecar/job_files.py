"""Where the files of the jobs are, and how they are put there."""

from __future__ import annotations

import hashlib
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .files import make_directory, remove_abandoned, whole_file

if TYPE_CHECKING:
    from .query import Syntax
    from .snapshots import Export

SUFFIXES: dict[Syntax, str] = {"json": "json", "yaml": "yml"}

_PARTIAL_DIRECTORY = ".partial"  # beside the jobs' directories, so that a scraper that watches one of them hears of the finished file only


def file_of(directory: Path, job: str, syntax: Syntax) -> Path:
    """A directory of its own for each job, since Prometheus reads all files of a directory again when one of them changes.

    Of the job's name the safe characters, and a hash that tells apart names of the same safe ones.
    """
    safe = re.sub(r"[^A-Za-z0-9_-]+", "-", job).strip("-")[:64]
    name = f"{safe}-{hashlib.sha256(job.encode()).hexdigest()[:8]}".lstrip("-")
    return directory / name / f"{name}.{SUFFIXES[syntax]}"


class JobFiles:
    """The files of one directory."""

    def __init__(self, directory: Path, syntax: Syntax, mode: int) -> None:
        self._directory = directory
        self._syntax = syntax
        self._mode = mode
        self._directory_mode = _directory_mode(mode)

    def of(self, job: str) -> Path:
        """The file of a job."""
        return file_of(self._directory, job, self._syntax)

    def prepare(self) -> None:
        """What killed processes have left goes. OSError if the directory cannot be used."""
        remove_abandoned(self._partial_directory())

    def make_directory(self, job: str) -> None:
        """The job's own directory. OSError."""
        path = self.of(job)
        make_directory(self._directory, self._directory_mode)
        make_directory(path.parent, self._directory_mode)
        _open_up(path.parent, self._directory_mode)

    def write(self, job: str, export: Export | None) -> bool:
        """Whether there was something to write; None: that there are no targets. OSError."""
        path, partial = self.of(job), self._partial_directory()
        self.make_directory(job)
        if export is not None and self._is_there(path, export):
            return False  # since the last run
        with whole_file(path, mode=self._mode, beside=partial) as file:
            if export is None:
                file.write(b"[]\n")
            else:
                for number in range(export.snapshot.slices):
                    file.write(export.snapshot.render(number, self._syntax))
        return True

    def identity(self, job: str) -> tuple[int, ...]:
        """Another one each time that the file is written, by whomever; empty if there is none."""
        with suppress(OSError):
            found = self.of(job).stat()
            return found.st_ino, found.st_size, found.st_mtime_ns
        return ()

    def remove(self, job: str) -> None:
        """With its directory."""
        shutil.rmtree(self.of(job).parent, ignore_errors=True)

    def _is_there(self, path: Path, export: Export) -> bool:
        """Whether the file is just what would be written."""
        try:
            found = path.stat()
            if (found.st_size, found.st_mode & 0o777) != (export.snapshot.length(self._syntax), self._mode):
                return False
            with path.open("rb") as file:
                slices = (export.snapshot.render(number, self._syntax) for number in range(export.snapshot.slices))
                return all(file.read(len(text)) == text for text in slices)
        except FileNotFoundError:
            return False

    def _partial_directory(self) -> Path:
        """Made, as everything above it, if it is not there."""
        partial = self._directory / _PARTIAL_DIRECTORY
        make_directory(self._directory, self._directory_mode)
        make_directory(partial, 0o700)
        return partial


def _directory_mode(mode: int) -> int:
    """Whoever may read a file may get to it."""
    readers = mode & 0o444
    return 0o700 | readers | readers >> 2


def _open_up(directory: Path, mode: int) -> None:
    """A directory of before, perhaps of a run with another mode."""
    found = directory.stat().st_mode & 0o7777
    if found & mode != mode:
        with suppress(PermissionError):  # another user's; who may write into it need not be its owner
            directory.chmod(found | mode)
