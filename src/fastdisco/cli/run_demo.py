"""`fastdisco run --demo`: a synthetic cluster that changes, discovered and served."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
from contextlib import ExitStack
from dataclasses import replace
from socket import socket

import uvloop
from prometheus_client import CollectorRegistry, ProcessCollector

from fastdisco import __version__
from fastdisco.config import ROLES, AttachMetadata, KubernetesSDConfig
from fastdisco.discovery import Discovery
from fastdisco.sidecar import Service
from fastdisco.sidecar.listening import listen
from fastdisco.sidecar.web_config import WebConfig
from fastdisco.synthetic import SyntheticProcess

from .arguments import RUN_PODS
from .demo import demo_cluster, keep_changing
from .display import Display
from .ending import until_signal
from .run import served, service_options


def run_demo(arguments: argparse.Namespace) -> int:
    """From flags to exit code."""
    pods = arguments.pods or RUN_PODS
    with ExitStack() as stack:
        listening = stack.enter_context(listen(arguments.listen_address, "--web.listen-address"))
        health = stack.enter_context(listen(arguments.health_address, "--web.health-address")) if arguments.health_address else None
        os.write(sys.stdout.fileno(), f"fastdisco {__version__}: making a synthetic cluster of {pods:,} pods…\n".encode())
        try:
            with demo_cluster(pods) as cluster:
                uvloop.run(until_signal(_serve(arguments, cluster, listening, health)))
        except KeyboardInterrupt:  # before or after the loop
            pass
    return 0


async def _serve(arguments: argparse.Namespace, cluster: SyntheticProcess, listening: socket, health: socket | None) -> int:
    web_config = WebConfig.read(arguments.web_config_file)
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    async with Discovery(registry=registry) as discovery:
        config = KubernetesSDConfig("node", cluster.url, attach_metadata=AttachMetadata(node=True, namespace=True))
        jobs = [discovery.watch(role, replace(config, role=role)) for role in ROLES]
        service = Service(discovery, service_options(arguments))
        await service.start(None)
        async with served(arguments, service, web_config, listening, health) as url:
            display = Display(discovery, url)
            await display.start(arguments.pods or RUN_PODS, cluster.url)
            await asyncio.gather(*(job.synced() for job in jobs))
            # All that has been made so far stays: no collection needs to look at it again.
            gc.freeze()
            await asyncio.to_thread(keep_changing, cluster, arguments.rate)
            try:
                await display.go_on()
            finally:
                await service.stop()
    return 0
