"""A configuration file of Prometheus or vmagent, as people have it, becomes the jobs that fastdisco runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from fastdisco.errors import ConfigError
from fastdisco.scrape_config import ScrapeConfig

from .dialects import AUTO, Decision, decide, foreign
from .documents import Documents, read_documents
from .effective import effective_text
from .environment import expand_parentheses, expand_percent
from .jobs import read_jobs
from .mistakes import Mistakes
from .peer_keys import PROMETHEUS, VICTORIAMETRICS
from .settings import Settings, read_settings
from .sources import Reader, Sources
from .unused import find_unused


@dataclass(frozen=True, slots=True)
class Configuration:
    """All that was read."""

    jobs: tuple[ScrapeConfig, ...]
    """Those with `kubernetes_sd_configs`, in the order of the files."""
    dialect: str = VICTORIAMETRICS
    """Of the file; a job may have another one by its settings."""
    dialect_reason: str = ""
    not_used: tuple[str, ...] = ()
    """`FILE: YAML.path: why`."""
    warnings: tuple[str, ...] = ()
    text: str = ""
    """The jobs as they are run, in YAML, with `<secret>` in place of each secret."""
    sources: Sources = field(default_factory=Sources)

    @property
    def checksums(self) -> Mapping[Path, str]:
        """The SHA-256 of each file that was read."""
        return self.sources.checksums


class ConfigurationError(ConfigError):
    """All mistakes of a configuration, a line each, in the order of the files."""

    def __init__(self, mistakes: tuple[str, ...], sources: Sources) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes
        """Each as `FILE: YAML.path: reason`."""
        self.sources = sources
        """What was read, so that the same mistakes need not be told again while nothing changes."""


def load_configuration(
    file: str | Path,
    *,
    settings: str | Path | None = None,
    dialect: str = AUTO,
    expand_env: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> Configuration:
    """Reads a file, all that its `scrape_config_files` name, and the settings beside it; ConfigurationError has all mistakes in them.

    `dialect` is `victoriametrics`, `prometheus`, or `auto`: by what only one of the peers accepts. `expand_env`: `$(NAME)` is expanded.
    """
    reader, mistakes = Reader(), Mistakes()
    read = read_settings(Path(settings), reader, mistakes) if settings else Settings()
    documents, decision = _read(Path(file), reader, dialect, read, expand_env, environment, mistakes)
    jobs = read_jobs(documents, decision.dialect, read, reader, mistakes)
    not_used, warnings = find_unused(documents, decision.dialect, mistakes)
    for name in read.jobs:
        if documents.jobs and all(job.written.get("job_name") != name for job in documents.jobs):
            mistakes.add(Path(str(settings)), f"jobs.{name}: no job is called so")
    if mistakes.found:
        raise ConfigurationError(tuple(dict.fromkeys(mistakes.found)), reader.sources())
    warnings = (*documents.warnings, *foreign(decision, documents.evidence), *warnings)
    if decision.dialect == PROMETHEUS:
        warnings = (*warnings, *_not_expanded(documents, reader, environment))
    return Configuration(jobs, decision.dialect, decision.reason, not_used, warnings, effective_text(jobs), reader.sources())


def changed(read: Configuration | ConfigurationError) -> bool:
    """Whether a file that was read, or the files that a pattern of `scrape_config_files` matches, are no longer what they were."""
    return read.sources.changed()


def _read(
    file: Path, reader: Reader, asked: str, settings: Settings, expand_env: bool, environment: Mapping[str, str], mistakes: Mistakes
) -> tuple[Documents, Decision]:
    """vmagent expands `%{NAME}` before it reads any YAML, and Prometheus does not: whose file it is shows only when it has been read."""

    def expand(text: str, *, percent: bool) -> str:
        if expand_env:
            text = expand_parentheses(text, environment)
        return expand_percent(text, environment) if percent else text

    found = Mistakes()
    documents = read_documents(file, reader, partial(expand, percent=asked != PROMETHEUS), found)
    try:
        decision = decide(asked, settings.defaults.dialect or "", documents.evidence)
    except ConfigError as error:
        found.add(file, error)
        raise ConfigurationError((*mistakes.found, *found.found), reader.sources()) from None
    if decision.dialect == PROMETHEUS and asked != PROMETHEUS:
        found = Mistakes()
        documents = read_documents(file, reader, partial(expand, percent=False), found)
    mistakes.found += found.found
    return documents, decision


def _not_expanded(documents: Documents, reader: Reader, environment: Mapping[str, str]) -> list[str]:
    files = dict.fromkeys((documents.main, *(job.file for job in documents.jobs)))
    return [
        f"{file}: %{{…}} stays as it is written, since only vmagent expands it"
        for file in files
        if expand_percent(reader.text(file), environment) != reader.text(file)
    ]
