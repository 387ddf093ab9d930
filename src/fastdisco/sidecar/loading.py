"""The configuration that the sidecar runs by: read from files, and compared with the one before."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fastdisco.scrape_config import ScrapeConfig, load_scrape_configs


@dataclass(frozen=True, slots=True)
class Options:
    """Where the configuration is, and how it is read."""

    file: Path
    settings: Path | None = None
    dialect: str = "auto"
    expand_env: bool = False


@dataclass(frozen=True, slots=True)
class Configuration:
    """The jobs of a file, in its order, and what there is to say of the rest."""

    jobs: tuple[ScrapeConfig, ...]
    dialect_reason: str = ""
    text: str = ""
    """As YAML, every secret replaced."""
    warnings: tuple[str, ...] = ()
    not_used: tuple[str, ...] = ()
    checksums: Mapping[Path, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConfigurationChange:
    """Names of jobs, by what has become of them."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    relabeled: tuple[str, ...] = ()
    """Only their `relabel_configs` are others."""
    replaced: tuple[str, ...] = ()


def dialect_of(job: ScrapeConfig) -> str | None:
    """Whose labels the job's targets have; None: those of the discovery."""
    return getattr(job, "dialect", None)


def disables_sharding(job: ScrapeConfig) -> bool:
    """Whether rules that share targets out are to keep all."""
    return getattr(job, "disable_sharding", True)


def load(options: Options) -> Configuration:
    """ConfigError with all that is wrong."""
    digest = hashlib.sha256(options.file.read_bytes()).hexdigest()
    jobs = tuple(job for job in load_scrape_configs(options.file) if job.kubernetes_sd_configs)
    return Configuration(jobs, checksums={options.file: digest})


def changed(configuration: Configuration) -> bool:
    """Whether a file that was read is another one now."""
    return any(hashlib.sha256(path.read_bytes()).hexdigest() != digest for path, digest in configuration.checksums.items())


def compare(old: Configuration, new: Configuration) -> ConfigurationChange:
    """What has become of each job."""
    before, after = ({job.job_name: job for job in one.jobs} for one in (old, new))
    found: dict[str, list[str]] = {"added": [], "kept": [], "relabeled": [], "replaced": []}
    for name, job in after.items():
        previous = before.get(name)
        if previous is None:
            found["added"].append(name)
        elif previous == job:
            found["kept"].append(name)
        elif previous.kubernetes_sd_configs == job.kubernetes_sd_configs and previous.target_defaults == job.target_defaults:
            found["relabeled"].append(name)
        else:
            found["replaced"].append(name)
    return ConfigurationChange(removed=tuple(name for name in before if name not in after), **{k: tuple(v) for k, v in found.items()})
