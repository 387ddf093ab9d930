"""`fastdisco run`: continuous discovery of the jobs of a configuration, or of the synthetic cluster of a demo."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from socket import socket
from urllib.parse import urlsplit

import uvloop
from prometheus_client import CollectorRegistry, ProcessCollector

from fastdisco import __version__
from fastdisco.configuration import Configuration
from fastdisco.discovery import Discovery
from fastdisco.errors import FastdiscoError
from fastdisco.sidecar import Service, ServiceOptions, make_app, make_health_app
from fastdisco.sidecar.listening import Listener, is_loopback, listen, shown
from fastdisco.sidecar.loading import Options, load, report
from fastdisco.sidecar.web_config import WebConfig

from .ending import until_signal
from .first_sync import may_come
from .log import structure

logger = logging.getLogger("fastdisco")


def run(arguments: argparse.Namespace) -> int:
    """The command, from flags to exit code."""
    if arguments.demo:
        for flag, given in (("--config", arguments.config), ("--once", arguments.once)):
            if given:
                arguments.usage(f"argument {flag}: not allowed with argument --demo")
        from .run_demo import run_demo

        return run_demo(arguments)
    if arguments.config is None:
        arguments.usage("one of the arguments --config and --demo is required")
    if arguments.once and arguments.file_sd_directory is None:
        arguments.usage("argument --once: writes files, and so needs --file-sd.directory")
    structure(arguments.log_level, arguments.log_format)
    source = Options(Path(arguments.config), arguments.settings, arguments.dialect, arguments.expand_env)
    configuration = load(source)
    if configuration.dialect_reason:
        logger.info("%s", configuration.dialect_reason)
    report(configuration)
    if arguments.once and not configuration.jobs:
        raise FastdiscoError(f"{arguments.config}: no job has kubernetes_sd_configs: there is nothing to write")
    if arguments.once:
        return uvloop.run(until_signal(_once(arguments, source, configuration)))
    with ExitStack() as stack:
        listening = stack.enter_context(listen(arguments.listen_address, "--web.listen-address"))
        health = None
        if arguments.health_address is not None:
            health = stack.enter_context(listen(arguments.health_address, "--web.health-address"))
        return uvloop.run(until_signal(_serve(arguments, source, configuration, listening, health)))


def service_options(arguments: argparse.Namespace) -> ServiceOptions:
    """What flags say of the service."""
    return ServiceOptions(
        sync_wait=arguments.sync_wait,
        max_staleness=arguments.max_staleness,
        external_url=arguments.external_url or "",
        route_prefix=urlsplit(arguments.external_url or "").path if arguments.route_prefix is None else arguments.route_prefix,
        file_sd_directory=arguments.file_sd_directory,
        file_sd_format=arguments.file_sd_format,
        file_sd_mode=arguments.file_sd_mode,
        state=arguments.state,
        state_max_age=arguments.state_max_age,
        auto_reload=arguments.auto_reload_interval if arguments.auto_reload else 0.0,
    )


@asynccontextmanager
async def served(
    arguments: argparse.Namespace, service: Service, web_config: WebConfig, listening: socket, health: socket | None = None
) -> AsyncIterator[str]:
    """While it lasts, the service answers on these sockets; gives the URL of its page."""
    lifecycle = arguments.enable_lifecycle or is_loopback(arguments.listen_address[0])
    app = make_app(service, lifecycle=lifecycle)
    web_config.protect(app)
    if arguments.web_config_file is not None:
        service.web_config = web_config
    listeners = [Listener(app, listening, tls=web_config.tls)]
    if health is not None:
        listeners.append(Listener(make_health_app(service), health))
    refreshing = asyncio.create_task(web_config.keep_fresh())
    try:
        for listener in listeners:
            await listener.start()
        host, port = listening.getsockname()[:2]
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        yield f"{'https' if web_config.tls() else 'http'}://{shown(host, port)}{service.options.route_prefix}/"
    finally:
        refreshing.cancel()
        await asyncio.gather(*(listener.stop() for listener in listeners))


async def _serve(
    arguments: argparse.Namespace, source: Options, configuration: Configuration, listening: socket, health: socket | None
) -> int:
    web_config = WebConfig.read(arguments.web_config_file)
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    async with Discovery(registry=registry) as discovery:
        service = Service(discovery, service_options(arguments), source)
        try:
            await service.start(configuration)
            async with served(arguments, service, web_config, listening, health) as url:
                logger.info("fastdisco %s serves %d jobs on %s", __version__, len(configuration.jobs), url)
                _reload_on_hangup(service)
                await service.settled()
                # All that has been made so far stays: no collection needs to look at it again.
                gc.freeze()
                await asyncio.get_running_loop().create_future()  # until it is cancelled
        except asyncio.CancelledError:
            logger.info("stopping")
        finally:
            await service.stop()
    return 0


def _reload_on_hangup(service: Service) -> None:
    running: set[asyncio.Task[None]] = set()

    def begin() -> None:
        if service.reload is not None:
            task = asyncio.ensure_future(service.reload.on_signal())
            running.add(task)
            task.add_done_callback(running.discard)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, begin)


async def _once(arguments: argparse.Namespace, source: Options, configuration: Configuration) -> int:
    """Files of all jobs, each when it has synced; 1 if some have not."""
    async with Discovery() as discovery:
        service = Service(discovery, service_options(arguments), source)
        try:
            await service.start(configuration, keep_files=False)
            missing = await service.write_once(arguments.timeout, lambda: may_come(discovery))
            written = [job.name for job in service.jobs if job.name not in missing]
        finally:
            await service.stop()
    if missing:
        raise FastdiscoError("; ".join([*_by_reason(missing), f"written: {', '.join(written) or 'none'}"]))
    os.write(sys.stdout.fileno(), f"wrote the targets of {len(configuration.jobs)} jobs to {arguments.file_sd_directory}\n".encode())
    return 0


def _by_reason(missing: dict[str, str]) -> list[str]:
    """Jobs of one server have the same trouble, which is told once."""
    names: dict[str, list[str]] = {}
    for name, reason in missing.items():
        names.setdefault(reason, []).append(name)
    return [f"job{'s' if len(those) > 1 else ''} {', '.join(those)}: {reason}" for reason, those in names.items()]
