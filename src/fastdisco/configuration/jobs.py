"""Entries of `scrape_configs` become jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastdisco.errors import ConfigError
from fastdisco.regexes import Runs
from fastdisco.relabel_config import RelabelConfig, plain_text
from fastdisco.rules import compile_rule
from fastdisco.scrape_config import ScrapeConfig
from fastdisco.sections import kind_of, mapping_at, parse_duration, typed, within
from fastdisco.target_labels import TargetDefaults

from .discoveries import read_discoveries
from .documents import Documents, Job
from .mistakes import Mistakes
from .peer_keys import PROMETHEUS
from .settings import Settings
from .sources import Reader

# as Prometheus has it: whole numbers, and each unit once, the longest first
_PROMETHEUS_DURATION = re.compile(r"0|(?=\d)(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?")
_INTERVAL, _TIMEOUT = 60.0, 10.0  # seconds; both peers' defaults


def read_jobs(documents: Documents, dialect: str, settings: Settings, reader: Reader, mistakes: Mistakes) -> tuple[ScrapeConfig, ...]:
    """Those that discover in Kubernetes, in order. Of the others only the names are looked at."""
    common = _Common(documents, dialect, mistakes)
    seen: dict[str, Job] = {}
    made = []
    for job in documents.jobs:
        name = job.written.get("job_name")
        if not isinstance(name, str) or not name:
            mistakes.add(job.file, f"{job.path}.job_name: {f'must be a string, not {kind_of(name)}' if name else 'missing'}")
            name = ""
        elif name in seen:
            mistakes.add(job.file, f"{job.path}.job_name: {seen[name].file}: {seen[name].path} is called {name!r} too")
        seen.setdefault(name, job)
        if job.written.get("kubernetes_sd_configs"):
            made.append(_job(job, str(name), documents, common, settings, reader, mistakes))
    return tuple(one for one in made if one is not None)


class _Common:
    """What `global` says to all jobs."""

    def __init__(self, documents: Documents, dialect: str, mistakes: Mistakes) -> None:
        self.dialect = dialect
        self.rules: tuple[RelabelConfig, ...] = ()
        self.interval, self.timeout = _INTERVAL, _TIMEOUT
        with mistakes.at(documents.main):
            written = mapping_at("global", documents.top.get("global") or {})
            file = documents.main
            self.interval = _seconds(file, "global", written, "scrape_interval", dialect, mistakes) or _INTERVAL
            self.timeout = _seconds(file, "global", written, "scrape_timeout", dialect, mistakes) or min(_TIMEOUT, self.interval)
            if dialect != PROMETHEUS:
                self.rules = _rules(file, "global.relabel_configs", written.get("relabel_configs"), dialect, mistakes)
            elif self.timeout > self.interval:
                mistakes.add(file, "global.scrape_timeout: must not be longer than the scrape_interval")


def _job(
    job: Job, name: str, documents: Documents, common: _Common, settings: Settings, reader: Reader, mistakes: Mistakes
) -> ScrapeConfig | None:
    count = len(mistakes.found)
    own = settings.of(name)
    dialect = own.dialect or common.dialect
    configs = read_discoveries(job, documents.main.parent, common.dialect, reader, mistakes)
    rules = _rules(job.file, f"{job.path}.relabel_configs", job.written.get("relabel_configs"), dialect, mistakes)
    defaults = _defaults(job, common, mistakes)
    if len(mistakes.found) > count:
        return None
    return ScrapeConfig(
        name,
        tuple(own.applied(config) for config in configs),
        common.rules + rules,
        defaults,
        dialect,
        True if own.disable_sharding is None else own.disable_sharding,
    )


def _rules(file: Path, path: str, written: object, dialect: str, mistakes: Mistakes) -> tuple[RelabelConfig, ...]:
    rules = []
    with mistakes.at(file):
        for index, rule in enumerate(typed(path, written or [], list)):
            place = f"{path}[{index}]"
            with mistakes.at(file):
                made = RelabelConfig.from_dict(rule, path=place)
                with within(place):
                    compile_rule(made, dialect, Runs())
                rules.append(made)
    return tuple(rules)


def _defaults(job: Job, common: _Common, mistakes: Mistakes) -> TargetDefaults:
    """Each key by itself, so that all mistakes are told."""
    interval = _seconds(job.file, job.path, job.written, "scrape_interval", common.dialect, mistakes) or common.interval
    timeout = _seconds(job.file, job.path, job.written, "scrape_timeout", common.dialect, mistakes)
    if common.dialect == PROMETHEUS and timeout > interval:
        mistakes.add(job.file, f"{job.path}.scrape_timeout: must not be longer than the scrape_interval")
    given: dict[str, Any] = {"scrape_interval": interval, "scrape_timeout": timeout or common.timeout}
    for key, default in (("scheme", "http"), ("metrics_path", "/metrics")):
        with mistakes.at(job.file, job.path):
            given |= _checked(key, plain_text(key, job.written.get(key) or default))
    with mistakes.at(job.file, job.path):
        given |= _checked("params", _params(job.written.get("params") or {}))
    return TargetDefaults(**given)


def _checked(key: str, value: Any) -> dict[str, Any]:
    TargetDefaults(**{key: value})
    return {key: value}


def _params(written: object) -> dict[str, tuple[str, ...]]:
    made = {}
    for name, values in mapping_at("params", written).items():
        if not isinstance(values, Sequence) or isinstance(values, str):
            raise ConfigError(f"params.{name}: must be a list of strings")
        made[str(name)] = tuple(plain_text(f"params.{name}[{index}]", value) for index, value in enumerate(values))
    return made


def _seconds(file: Path, path: str, written: Mapping[str, Any], key: str, dialect: str, mistakes: Mistakes) -> float:
    """0 if it is not there, is wrong, or says 0, which means the same to both peers."""
    value = written.get(key)
    if value is None:
        return 0.0
    with mistakes.at(file, path):
        try:
            if dialect == PROMETHEUS and not _PROMETHEUS_DURATION.fullmatch(str(value)):
                raise ConfigError(f"must be a duration such as 30s or 1m30s, not {value!r}")
            seconds = parse_duration(value)
            return _checked(key, seconds)[key] if seconds else 0.0
        except ConfigError as error:
            raise ConfigError(str(error) if str(error).startswith(key) else f"{key}: {error}") from None
    return 0.0
