"""The settings file: what only fastdisco has, beside a configuration that the peer can still load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fastdisco.config import DIALECTS, KubernetesSDConfig
from fastdisco.errors import ConfigError
from fastdisco.sections import Section, mapping_at, parse_yaml

from .mistakes import Mistakes
from .sources import Reader

ENGINE_KEYS = ("api_server_timeout", "list_limit", "encoding", "compression", "initial_state", "relist_interval")
"""Keys of a `KubernetesSDConfig` that no peer has."""


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Of one job, or of all: what is not said is None, or not in `engine`."""

    dialect: str | None = None
    disable_sharding: bool | None = None
    engine: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a `KubernetesSDConfig`, as read."""

    def over(self, other: JobSettings) -> JobSettings:
        """What is said here, and of the rest what is said there."""
        return JobSettings(
            self.dialect or other.dialect,
            other.disable_sharding if self.disable_sharding is None else self.disable_sharding,
            {**other.engine, **self.engine},
        )

    def applied(self, config: KubernetesSDConfig) -> KubernetesSDConfig:
        return replace(config, **self.engine)


@dataclass(frozen=True, slots=True)
class Settings:
    """Those of all jobs, and those of some jobs by name."""

    defaults: JobSettings = field(default_factory=JobSettings)
    jobs: Mapping[str, JobSettings] = field(default_factory=dict)

    def of(self, job: str) -> JobSettings:
        return self.jobs.get(job, JobSettings()).over(self.defaults)


def read_settings(file: Path, reader: Reader, mistakes: Mistakes) -> Settings:
    """`{defaults: {…}, jobs: {NAME: {…}}}`."""
    defaults, jobs = JobSettings(), {}
    with mistakes.at(file):
        loaded, repeated = parse_yaml(reader.text(file))
        for mistake in repeated:
            mistakes.add(file, mistake)
        top = mapping_at("", loaded or {})
        for key in top:
            if key not in ("defaults", "jobs"):
                mistakes.add(file, f"{key}: unknown key; there are defaults and jobs")
        defaults = _settings(file, "defaults", top.get("defaults") or {}, mistakes)
        for name, written in mapping_at("jobs", top.get("jobs") or {}).items():
            jobs[str(name)] = _settings(file, f"jobs.{name}", written or {}, mistakes)
    return Settings(defaults, jobs)


def _settings(file: Path, path: str, written: object, mistakes: Mistakes) -> JobSettings:
    with mistakes.at(file):
        return mistakes.read(file, path, mapping_at(path, written), _read) or JobSettings()
    return JobSettings()


def _read(written: Mapping[str, Any]) -> JobSettings:
    section = Section(written)
    dialect = section.text("dialect")
    if dialect and dialect not in DIALECTS:
        raise ConfigError(f"dialect: must be one of {', '.join(DIALECTS)}, not {dialect!r}")
    disable_sharding = section.flag("disable_sharding") if written.get("disable_sharding") is not None else None
    given = {key: section.take(key) for key in ENGINE_KEYS if written.get(key) is not None}
    section.end()
    config = KubernetesSDConfig.from_dict({"role": "pod", **given})
    return JobSettings(dialect or None, disable_sharding, {key: getattr(config, key) for key in given})
