"""Jobs written out as YAML again, as they are run, without secrets."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastdisco.config import KubernetesSDConfig
from fastdisco.relabel_config import RelabelConfig
from fastdisco.scrape_config import ScrapeConfig
from fastdisco.target_labels import default_labels

SECRET = "<secret>"  # as both peers write it
_SECRETS = ("credentials", "password", "key", "client_secret")
_URL_USER = re.compile(r"(?<=://)[^/@]*@")


def effective_text(jobs: Sequence[ScrapeConfig]) -> str:
    """What is not at its default; secrets are masked, and so are the values of headers."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # thousands of rules take the other one seconds
    written = {"scrape_configs": [_job(job) for job in jobs]}
    text: str = yaml.dump(written, Dumper=dumper, sort_keys=False, allow_unicode=True, width=1000)
    return text


def written_rule(rule: RelabelConfig) -> dict[str, Any]:
    """The keys of a rule as in a configuration: the action, and what is not at its default."""
    return {"action": rule.action, **{name.rstrip("_"): value for name, value in _given(rule).items() if name != "action"}}


def _job(job: ScrapeConfig) -> dict[str, Any]:
    defaults = _given(job.target_defaults)
    labels = default_labels(job.job_name, job.target_defaults, "prometheus")  # for durations as people write them
    defaults |= {name: labels[f"__{name}__"] for name in ("scrape_interval", "scrape_timeout")}
    return {
        "job_name": job.job_name,
        "dialect": job.dialect,
        "disable_sharding": job.disable_sharding,
        **_plain(defaults),
        "kubernetes_sd_configs": [_plain(_discovery(config)) for config in job.kubernetes_sd_configs],
        "relabel_configs": [_rule(rule) for rule in job.relabel_configs],
    }


def _discovery(config: KubernetesSDConfig) -> dict[str, Any]:
    written = {"role": config.role, **_given(config)}
    if config.headers:
        written["headers"] = [f"{header.partition(':')[0]}: {SECRET}" for header in config.headers]
    if config.proxy_url:
        written["proxy_url"] = _URL_USER.sub(f"{SECRET}@", config.proxy_url)
    return written


def _rule(rule: RelabelConfig) -> dict[str, Any]:
    written: dict[str, Any] = _plain(written_rule(rule))
    if rule.labels:
        written["labels"] = dict(rule.labels)
    return written


def _given(section: Any) -> dict[str, Any]:
    """The fields of a dataclass that are not at their defaults."""
    found = {}
    for one in dataclasses.fields(section):
        value = getattr(section, one.name)
        default = one.default_factory() if one.default_factory is not dataclasses.MISSING else one.default
        if value != default:
            found[one.name] = SECRET if one.name in _SECRETS else value
    return found


def _plain(value: Any) -> Any:
    """Of dataclasses, mappings and tuples: what YAML can write."""
    if dataclasses.is_dataclass(value):
        return _plain(_given(value))
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, tuple) else value
