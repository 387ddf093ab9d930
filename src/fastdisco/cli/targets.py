"""`fastdisco targets`: an array of the labels of all targets, and then, on demand, one line per change."""

from __future__ import annotations

import argparse
import asyncio
import heapq
import logging
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING

import orjson
import uvloop

from fastdisco.config import KubernetesSDConfig
from fastdisco.discovery import Discovery
from fastdisco.errors import ConfigError
from fastdisco.roles import kinds_of, profile_of

from .arguments import STANDARD_INPUT, TARGETS_PODS, as_flag, sd_config
from .demo import demo_cluster, keep_changing
from .ending import until_signal
from .first_sync import first_sync
from .log import let_go
from .output import Output

if TYPE_CHECKING:
    from fastdisco._labels import Labels
    from fastdisco.api_watcher import APIWatcher
    from fastdisco.changes import Reader

_SLICE = 100  # targets between two turns of the loop, written at once: 300 KB
_RUN = 5000  # targets sorted at once: 10 ms
_DEMO_RATE = 5.0  # changes per second

logger = logging.getLogger("fastdisco")


def run(arguments: argparse.Namespace) -> int:
    """The command, from flags to exit code."""
    config = sd_config(arguments)
    _warn_of_idle_selectors(config, arguments.dialect)
    if not arguments.demo:
        return uvloop.run(until_signal(_discover(arguments, config)))
    with demo_cluster(arguments.pods or TARGETS_PODS) as server:
        if arguments.watch:
            keep_changing(server, _DEMO_RATE)
        return uvloop.run(until_signal(_discover(arguments, replace(config, api_server=server.url))))


def _warn_of_idle_selectors(config: KubernetesSDConfig, dialect: str) -> None:
    read = kinds_of(config.role, profile_of(config.role, config.attach_metadata, dialect))
    for kind in dict.fromkeys(one.role for one in config.selectors if one.role not in read):
        logger.warning("the selector for role %s has no effect: of role %s only these are read: %s", kind, config.role, ", ".join(read))


async def _discover(arguments: argparse.Namespace, config: KubernetesSDConfig) -> int:
    output = Output(sys.stdout.fileno())
    async with Discovery(dialect=arguments.dialect) as discovery:
        try:
            job = discovery.watch("targets", config)
        except ConfigError as error:
            raise ConfigError(f"{_named(arguments.sd_config)}: {error}" if arguments.sd_config else as_flag(error)) from None
        await first_sync(discovery, job, config.role, arguments.timeout)
        let_go("\n".join(job.refused))
        if not arguments.watch:
            await _write_array(output, job.scrape_works(), config.role)
            return _tell_refused(job)
        reader = job.changes()
        first = await anext(reader)
        await _write_array(output, first.works, config.role)
        code = _tell_refused(job)
        gone = asyncio.create_task(_leave_when_closed(output, reader))
        try:
            await _follow(output, reader, first.works)
        except asyncio.CancelledError:
            pass  # this is how watching ends
        finally:
            gone.cancel()
        return code


def _named(file: str) -> str:
    return "standard input" if file == STANDARD_INPUT else file


def _tell_refused(job: APIWatcher) -> int:
    for refusal in job.refused:
        sys.stderr.write(f"fastdisco targets: error: the server refused {refusal}\n")
    return 1 if job.refused else 0


async def _leave_when_closed(output: Output, reader: Reader) -> None:
    """Without it a reader that has gone would be noticed at the next change only."""
    await output.closed()
    await reader.aclose()


# ---- the array ----


async def _write_array(output: Output, works: Sequence[Labels], role: str) -> None:
    """One target a line, in an order that depends on nothing but their labels."""
    before = b"[\n"
    async for some in _ordered(works, f"__meta_kubernetes_{role}_name"):
        await output.write(before + b",\n".join(some))
        before = b",\n"
    await output.write(b"\n]\n" if works else b"[]\n")


async def _ordered(works: Sequence[Labels], name: str) -> AsyncIterator[list[bytes]]:
    """Targets as JSON, in slices: by namespace, name and address, and where these are equal by all labels."""
    runs: list[list[tuple[tuple[str, str, str], Labels]]] = []
    for start in range(0, len(works), _RUN):
        runs.append(sorted(((_place(labels, name), labels) for labels in works[start : start + _RUN]), key=itemgetter(0)))
        await asyncio.sleep(0)
    merged = heapq.merge(*runs, key=itemgetter(0))
    texts = chain.from_iterable(sorted(map(_json, map(itemgetter(1), equal))) for _, equal in groupby(merged, itemgetter(0)))
    while some := list(islice(texts, _SLICE)):
        yield some


def _place(labels: Labels, name: str) -> tuple[str, str, str]:
    return labels.get("__meta_kubernetes_namespace", ""), labels.get(name, ""), labels.get("__address__", "")


def _json(labels: Labels) -> bytes:
    return orjson.dumps(dict(labels))  # the names come sorted


# ---- the changes ----


async def _follow(output: Output, reader: Reader, works: Sequence[Labels]) -> None:
    """A line per change until the reader ends; one that was too slow gets the differences, as removed and added."""
    shown = await _counted(works)
    async for change in reader:
        if change.kind == "snapshot":
            now = await _counted(change.works)
            async for lines in _differences(shown, now):
                await output.write(lines)
            shown = now
            continue
        await output.write(_line(change.kind, change.work, change.old))
        gone, come = (change.work, None) if change.kind == "removed" else (change.old, change.work)
        if gone is not None:
            shown[gone] -= 1
            if not shown[gone]:
                del shown[gone]
        if come is not None:
            shown[come] += 1


async def _counted(works: Sequence[Labels]) -> Counter[Labels]:
    counts: Counter[Labels] = Counter()
    for start in range(0, len(works), _RUN):
        counts.update(works[start : start + _RUN])
        await asyncio.sleep(0)
    return counts


async def _differences(before: Counter[Labels], after: Counter[Labels]) -> AsyncIterator[bytes]:
    for kind, these, those in (("removed", before, after), ("added", after, before)):
        for position, (labels, count) in enumerate(these.items()):
            for _ in range(count - those[labels]):
                yield _line(kind, labels)
            if position % _RUN == 0:
                await asyncio.sleep(0)


def _line(kind: str, labels: Labels, old: Labels | None = None) -> bytes:
    line = {"change": kind, "labels": dict(labels)}
    if old is not None:
        line["old"] = dict(old)
    return orjson.dumps(line) + b"\n"
