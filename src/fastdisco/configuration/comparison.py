"""What a reload has to do: which jobs come, go, stay as they are, or are run otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fastdisco.scrape_config import ScrapeConfig

from .loading import Configuration


@dataclass(frozen=True, slots=True)
class ConfigurationChange:
    """Names of jobs: those that came, were kept, relabeled or replaced in the order of the new file, those that went in that of the old."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    relabeled: tuple[str, ...] = ()
    """Nothing but their rules is different: `APIWatcher.reconfigure` is all that it takes."""
    replaced: tuple[str, ...] = ()


def compare(old: Configuration, new: Configuration) -> ConfigurationChange:
    """From the old configuration to the new one."""
    before = {job.job_name: job for job in old.jobs}
    found: dict[str, list[str]] = {}
    for job in new.jobs:
        found.setdefault(_kind(before.pop(job.job_name, None), job), []).append(job.job_name)
    return ConfigurationChange(removed=tuple(before), **{kind: tuple(names) for kind, names in found.items()})


def _kind(before: ScrapeConfig | None, now: ScrapeConfig) -> str:
    if before is None:
        return "added"
    if before == now:
        return "kept"
    return "relabeled" if replace(before, relabel_configs=now.relabel_configs) == now else "replaced"
