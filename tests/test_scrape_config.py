"""The jobs of a configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastdisco.errors import ConfigError
from fastdisco.relabel_config import RelabelConfig
from fastdisco.scrape_config import ScrapeConfig, load_scrape_configs
from fastdisco.target_labels import TargetDefaults


def load(folder: Path, text: str) -> tuple[ScrapeConfig, ...]:
    file = folder / "scrape.yml"
    file.write_text(text)
    return load_scrape_configs(file)


def test_what_a_job_says(tmp_path: Path) -> None:
    (job,) = load(
        tmp_path,
        """
global:
  scrape_interval: 30s
  scrape_timeout: 5s
  external_labels: {a: b}
  relabel_configs: [{target_label: first, replacement: x}]
scrape_configs:
- job_name: pods
  scrape_interval: 10s
  scheme: https
  metrics_path: /m
  params: {module: [a, 2]}
  honor_labels: true
  metric_relabel_configs: [{action: drop, source_labels: [__name__], regex: x}]
  kubernetes_sd_configs:
  - {role: pod, api_server: "https://127.0.0.1:1", tls_config: {ca_file: ca.pem}}
  - role: node
  relabel_configs:
  - {source_labels: [a], target_label: b}
""",
    )
    assert job.job_name == "pods"
    assert job.target_defaults == TargetDefaults("https", "/m", 10.0, 5.0, {"module": ("a", "2")})
    assert [config.role for config in job.kubernetes_sd_configs] == ["pod", "node"]
    assert str(tmp_path / "ca.pem") in repr(job.kubernetes_sd_configs[0])
    assert job.relabel_configs == (
        RelabelConfig(target_label="first", replacement="x"),
        RelabelConfig(source_labels=("a",), target_label="b"),
    )


def test_what_is_not_said_has_its_default(tmp_path: Path) -> None:
    first, second = load(tmp_path, "scrape_configs: [{job_name: a}, {job_name: b, scrape_timeout: 1h, params: , relabel_configs: }]")
    assert first == ScrapeConfig("a", ())
    assert second.target_defaults.scrape_timeout == 60.0
    assert load(tmp_path, "global:\nscrape_configs:") == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a mapping, not nothing"),
        ("[]", "must be a mapping, not a list"),
        ("a: [", "no valid YAML: "),
        ("global: []\nscrape_configs: [{job_name: a}]", ""),
        ("global: [1]", "global: must be a mapping, not a list"),
        ("scrape_configs: {}", ""),
        ("scrape_configs: {a: b}", "scrape_configs: must be a list, not a mapping"),
        ("scrape_configs: [a]", r"scrape_configs\[0\]: must be a mapping, not a string"),
        ("scrape_configs: [2020-01-01]", r"scrape_configs\[0\]: must be a mapping, not a date"),
        ("global:\n  a: 1\n  b: 2\n  a: 3", "global.a: given twice, on lines 2 and 4"),
        ("scrape_configs:\n- x: a\n- job_name: b\n  job_name: c", r"scrape_configs\[1\].job_name: given twice, on lines 3 and 4"),
        ("scrape_configs: [{}]", r"scrape_configs\[0\].job_name: missing"),
        ("scrape_configs: [{job_name: a}, {job_name: a}]", r"scrape_configs\[1\].job_name: another job is called 'a'"),
        ("scrape_configs: [{job_name: a, scheme: ftp}]", r"scrape_configs\[0\].scheme: must be http or https"),
        ("scrape_configs: [{job_name: a, scrape_interval: x}]", r"scrape_configs\[0\].scrape_interval: must be a duration"),
        ("scrape_configs: [{job_name: a, metrics_path: [x]}]", r"scrape_configs\[0\].metrics_path: must be a string, not a list"),
        ("scrape_configs: [{job_name: a, params: {x: y}}]", r"scrape_configs\[0\].params.x: must be a list of strings"),
        ("scrape_configs: [{job_name: a, params: {x: [{}]}}]", r"scrape_configs\[0\].params.x\[0\]: must be a string, not a mapping"),
        ("scrape_configs: [{job_name: a, params: [x]}]", r"scrape_configs\[0\].params: must be a mapping"),
        ("scrape_configs: [{job_name: a, kubernetes_sd_configs: {role: pod}}]", r".*\.kubernetes_sd_configs: must be a list"),
        ("scrape_configs: [{job_name: a, kubernetes_sd_configs: [{role: x}]}]", r"scrape_configs\[0\].kubernetes_sd_configs\[0\].role: "),
        ("scrape_configs: [{job_name: a, relabel_configs: [{regx: x}]}]", r"scrape_configs\[0\].relabel_configs\[0\].regx: unknown key"),
        ("global: {relabel_configs: [{action: x}]}", r"global.relabel_configs\[0\].action: must be one of"),
    ],
)
def test_mistakes_are_told_with_file_and_place(tmp_path: Path, text: str, message: str) -> None:
    if not message:
        load(tmp_path, text)
        return
    with pytest.raises(ConfigError, match=f"^{tmp_path}/scrape.yml: {message}"):
        load(tmp_path, text)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.yml: cannot be read: "):
        load_scrape_configs(tmp_path / "nothing.yml")
