"""The main file and those that its `scrape_config_files` name, as YAML documents."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastdisco.errors import ConfigError
from fastdisco.sections import mapping_at, parse_yaml, typed

from .mistakes import Mistakes
from .peer_keys import JOB, PROMETHEUS, TOP, VICTORIAMETRICS, only_one_accepts
from .sources import Reader

_PROMETHEUS_PATTERN = re.compile(r"[^*]*(\*[^/]*)?")  # a star in the last part of a path only


@dataclass(frozen=True, slots=True)
class Job:
    """An entry of `scrape_configs` and where it stands."""

    file: Path
    path: str
    written: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something that only one of the peers accepts."""

    dialect: str
    file: Path
    path: str
    what: str = ""
    """Where it is not the key at `path`."""

    def __str__(self) -> str:
        return f"{self.file}: {self.path}{': ' if self.path and self.what else ''}{self.what}"


@dataclass(frozen=True, slots=True)
class Documents:
    """All that was read. What is not of the right shape is left out, and a mistake tells of it."""

    main: Path
    top: Mapping[str, Any]
    jobs: tuple[Job, ...]
    evidence: tuple[Evidence, ...]
    warnings: tuple[str, ...]


def read_documents(main: Path, reader: Reader, expand: Callable[[str], str], mistakes: Mistakes) -> Documents:
    """The main file first, then the others in the order of their patterns."""
    top: Mapping[str, Any] = {}
    with mistakes.at(main):
        top = mapping_at("", _document(main, reader, expand, mistakes, mistaken={}))
    jobs = list(_jobs(main, "scrape_configs", top.get("scrape_configs"), mistakes))
    evidence = [Evidence(dialect, main, path) for dialect, path in only_one_accepts(TOP, "", top)]
    warnings: list[str] = []
    included: dict[Path, None] = {}
    for place, pattern in _patterns(main, top, mistakes):
        if not _PROMETHEUS_PATTERN.fullmatch(pattern):
            evidence.append(Evidence(VICTORIAMETRICS, main, place, "a star before the last part of a path"))
        files = reader.files(pattern if Path(pattern).is_absolute() else f"{glob.escape(str(main.parent))}/{pattern}")
        if not files:
            warnings.append(f"{main}: {place}: no file matches {pattern!r}")
        included |= dict.fromkeys(files)
    for file in included:
        document: Any = None
        with mistakes.at(file):
            document = _document(file, reader, expand, mistakes, mistaken=None)
            jobs += _included_jobs(file, document, mistakes, evidence)
    return Documents(main, top, tuple(jobs), tuple(evidence), tuple(warnings))


def _document(file: Path, reader: Reader, expand: Callable[[str], str], mistakes: Mistakes, *, mistaken: object) -> Any:
    document, repeated = parse_yaml(expand(reader.text(file)))
    for mistake in repeated:
        mistakes.add(file, mistake)
    return mistaken if repeated else document


def _patterns(main: Path, top: Mapping[str, Any], mistakes: Mistakes) -> Iterator[tuple[str, str]]:
    patterns: list[Any] = []
    with mistakes.at(main):
        patterns = typed("scrape_config_files", top.get("scrape_config_files") or [], list)
    for index, pattern in enumerate(patterns):
        place = f"scrape_config_files[{index}]"
        with mistakes.at(main):
            if re.match("https?://", typed(place, pattern, str)):
                raise ConfigError(f"{place}: only files are read, not {pattern.partition('://')[0]} URLs")
            yield place, pattern


def _included_jobs(file: Path, document: Any, mistakes: Mistakes, evidence: list[Evidence]) -> Iterator[Job]:
    """Of a mapping with `scrape_configs`, as Prometheus reads it, or of a bare list, as vmagent does; an empty file has none."""
    if document is None:
        return
    if isinstance(document, list):
        evidence.append(Evidence(VICTORIAMETRICS, file, "", "a list without scrape_configs above it"))
        evidence += (Evidence(dialect, file, path) for dialect, path in only_one_accepts(JOB, "", document))
        yield from _jobs(file, "", document, mistakes)
        return
    if not isinstance(document, Mapping):
        raise ConfigError("must be a list of jobs, or a mapping with scrape_configs")
    evidence.append(Evidence(PROMETHEUS, file, "scrape_configs", "a mapping in an included file"))
    for key in document:
        if key != "scrape_configs":
            mistakes.add(file, f"{key}: unknown key; an included file has scrape_configs only")
    evidence += (Evidence(dialect, file, path) for dialect, path in only_one_accepts(JOB, "scrape_configs", document.get("scrape_configs")))
    yield from _jobs(file, "scrape_configs", document.get("scrape_configs"), mistakes)


def _jobs(file: Path, path: str, entries: object, mistakes: Mistakes) -> Iterator[Job]:
    jobs: list[Any] = []
    with mistakes.at(file):
        jobs = typed(path, entries or [], list)
    for index, entry in enumerate(jobs):
        place = f"{path}[{index}]"
        with mistakes.at(file):
            yield Job(file, place, mapping_at(place, entry))
