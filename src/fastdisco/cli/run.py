"""`fastdisco run`: continuous discovery; in this version, of the synthetic cluster of a demo."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import socket
import sys
from dataclasses import replace

import uvloop
from aiohttp import web
from prometheus_client import CollectorRegistry, ProcessCollector

from fastdisco import __version__
from fastdisco.config import ROLES, AttachMetadata, KubernetesSDConfig
from fastdisco.discovery import Discovery
from fastdisco.errors import FastdiscoError
from fastdisco.sidecar import make_app
from fastdisco.synthetic import SyntheticProcess

from .arguments import RUN_PODS
from .demo import demo_cluster, keep_changing
from .display import Display
from .ending import until_signal

_SHUTDOWN = 0.2  # seconds for answers that are being sent


def run(arguments: argparse.Namespace) -> int:
    """The command, from flags to exit code."""
    if arguments.config is not None:
        arguments.usage("argument --config: a configuration file is not supported in this version; see `fastdisco run --demo`")
    if not arguments.demo:
        arguments.usage("a configuration file is not supported in this version; see `fastdisco run --demo`")
    pods = arguments.pods or RUN_PODS
    with _listen(*arguments.listen_address) as listening:
        os.write(sys.stdout.fileno(), f"fastdisco {__version__}: making a synthetic cluster of {pods:,} pods…\n".encode())
        try:
            with demo_cluster(pods) as cluster:
                uvloop.run(until_signal(_serve(arguments, cluster, listening)))
        except KeyboardInterrupt:  # before or after the loop
            pass
    return 0


def _listen(host: str, port: int) -> socket.socket:
    """Before anything else is started: a port in use is the likeliest failure."""
    try:
        family = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and not isinstance(error, socket.gaierror) else error.strerror or str(error)
        raise FastdiscoError(f"cannot listen on {_shown(host, port)}: {reason} (choose another with --web.listen-address)") from None


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def _serve(arguments: argparse.Namespace, cluster: SyntheticProcess, listening: socket.socket) -> int:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    async with Discovery(registry=registry) as discovery:
        config = KubernetesSDConfig("node", cluster.url, attach_metadata=AttachMetadata(node=True, namespace=True))
        jobs = [discovery.watch(role, replace(config, role=role)) for role in ROLES]
        runner = web.AppRunner(make_app(discovery), access_log=None, shutdown_timeout=_SHUTDOWN)
        await runner.setup()
        try:
            await web.SockSite(runner, listening).start()
            host, port = listening.getsockname()[:2]
            display = Display(discovery, f"http://{_shown('127.0.0.1' if host == '0.0.0.0' else host, port)}/")
            await display.start(arguments.pods or RUN_PODS, cluster.url)
            await asyncio.gather(*(job.synced() for job in jobs))
            # All that has been made so far stays: no collection needs to look at it again.
            gc.freeze()
            await asyncio.to_thread(keep_changing, cluster, arguments.rate)
            await display.go_on()
        finally:
            await runner.cleanup()
    return 0
