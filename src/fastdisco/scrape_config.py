"""Jobs as a configuration file has them: `scrape_configs`, and of `global` what concerns discovery."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .config import KubernetesSDConfig
from .errors import ConfigError
from .regexes import Runs
from .relabel_config import RelabelConfig, load_rules, plain_text
from .rules import compile_rule
from .sections import load_yaml, mapping_at, typed, within
from .target_labels import TargetDefaults


@dataclass(frozen=True, slots=True)
class ScrapeConfig:
    """One job; `relabel_configs` has the global rules in front."""

    job_name: str
    kubernetes_sd_configs: tuple[KubernetesSDConfig, ...]
    relabel_configs: tuple[RelabelConfig, ...] = ()
    target_defaults: TargetDefaults = field(default_factory=TargetDefaults)


def load_scrape_configs(file: str | Path, dialect: str = "victoriametrics") -> tuple[ScrapeConfig, ...]:
    """The jobs of a YAML file, in order; ConfigError names the file, the key and the reason. Rules are checked in the dialect.

    Keys that are for the scraper only are passed over; relative file names start at the file's directory.
    """
    file = Path(file)
    document = load_yaml(file)
    try:
        return tuple(_jobs(document, str(file.parent), dialect))
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None


def _jobs(document: object, directory: str, dialect: str) -> Iterator[ScrapeConfig]:
    top = mapping_at("", document)
    common = mapping_at("global", top.get("global") or {})
    rules = load_rules(common.get("relabel_configs"), path="global.relabel_configs")
    jobs = typed("scrape_configs", top.get("scrape_configs") or [], list)
    names: set[str] = set()
    for index, entry in enumerate(jobs):
        place = f"scrape_configs[{index}]"
        entry = mapping_at(place, entry)
        with within(place):
            job = _job(entry, common, rules, directory)
            if job.job_name in names:
                raise ConfigError(f"job_name: another job is called {job.job_name!r}")
            names.add(job.job_name)
            for number, rule in enumerate(job.relabel_configs[len(rules) :]):
                with within(f"relabel_configs[{number}]"):
                    compile_rule(rule, dialect, Runs())
        yield job


def _job(job: Mapping[str, Any], common: Mapping[str, Any], rules: tuple[RelabelConfig, ...], directory: str) -> ScrapeConfig:
    name = job.get("job_name")
    if not isinstance(name, str) or not name:
        raise ConfigError("job_name: missing")
    configs = typed("kubernetes_sd_configs", job.get("kubernetes_sd_configs") or [], list)
    interval = job.get("scrape_interval") or common.get("scrape_interval") or 60.0
    timeout = job.get("scrape_timeout") or common.get("scrape_timeout") or 10.0
    return ScrapeConfig(
        name,
        tuple(
            KubernetesSDConfig.from_dict(config, path=f"kubernetes_sd_configs[{place}]", directory=directory)
            for place, config in enumerate(configs)
        ),
        rules + load_rules(job.get("relabel_configs")),
        TargetDefaults(
            plain_text("scheme", job.get("scheme") or "http"),
            plain_text("metrics_path", job.get("metrics_path") or "/metrics"),
            interval,
            timeout,
            _params(job.get("params")),
        ),
    )


def _params(value: object) -> dict[str, tuple[str, ...]]:
    made = {}
    for name, values in mapping_at("params", value or {}).items():
        if not isinstance(values, list):
            raise ConfigError(f"params.{name}: must be a list of strings")
        made[str(name)] = tuple(plain_text(f"params.{name}[{place}]", one) for place, one in enumerate(values))
    return made
