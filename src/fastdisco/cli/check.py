"""`fastdisco check`: what a configuration file would run, what of it is not used, and all mistakes in it."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from typing import Any

import orjson

from fastdisco.config import KubernetesSDConfig
from fastdisco.configuration import Configuration, ConfigurationError, load_configuration, unmade_labels
from fastdisco.scrape_config import ScrapeConfig


def run(arguments: argparse.Namespace) -> int:
    """The command, from flags to exit code."""
    try:
        read = load_configuration(arguments.file, settings=arguments.settings, dialect=arguments.dialect, expand_env=arguments.expand_env)
    except ConfigurationError as error:
        if arguments.output == "json":
            _write(_json({"mistakes": error.mistakes}))
        else:
            sys.stderr.write("".join(f"fastdisco check: error: {mistake}\n" for mistake in error.mistakes))
        return 1
    _write(_json(_as_json(read)) if arguments.output == "json" else "".join(f"{line}\n" for line in _lines(read)))
    return 0


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n"


def _as_json(read: Configuration) -> dict[str, Any]:
    return {
        "dialect": read.dialect,
        "dialect_reason": read.dialect_reason,
        "jobs": [
            {
                "job_name": job.job_name,
                "dialect": job.dialect,
                "disable_sharding": job.disable_sharding,
                "rules": len(job.relabel_configs),
                "kubernetes_sd_configs": [_discovery(config) for config in job.kubernetes_sd_configs],
                "unmade_labels": unmade_labels(job),
            }
            for job in read.jobs
        ],
        "shared_watches": _sharing(read),
        "not_used": read.not_used,
        "warnings": read.warnings,
        "checksums": {str(file): checksum for file, checksum in read.checksums.items()},
    }


def _discovery(config: KubernetesSDConfig) -> dict[str, Any]:
    """What is discovered and where, without how the server is reached."""
    return {
        "role": config.role,
        "api_server": config.api_server,
        "namespaces": dataclasses.asdict(config.namespaces),
        "selectors": [dataclasses.asdict(selector) for selector in config.selectors],
        "attach_metadata": dataclasses.asdict(config.attach_metadata),
    }


def _sharing(read: Configuration) -> list[list[str]]:
    """The names of jobs whose requests are the same, wherever two or more are."""
    groups: dict[tuple[object, ...], dict[str, None]] = {}
    for job in read.jobs:
        for config in job.kubernetes_sd_configs:
            groups.setdefault(_requests(config), {})[job.job_name] = None
    return [list(names) for names in groups.values() if len(names) > 1]


def _requests(config: KubernetesSDConfig) -> tuple[object, ...]:
    """All of a configuration that requests depend on; the role and what is attached only choose among watches."""
    values = {one.name: getattr(config, one.name) for one in dataclasses.fields(config) if one.name not in ("role", "attach_metadata")}
    values["namespaces"] = (frozenset(config.namespaces.names), config.namespaces.own_namespace)
    values["selectors"] = frozenset(config.selectors)
    return tuple(values.values())


def _lines(read: Configuration) -> Iterator[str]:
    yield read.dialect_reason
    for job in read.jobs:
        yield f"job {job.job_name}: {_counted(len(job.relabel_configs), 'rule')}{_exceptions(job, read)}"
        yield from (f"  {_described(config)}" for config in job.kubernetes_sd_configs)
    if not read.jobs:
        yield "no job has kubernetes_sd_configs: nothing would run"
    for names in _sharing(read):
        yield f"these jobs share their watches: {', '.join(names)}"
    unmade = [f"job {job.job_name}: {line}" for job in read.jobs for line in unmade_labels(job)]
    for title, lines in (("not used", read.not_used), ("read by rules, but never there", unmade), ("warnings", read.warnings)):
        if lines:
            yield f"{title}:"
            yield from (f"  {line}" for line in lines)


def _exceptions(job: ScrapeConfig, read: Configuration) -> str:
    other = f", dialect {job.dialect}" if job.dialect != read.dialect else ""
    return other + ("" if job.disable_sharding else ", its rules may shard")


def _described(config: KubernetesSDConfig) -> str:
    parts = [f"role {config.role} of {config.api_server or 'the API server of the pod'}"]
    names = (*config.namespaces.names, *(("its own",) if config.namespaces.own_namespace else ()))
    if names:
        parts.append(f"namespaces {', '.join(names)}")
    parts += [f"{one.role}s by {' and '.join(filter(None, (one.label, one.field)))}" for one in config.selectors]
    attached = [one.name for one in dataclasses.fields(config.attach_metadata) if getattr(config.attach_metadata, one.name)]
    if attached:
        parts.append(f"attached {', '.join(attached)}")
    return "; ".join(parts)


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count != 1)}"
