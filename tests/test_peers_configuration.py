"""Which configuration files vmagent and Prometheus accept, by asking them, and what is made of the same files here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastdisco.configuration import ConfigurationError, load_configuration
from fastdisco.configuration.peer_keys import DISCOVERY, GLOBAL, JOB, RULE, TOP, Keys
from tests.peers import verdicts

pytestmark = pytest.mark.peers("vmagent", "prometheus")

PODS = "kubernetes_sd_configs: [{role: pod}]"
# Prometheus had it before 3.0; and of the kinds of discovery, the one that is built for tests has but a few
OLDER = {"scrape_classic_histograms"}
BUILT = {"kubernetes_sd_configs", "file_sd_configs", "http_sd_configs"}


def _job(**keys: Any) -> dict[str, Any]:
    return {"scrape_configs": [{"job_name": "a", **keys}]}


SECTIONS: dict[str, tuple[Keys, Callable[[dict[str, None]], dict[str, Any]]]] = {
    "top": (TOP, lambda keys: dict(keys)),
    "global": (GLOBAL, lambda keys: {"global": keys}),
    "job": (JOB, lambda keys: {"scrape_configs": [{**keys, "job_name": "a"}]}),
    "discovery": (DISCOVERY, lambda keys: _job(kubernetes_sd_configs=[{**keys, "role": "pod"}])),
    "rule": (RULE, lambda keys: _job(relabel_configs=[{**keys, "target_label": "a"}])),
    "attach_metadata": (
        DISCOVERY.inner["attach_metadata"],
        lambda keys: _job(kubernetes_sd_configs=[{"role": "pod", "attach_metadata": keys}]),
    ),
} | {name: (keys, lambda keys, name=name: _job(**{name: keys})) for name, keys in JOB.inner.items() if name in ("tls_config", "oauth2")}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_tables_of_keys_are_those_of_the_peers(section: str, tmp_path: Path) -> None:
    """Each refuses all keys that only the other one has, and no other key; a key without a value is enough to tell."""
    keys, document = SECTIONS[section]
    file = tmp_path / "scrape.yml"
    file.write_text(json.dumps(document(dict.fromkeys(sorted(keys.all())))))
    unknown = re.compile(r"field (\S+) not found in type")
    assert set(unknown.findall(verdicts.vmagent(file))) == keys.prometheus
    refused = set(unknown.findall(verdicts.prometheus(file))) - OLDER
    assert {key for key in refused if not key.endswith("_sd_configs") or key in BUILT} == {
        key for key in keys.victoriametrics if not key.endswith("_sd_configs")
    }


def with_rule(rule: str) -> str:
    return f"scrape_configs: [{{job_name: a, {PODS}, relabel_configs: [{{{rule}}}]}}]"


def with_discovery(*discoveries: str) -> str:
    return f"scrape_configs: [{{job_name: a, kubernetes_sd_configs: [{', '.join(f'{{{one}}}' for one in discoveries)}]}}]"


def with_key(key: str) -> str:
    return f"scrape_configs: [{{job_name: a, {PODS}, {key}}}]"


# Whether vmagent accepts it, whether Prometheus does, and the text.
FILES: dict[str, tuple[bool, bool, str]] = {
    "nothing special": (True, True, f"scrape_configs: [{{job_name: a, {PODS}}}]"),
    "all roles": (
        True, True, with_discovery(*(f"role: {role}" for role in ("pod", "node", "service", "endpoints", "endpointslice", "ingress"))),
    ),
    "spelling of an action": (True, True, with_rule("action: RePlace, target_label: x")),
    "numbers for texts": (True, True, with_rule("target_label: x, replacement: 9100")),
    "dates, minutes and truth for texts": (
        True, True, with_rule("source_labels: [on], target_label: x, replacement: 2020-01-01, separator: 12:30"),
    ),
    "numbers for names": (True, True, f"scrape_configs: [{{job_name: 5, {PODS.replace('pod', 'pod, namespaces: {names: [123]}')}}}]"),
    "references": (True, True, with_rule("target_label: x, replacement: '${1}$1$$'")),
    "two units in a duration": (True, True, with_key("scrape_interval: 1m30s")),
    "interval of nothing": (True, True, with_key("scrape_interval: 0s")),
    "empty sections": (True, True, "global:\nscrape_configs:\n"),
    "alias of a role": (True, False, with_discovery("role: endpointslices")),
    "if": (True, False, with_rule("if: '{a=\"b\"}', target_label: x")),
    "list of expressions": (True, False, with_rule("regex: [a, b], target_label: x")),
    "action of one": (True, False, with_rule("action: drop_if_equal, source_labels: [a, b]")),
    "global rules": (True, False, "global: {relabel_configs: [{target_label: x}]}"),
    "timeout above interval": (True, False, with_key("scrape_interval: 1s, scrape_timeout: 2s")),
    "fractions in durations": (True, False, with_key("scrape_interval: 1.5m")),
    "a star in a folder": (True, False, "scrape_config_files: ['*/a.yml']"),
    "rule files": (False, True, "rule_files: [a.yml]"),
    "http2": (False, True, with_discovery("role: pod, api_server: 'http://127.0.0.1:1', enable_http2: false")),
    "refresh_interval": (False, True, with_key("file_sd_configs: [{files: [a.yml], refresh_interval: 1m}]")),
    "same name twice": (False, False, f"scrape_configs: [{{job_name: a, {PODS}}}, {{job_name: a, {PODS}}}]"),
    "no name": (False, False, f"scrape_configs: [{{{PODS}}}]"),
    "unknown key": (False, False, with_key("relable_configs: []")),
    "unknown section": (False, False, "scrape_config: []"),
    "unknown key of a rule": (False, False, with_rule("regx: a")),
    "unknown key of discovery": (False, False, with_discovery("role: pod, namespace: x")),
    "bad expression": (False, False, with_rule("regex: '(', target_label: x")),
    "no modulus": (False, False, with_rule("action: hashmod, source_labels: [a], target_label: x")),
    "unknown action": (False, False, with_rule("action: kep")),
    "mapping for a list": (False, False, "scrape_configs: {job_name: a}"),
    "bad duration": (False, False, with_key("scrape_interval: soon")),
    "no YAML": (False, False, "scrape_configs: ["),
    "a key that no peer has": (False, False, with_discovery("role: pod, list_limit: 5")),
}  # fmt: skip


def accepts(file: Path, dialect: str, **options: Any) -> bool:
    try:
        load_configuration(file, dialect=dialect, **options)
    except ConfigurationError:
        return False
    return True


@pytest.mark.parametrize("name", FILES)
def test_files_are_accepted_as_the_peers_accept_them(name: str, tmp_path: Path) -> None:
    """What one accepts is accepted in its dialect, and by `auto`, which refuses what both refuse, and comes to the one that accepts it."""
    by_vmagent, by_prometheus, text = FILES[name]
    file = tmp_path / "scrape.yml"
    file.write_text(text)
    assert (verdicts.vmagent(file) == "", verdicts.prometheus(file) == "") == (by_vmagent, by_prometheus)
    if by_vmagent:
        assert accepts(file, "victoriametrics")
    if by_prometheus:
        assert accepts(file, "prometheus")
    assert accepts(file, "auto") == (by_vmagent or by_prometheus)
    if by_vmagent != by_prometheus:
        assert load_configuration(file).dialect == ("victoriametrics" if by_vmagent else "prometheus")


JOBS = {
    "prometheus": "scrape_configs:\n- {job_name: main, kubernetes_sd_configs: [{role: pod}]}\n",
    "victoriametrics": "- {job_name: main, kubernetes_sd_configs: [{role: pod}]}\n",
}
PATTERNS = [
    ("conf.d/*.yml", "conf.d/a.yml", True),
    ("conf.d/*.yml", "conf.d/.a.yml", True),
    ("conf.d/*.yml", "conf.d/a.yaml", False),
    ("conf.d/a*", "conf.d/a.yml", True),
    ("conf.d/[^a]*", "conf.d/b.yml", True),
    ("conf.d/[^a]*", "conf.d/a.yml", False),
    ("conf.d/**", "conf.d/a.yml", True),
    ("conf.d/a.yml", "conf.d/a.yml", True),
    ("FOLDER/conf.d/*", "conf.d/a.yml", True),
]


@pytest.mark.parametrize("dialect", JOBS)
@pytest.mark.parametrize(("pattern", "name", "matches"), PATTERNS)
def test_patterns_match_what_they_match_for_the_peers(dialect: str, pattern: str, name: str, matches: bool, tmp_path: Path) -> None:
    """An included job with a name that is there already tells whether its file is read."""
    included = tmp_path / name
    included.parent.mkdir(parents=True)
    included.write_text(JOBS[dialect])
    file = tmp_path / "scrape.yml"
    written = pattern.replace("FOLDER", str(tmp_path))
    file.write_text(JOBS["prometheus"] + f"scrape_config_files: ['{written}']")
    verdict = verdicts.vmagent(file) if dialect == "victoriametrics" else verdicts.prometheus(file)
    assert (verdict != "") == matches
    assert accepts(file, dialect) != matches


@pytest.mark.parametrize(
    ("written", "variables", "same"),
    [
        ("%{A}", {"A": "x"}, True),
        ("%{A}", {"A": "%{B}", "B": "x"}, True),
        ("%{A}", {}, False),
        ("%{A", {"A": "x"}, False),
        ("${A}", {"A": "x"}, False),
        ("$(A)", {"A": "x"}, False),
        ("%{A}%{B}", {"A": "", "B": "x"}, True),
    ],
)
def test_variables_are_expanded_as_vmagent_expands_them(written: str, variables: dict[str, str], same: bool, tmp_path: Path) -> None:
    """Two jobs of one name tell what has become of it; Prometheus never expands any."""
    file = tmp_path / "scrape.yml"
    file.write_text(f"scrape_configs: [{{job_name: x, {PODS}}}, {{job_name: '{written}', {PODS}}}]")
    assert (verdicts.vmagent(file, variables) != "") == same
    assert accepts(file, "victoriametrics", environment=variables) != same
    assert accepts(file, "prometheus", environment=variables)
