"""Labels of discovery that rules read and that no target of the job ever has: most are slips of the pen."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterator
from typing import Any

from fastdisco.config import DIALECTS, ROLES, AttachMetadata, KubernetesSDConfig
from fastdisco.label_names import PREFIX, LabelNames, label_names
from fastdisco.regexes import Runs, compile_re2, without_anchors
from fastdisco.rules import COPY_LABELS, KEEP_LABELS, Rule, compile_rule
from fastdisco.scrape_config import ScrapeConfig

from .dialects import PROGRAMS

_LONGEST = 200  # of the names that an expression may match, as far as RE2 tells


def unmade_labels(job: ScrapeConfig) -> tuple[str, ...]:
    """A line for each rule and label: `relabel_configs[INDEX]: LABEL: why`. The index counts global rules as well."""
    names = _names(job.kubernetes_sd_configs, job.dialect)
    written: set[str] = set()
    found: list[str] = []
    for index, config in enumerate(job.relabel_configs):
        rule = compile_rule(config, job.dialect, Runs())
        reads = dict.fromkeys((*rule.sources, *(rule.guard.sources if rule.guard else ())))
        unmade = [name for name in reads if name.startswith(PREFIX) and name not in written and not names.has(name)]
        found += [f"relabel_configs[{index}]: {name}: {_why(name, job)}" for name in unmade]
        if why := _only_unmade(rule, job, names, written):
            found.append(f"relabel_configs[{index}]: {config.regex}: {why}")
        written |= set(rule.targets)
    return tuple(found)


def _names(configs: tuple[KubernetesSDConfig, ...], dialect: str) -> LabelNames:
    found = LabelNames(frozenset(), frozenset())
    for config in configs:
        found |= label_names(config.role, dialect, _attached(config.attach_metadata))
    return found


def _attached(attach: AttachMetadata) -> tuple[str, ...]:
    return tuple(one.name for one in dataclasses.fields(attach) if getattr(attach, one.name))


def _why(name: str, job: ScrapeConfig) -> str:
    """What would have to be otherwise for a target to have it."""
    roles = tuple(dict.fromkeys(config.role for config in job.kubernetes_sd_configs))
    everything = tuple(one.name for one in dataclasses.fields(AttachMetadata))
    for role in roles:
        for key in everything:
            if label_names(role, job.dialect, (key,)).has(name):
                return f"there with attach_metadata: {{{key}: true}} only"
    for dialect in DIALECTS:
        if any(label_names(role, dialect, everything).has(name) for role in roles):
            return f"{PROGRAMS[dialect]} has it, and dialect {job.dialect} does not"
    others = [role for role in ROLES if label_names(role, job.dialect, everything).has(name)]
    if others:
        return f"role {' or '.join(others)} has it, and role {' or '.join(roles)} does not"
    close = _close(name, _names(job.kubernetes_sd_configs, job.dialect))
    return f"no target has it{f'; is {close} meant?' if close else ''}"


def _close(name: str, names: LabelNames) -> str:
    """The name that was meant; of a family, with the key that is written."""
    candidates = set(names.names)
    for family in names.families:
        words = family.count("_")
        candidates |= {family + key for key in name.split("_", words)[words:] if key}
    close = difflib.get_close_matches(name, sorted(candidates), 1, 0.9)
    return close[0] if close else ""


def _only_unmade(rule: Rule, job: ScrapeConfig, names: LabelNames, written: set[str]) -> str:
    """Why a rule over names has nothing to do: its expression begins as discovered labels do, and fits none of those that there can be."""
    if rule.kind not in (COPY_LABELS, KEEP_LABELS) or rule.config.regex is None:
        return ""
    expression: Any = compile_re2(f"^(?s:{without_anchors(rule.config.regex)})$")
    bounds = expression.possiblematchrange(_LONGEST)
    if not all(bound.startswith(PREFIX.encode()) for bound in bounds) or any(_fits(expression, bounds, names, written)):
        return ""
    everything = tuple(one.name for one in dataclasses.fields(AttachMetadata))
    attached = (label_names(config.role, job.dialect, everything) for config in job.kubernetes_sd_configs)
    if any(any(_fits(expression, bounds, one, set())) for one in attached):
        return "fits only labels of attach_metadata that is not asked for"
    return "fits no label that targets of this job can have"


def _fits(expression: Any, bounds: tuple[bytes, bytes], names: LabelNames, written: set[str]) -> Iterator[bool]:
    yield from (expression.fullmatch(name) is not None for name in names.names | written)
    # of a family only the beginning is known
    yield from (family.encode() <= bounds[1] and bounds[0] <= family.encode() + b"\xff" for family in names.families)
