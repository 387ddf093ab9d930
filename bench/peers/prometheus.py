"""Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .program import Peer
from .samples import Samples


class Prometheus(Peer):
    """It hands all targets of a job on at most once in five seconds, so its figures come in steps of that size."""

    name = "prometheus"
    remark = "Prometheus asks for protobuf and gets JSON, as the synthetic server speaks nothing else."

    def command(self, folder: Path, port: int) -> list[str]:
        return [
            str(self.path),
            f"--config.file={folder / 'scrape.yml'}",
            f"--web.listen-address=127.0.0.1:{port}",
            f"--storage.tsdb.path={folder / 'data'}",
        ]

    def registered(self, samples: Samples, kept: Mapping[str, int], discovered: int) -> bool:
        found = samples.by("prometheus_sd_discovered_targets", "config")
        return all(found.get(job) == discovered for job in kept) and self.kept(samples) == kept

    def kept(self, samples: Samples) -> dict[str, float]:
        return samples.by("prometheus_target_scrape_pool_targets", "scrape_job")

    def handled(self, samples: Samples) -> float | None:  # noqa: ARG002
        return None  # its counters rise when an event is queued, not when it is done
