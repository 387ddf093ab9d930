"""What is shown of each job's export, beside the metrics of the discovery: read at each scrape, from numbers that their owners keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from fastdisco.api_watcher import APIWatcher

    from .reload import Reload
    from .service import Service
    from .web_config import WebConfig

# By name: the help, and what a job says; of one that has yet to sync there may be what the last run knew.
_GAUGES: dict[str, tuple[str, Callable[[Service, APIWatcher], float | None]]] = {
    "targets": ("Targets of a job, after its rules.", lambda service, job: float(service.jobs.targets(job))),
    "synced": ("Whether a job has synced.", lambda _, job: float(job.is_synced)),
    "past": ("Whether the targets of a job are those of the last run.", lambda service, job: float(service.jobs.past(job) is not None)),
    "last_change_timestamp_seconds": ("When the targets of a job changed last.", lambda _, job: job.last_change or None),
    "last_contact_timestamp_seconds": (
        "Last word from the API server to the watcher of a job that has been out of touch longest.",
        lambda service, job: service.jobs.last_contact(job) or None,
    ),
    "refused_paths": ("Paths that the API server refuses to a job.", lambda _, job: float(len(job.refused_paths))),
}


class SidecarMetrics(Collector):
    """In the discovery's registry, below its name."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._registry = service.discovery.metrics.registry
        self._prefix = f"{service.discovery.metrics.namespace}_sidecar_"
        self._registry.register(self)

    def close(self) -> None:
        self._registry.unregister(self)

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        jobs = list(self._service.discovery.jobs.values())
        for name, (text, value) in _GAUGES.items():
            gauge = GaugeMetricFamily(self._prefix + name, text, labels=["job"])
            for job in jobs:
                if (number := value(self._service, job)) is not None:
                    gauge.add_metric([job.name], number)
            yield gauge
        yield self._drops([(job.name, job.status()) for job in jobs])
        yield from self._polls()
        yield from self._files()
        yield from self._reloads("config", self._service.reload)
        yield from self._reloads("web_config", self._service.web_config)
        exports = self._service.exports
        yield CounterMetricFamily(self._prefix + "snapshots", "Times that targets were taken for an export.", value=exports.taken)
        yield CounterMetricFamily(self._prefix + "renderings", "Bodies rendered.", value=exports.rendered)

    def _drops(self, statuses: list[tuple[str, dict[str, Any]]]) -> Metric:
        drops = CounterMetricFamily(
            self._prefix + "dropped_targets", "Times that a target was dropped, by the rule's number or by why.", labels=["job", "rule"]
        )
        for name, status in statuses:
            for number, count in enumerate(status["dropped_by_rule"], 1):
                if count:
                    drops.add_metric([name, str(number)], count)
            for reason in ("without_label", "without_address"):
                if count := status[f"dropped_{reason}"]:
                    drops.add_metric([name, reason], count)
        return drops

    def _polls(self) -> Iterator[Metric]:
        polls, jobs = self._service.polls, self._service.jobs

        def shown(job: str) -> bool:
            """Of a job that has gone nothing is shown any more: an alert on it would never end."""
            return not job or jobs.get(job) is not None

        requests = CounterMetricFamily(self._prefix + "http_sd_requests", "Requests for targets.", labels=["job", "code"])
        for (job, code), count in sorted(polls.requests.items()):
            if shown(job):
                requests.add_metric([job, str(code)], count)
        yield requests
        sizes = CounterMetricFamily(self._prefix + "http_sd_body_bytes", "Bytes of targets sent, compressed ones as sent.", labels=["job"])
        for job, size in sorted(polls.bytes.items()):
            if shown(job):
                sizes.add_metric([job], size)
        yield sizes
        last = GaugeMetricFamily(
            self._prefix + "http_sd_last_success_timestamp_seconds", "Last successful poll of a kind of client.", labels=["job", "client"]
        )
        for (job, kind), moment in sorted(polls.last.items()):
            if shown(job):
                last.add_metric([job, kind], moment)
        yield last

    def _files(self) -> Iterator[Metric]:
        files = self._service.file_sd
        if files is None:
            return
        failures = CounterMetricFamily(self._prefix + "file_sd_write_failures", "Files that could not be written.", labels=["job"])
        left_out = GaugeMetricFamily(self._prefix + "file_sd_targets_without_address", "Targets that were left out.", labels=["job"])
        restored = CounterMetricFamily(
            self._prefix + "file_sd_restored", "Files written again since somebody else had removed or changed them.", labels=["job"]
        )
        for job in self._service.discovery.jobs:
            failures.add_metric([job], files.failures[job])
            restored.add_metric([job], files.restored[job])
            left_out.add_metric([job], files.without_address.get(job, 0))
        yield failures
        yield restored
        yield left_out

    def _reloads(self, name: str, read: Reload | WebConfig | None) -> Iterator[Metric]:
        if read is None:
            return
        name = f"{self._prefix}{name}_last_reload_success"
        yield GaugeMetricFamily(f"{name}ful", "Whether the last reload was good.", value=float(read.successful))
        yield GaugeMetricFamily(f"{name}_timestamp_seconds", "Last time that it was good.", value=read.last_success)
