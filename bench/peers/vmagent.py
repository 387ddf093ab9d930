"""vmagent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from .program import Peer
from .samples import Samples

_OBJECTS = "vm_promscrape_discovery_kubernetes_objects"


class Vmagent(Peer):
    """It tells of each object when it is done with it; its targets follow within its check interval, here a second instead of thirty.

    Registered is what its discovery has made; starting the scrapers of many targets, which takes it longer still, is not counted.
    """

    name = "vmagent"
    version_flags: ClassVar[tuple[str, ...]] = ("-version",)

    def command(self, folder: Path, port: int) -> list[str]:
        return [
            str(self.path),
            f"-promscrape.config={folder / 'scrape.yml'}",
            f"-httpListenAddr=127.0.0.1:{port}",
            "-remoteWrite.url=http://127.0.0.1:1/",
            "-promscrape.kubernetesSDCheckInterval=1s",
            f"-remoteWrite.tmpDataPath={folder / 'data'}",
        ]

    def registered(self, samples: Samples, kept: Mapping[str, int], discovered: int) -> bool:  # noqa: ARG002
        working = samples.total("vm_promscrape_discovery_kubernetes_subscribers", status="working")
        return working == len(kept) and samples.total("vm_promscrape_discovery_kubernetes_scrape_works") == sum(kept.values())

    def kept(self, samples: Samples) -> dict[str, float]:
        return samples.by("vm_promscrape_scrape_pool_targets", "scrape_job")

    def handled(self, samples: Samples) -> float | None:
        return sum(samples.total(f"{_OBJECTS}_{what}_total", role="pod") for what in ("added", "updated", "removed"))
