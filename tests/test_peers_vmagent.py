"""fastdisco beside vmagent, both discovering from one synthetic API server."""

from pathlib import Path
from typing import Any

import pytest

from fastdisco import Discovery, KubernetesSDConfig
from fastdisco.synthetic import SyntheticProcess
from tests.peers.comparing import change, same
from tests.peers.objects import cluster
from tests.peers.scraper import kubernetes
from tests.peers.vmagent import Vmagent

COUNT = 500
ATTACHED = {"node": True, "namespace": True}
CONFIGS: dict[str, dict[str, Any]] = {
    **{role: {"role": role} for role in ("node", "pod", "service", "endpoints", "endpointslice", "ingress")},
    **{f"{role}+all": {"role": role, "attach_metadata": ATTACHED} for role in ("pod", "service", "endpoints", "endpointslice", "ingress")},
}

@pytest.mark.slow
@pytest.mark.peers("vmagent")
async def test_discovered_labels_are_those_of_vmagent_before_and_after_a_change(tmp_path: Path) -> None:
    """500 objects of each kind, every role, with and without attachments; then a third of them changed, deleted or new."""
    objects = cluster(1, COUNT)
    async with SyntheticProcess(objects=objects) as server, Discovery() as discovery:
        jobs = {name: {**config, "api_server": server.url} for name, config in CONFIGS.items()}
        watchers = {name: discovery.watch(name, KubernetesSDConfig.from_dict(config), dict) for name, config in jobs.items()}
        async with Vmagent(tmp_path, kubernetes(jobs)) as vmagent:
            for watcher in watchers.values():
                await watcher.synced(timeout=60)
            await same(watchers, vmagent)
            assert all(watcher.scrape_works() for watcher in watchers.values())
            await server.acontrol("apply", change(objects, 2))
            await same(watchers, vmagent)
