"""`fastdisco explain`: what became of one object in one job, rule by rule."""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Iterator
from typing import Any

import orjson
import uvloop

from fastdisco.configuration import load_configuration
from fastdisco.configuration.effective import written_rule
from fastdisco.discovery import Discovery
from fastdisco.errors import ConfigError
from fastdisco.explanation import ExplainedRule, ExplainedTarget, Explanation, LabelList
from fastdisco.relabel_config import RelabelConfig
from fastdisco.scrape_config import ScrapeConfig

from .ending import until_signal
from .first_sync import first_sync
from .log import let_go
from .output import Output


def run(arguments: argparse.Namespace) -> int:
    """The command, from flags to exit code."""
    read = load_configuration(
        arguments.config, settings=arguments.settings, dialect=arguments.dialect, expand_env=arguments.expand_env
    )
    jobs = {job.job_name: job for job in read.jobs}
    job = jobs.get(arguments.job)
    if job is None:
        known = ", ".join(jobs) or "none"
        raise ConfigError(f"{arguments.config}: no job with kubernetes_sd_configs is called {arguments.job!r}; there are: {known}")
    namespace, _, name = arguments.object.rpartition("/")
    if not any(_fits(config.role, namespace) for config in job.kubernetes_sd_configs):
        wanted = "NAME, of a node" if namespace else "NAMESPACE/NAME"
        mistake = f"has no role for {arguments.object!r}; it discovers objects by {wanted}"
        raise ConfigError(f"{arguments.config}: job {job.job_name!r} {mistake}")
    return uvloop.run(until_signal(_explain(arguments, job, namespace, name)))


async def _explain(arguments: argparse.Namespace, job: ScrapeConfig, namespace: str, name: str) -> int:
    output = Output(sys.stdout.fileno())
    async with Discovery(dialect=job.dialect) as discovery:
        try:
            watcher = discovery.watch(
                job.job_name, job.kubernetes_sd_configs, relabel_configs=job.relabel_configs, target_defaults=job.target_defaults
            )
        except ConfigError as error:
            raise ConfigError(f"{arguments.config}: job {job.job_name!r}: {error}") from None
        await first_sync(discovery, watcher, {config.role for config in job.kubernetes_sd_configs}, arguments.timeout)
        let_go()
        found = await watcher.explain(namespace, name)
    fitting = [one for one in found if _fits(one.role, namespace)]
    known = [one for one in fitting if one.known]
    shown = known or fitting
    if arguments.json:
        await output.write(orjson.dumps([_as_json(one) for one in shown], option=orjson.OPT_INDENT_2) + b"\n")
    else:
        await output.write("\n".join(line for one in shown for line in _lines(one, arguments.object)).encode() + b"\n")
    return 0 if known else 1


def _fits(role: str, namespace: str) -> bool:
    """A name without a namespace is that of a node, any other that of anything else."""
    return (role == "node") == (not namespace)


def _as_json(explanation: Explanation) -> dict[str, Any]:
    made = dataclasses.asdict(explanation)
    for target, explained in zip(made["targets"], explanation.targets, strict=True):
        for step, rule in zip(target["rules"], explained.rules, strict=True):
            step["rule"] = written_rule(rule.rule)
    return made


def _lines(explanation: Explanation, name: str) -> Iterator[str]:
    count = len(explanation.targets)
    yield f"{name}, role {explanation.role}: " + (f"{count} target{'s' * (count != 1)}" if count else f"no target: {explanation.reason}")
    first: dict[tuple[tuple[str, str], ...], int] = {}
    for number, target in enumerate(explanation.targets, 1):
        yield ""
        same = first.setdefault(tuple(target.labels.items()), number)
        if target.dropped:
            ending = f"dropped: {target.dropped}"
        else:
            ending = "kept" if same == number or not target.rules else f"kept, as one with target {same}: their final labels are equal"
        yield f"target {number}: {target.discovered.get('__address__', '')}: {ending}"
        yield from _target_lines(target)


def _target_lines(target: ExplainedTarget) -> Iterator[str]:
    if target.rules:
        yield "  before the rules:"
        yield from (f"    {name}={_quoted(value)}" for name, value in target.rules[0].before)
    else:
        yield "  discovered:"
        yield from (f"    {name}={_quoted(value)}" for name, value in target.discovered.items())
    for number, step in enumerate(target.rules, 1):
        yield f"  rule {number}: {_written(step.rule)}"
        yield from (f"    {line}" for line in _difference(step))
    if target.dropped:
        if not target.dropped.startswith("rule "):
            yield f"  dropped after the rules: {target.dropped}"
        return
    yield "  for the scraper:"
    yield from (f"    {name}={_quoted(value)}" for name, value in target.labels.items())
    yield "  with its samples: " + ", ".join(f"{name}={_quoted(value)}" for name, value in target.stored.items())


def _difference(step: ExplainedRule) -> Iterator[str]:
    if not step.after:
        yield "drops the target"
        return
    before, after = dict(step.before), dict(step.after)
    for name, value in _changed(step.before, after):
        yield f"- {name}={_quoted(value)}" if name not in after else f"~ {name}={_quoted(value)} becomes {_quoted(after[name])}"
    for name, value in after.items():
        if name not in before:
            yield f"+ {name}={_quoted(value)}"


def _changed(before: LabelList, after: dict[str, str]) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, value in before if after.get(name) != value)


def _written(rule: RelabelConfig) -> str:
    """As in YAML's flow style."""
    return "{" + ", ".join(f"{key}: {_flow(value)}" for key, value in written_rule(rule).items()) + "}"


def _flow(value: object) -> str:
    if isinstance(value, tuple):
        pairs = [one for one in value if isinstance(one, tuple)]
        if pairs:
            return "{" + ", ".join(f"{name}: {_flow(text)}" for name, text in pairs) + "}"
        return f"[{', '.join(map(_flow, value))}]"
    text = str(value)
    return text if isinstance(value, int) or re.fullmatch(r"[a-zA-Z_]\w*", text) else _quoted(text)


def _quoted(value: str) -> str:
    return orjson.dumps(value).decode()
