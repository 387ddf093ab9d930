"""The jobs that run: as a configuration says, and for a while those that it says no longer."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xxhash import xxh3_128_hexdigest

from fastdisco.configuration import Configuration, ConfigurationChange, compare
from fastdisco.discovery import group_key
from fastdisco.sections import within

if TYPE_CHECKING:
    from fastdisco.api_watcher import APIWatcher
    from fastdisco.discovery import Discovery
    from fastdisco.scrape_config import ScrapeConfig
    from fastdisco.target_labels import TargetDefaults

    from .exports import Exports
    from .past import Past
    from .state_file import Known

logger = logging.getLogger("fastdisco")

TOMBSTONE_SECONDS = 600.0
"""How long a removed job answers that it has no targets: who is told that there is no such job would keep its targets for ever."""
_DISABLE_SHARDING = {"__tmp_disable_sharding": "true"}


@dataclass(frozen=True, slots=True)
class Removed:
    """A job that the configuration has no longer."""

    name: str
    until: float
    """By the monotonic clock."""


class Jobs:
    """The discovery's jobs by the names of a configuration."""

    def __init__(self, discovery: Discovery, exports: Exports, past: Past, *, tombstone_seconds: float = TOMBSTONE_SECONDS) -> None:
        self.configuration = Configuration(())
        self.removed: dict[str, Removed] = {}
        self._discovery = discovery
        self._exports = exports
        self._past = past
        self._fingerprints: dict[str, str] = {}
        self._tombstone_seconds = tombstone_seconds

    def __iter__(self) -> Iterator[APIWatcher]:
        """Those that run, in the order in which they were started; they may come and go meanwhile."""
        return iter(tuple(self._discovery.jobs.values()))

    def get(self, name: str) -> APIWatcher | None:
        """The job of that name, if it runs."""
        return self._discovery.jobs.get(name)

    def is_tombstone(self, name: str) -> bool:
        """Whether it was removed not long ago."""
        removed = self.removed.get(name)
        return removed is not None and removed.until > time.monotonic()

    def bury(self, names: Iterable[str]) -> None:
        """Jobs of before that the configuration has no longer: somebody may still have their targets."""
        until = time.monotonic() + self._tombstone_seconds
        self.removed |= {name: Removed(name, until) for name in names if name not in self._fingerprints}

    def fingerprint(self, name: str) -> str:
        """Of the job's configuration, equal in another process; secrets are no part of it. Empty if no configuration has the job."""
        return self._fingerprints.get(name, "")

    def past(self, job: APIWatcher) -> Known | None:
        """What the last run knew of a job that has yet to sync."""
        return None if job.is_synced else self._past.of(job.name, self.fingerprint(job.name))

    def targets(self, job: APIWatcher) -> int:
        """How many there are after the rules, now or at the end of the last run."""
        return job.targets if (past := self.past(job)) is None else past.targets

    def last_contact(self, job: APIWatcher) -> float | None:
        """Unix time at which these were last known to be so; None if they are not known."""
        return job.last_contact if (past := self.past(job)) is None else past.true_at

    async def apply(self, configuration: Configuration) -> ConfigurationChange:
        """Jobs that are as before keep their watches and targets; of those whose rules alone have changed nothing is asked for again.

        ConfigError, and nothing has changed, if a job cannot be run here.
        """
        change = _sharing_out(compare(self.configuration, configuration), self.configuration, configuration)
        jobs = {job.job_name: job for job in configuration.jobs}
        for name in (*change.added, *change.replaced):
            for number, config in enumerate(jobs[name].kubernetes_sd_configs):
                with within(f"job {name}: kubernetes_sd_configs[{number}]"):
                    group_key(config, jobs[name].dialect)  # a mistake must leave all as it was
        self._fingerprints = {name: _fingerprint(job) for name, job in jobs.items()}
        for name in change.relabeled:
            self._discovery.jobs[name].reconfigure(relabel_configs=jobs[name].relabel_configs)
        self.removed = {name: one for name, one in self.removed.items() if self.is_tombstone(name) and name not in jobs}
        self.bury(change.removed)
        ended = []
        for name in (*change.removed, *change.replaced):
            if (running := self._discovery.jobs.get(name)) is not None:
                if running.is_synced:
                    self._past.forget(name)
                running.end()  # no more than that: there must be no moment at which a job that is replaced is not there
                self._exports.forget(running)
                ended.append(running)
        for name in (*change.added, *change.replaced):
            self._start(jobs[name])
        self.configuration = configuration
        for job in ended:
            await job.stop()
        return change

    def _start(self, job: ScrapeConfig) -> None:
        self._discovery.watch(
            job.job_name,
            job.kubernetes_sd_configs,
            relabel_configs=job.relabel_configs,
            target_defaults=_target_defaults(job),
            dialect=job.dialect,
        )


def _sharing_out(change: ConfigurationChange, old: Configuration, new: Configuration) -> ConfigurationChange:
    """A job whose labels before the first rule have changed is a new one; that, too, needs no request."""
    sharing = [{job.job_name for job in one.jobs if not job.disable_sharding} for one in (old, new)]
    again = tuple(name for name in change.relabeled if (name in sharing[0]) != (name in sharing[1]))
    relabeled = tuple(name for name in change.relabeled if name not in again)
    return replace(change, relabeled=relabeled, replaced=(*change.replaced, *again))


def _fingerprint(job: ScrapeConfig) -> str:
    """Of all that it says, and of the server and the namespaces that follow from where it runs."""
    groups = [group_key(config, job.dialect) for config in job.kubernetes_sd_configs]
    return xxh3_128_hexdigest(repr((job, groups)).encode())


def _target_defaults(job: ScrapeConfig) -> TargetDefaults:
    """Rules that share targets out among several scrapers keep all of them here, by the label that they have for that: who reads the export
    runs them again, and takes its own share."""
    if not job.disable_sharding:
        return job.target_defaults
    return replace(job.target_defaults, labels={**job.target_defaults.labels, **_DISABLE_SHARDING})
