"""Configuration files of Prometheus and vmagent: what becomes of them, what is told about them, and all mistakes in them."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fastdisco.config import AttachMetadata, KubernetesSDConfig, Namespaces
from fastdisco.configuration import Configuration, ConfigurationError, changed, compare, load_configuration
from fastdisco.errors import ConfigError
from fastdisco.relabel_config import RelabelConfig
from fastdisco.target_labels import TargetDefaults

PODS = "kubernetes_sd_configs: [{role: pod}]"


def load(folder: Path, text: str, **options: Any) -> Configuration:
    file = folder / "scrape.yml"
    file.write_text(text)
    return load_configuration(file, **options)


def mistakes(folder: Path, text: str, **options: Any) -> list[str]:
    """What is wrong, without the name of the main file."""
    with pytest.raises(ConfigurationError) as caught:
        load(folder, text, **options)
    assert str(caught.value) == "\n".join(caught.value.mistakes)
    return [mistake.removeprefix(f"{folder}/scrape.yml: ") for mistake in caught.value.mistakes]


def jobs(*names: str) -> str:
    return "scrape_configs:\n" + "".join(f"- {{job_name: {name}, {PODS}}}\n" for name in names)


def names(configuration: Configuration) -> list[str]:
    return [job.job_name for job in configuration.jobs]


# ---- jobs ----


def test_what_a_job_says(tmp_path: Path) -> None:
    """All that concerns discovery, with the global rules in front, and names of files from where the file is."""
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
    ).jobs
    assert job.job_name == "pods"
    assert job.target_defaults == TargetDefaults("https", "/m", 10.0, 5.0, {"module": ("a", "2")})
    assert [config.role for config in job.kubernetes_sd_configs] == ["pod", "node"]
    assert str(tmp_path / "ca.pem") in repr(job.kubernetes_sd_configs[0])
    assert job.relabel_configs == (
        RelabelConfig(target_label="first", replacement="x"),
        RelabelConfig(source_labels=("a",), target_label="b"),
    )


def test_what_is_not_said_has_its_default(tmp_path: Path) -> None:
    """An interval of 0 is none, and nobody waits for longer than until the next scrape."""
    first, second, third = load(
        tmp_path,
        f"scrape_configs: [{{job_name: a, {PODS}}}, {{job_name: b, {PODS}, scrape_timeout: 1h, params: , relabel_configs: }},"
        f"{{job_name: c, {PODS}, scrape_interval: 0s}}]",
    ).jobs
    assert first.target_defaults == third.target_defaults == TargetDefaults()
    assert (first.kubernetes_sd_configs, first.relabel_configs) == ((KubernetesSDConfig("pod"),), ())
    assert (first.dialect, first.disable_sharding) == ("victoriametrics", True)
    assert second.target_defaults.scrape_timeout == 60.0
    assert load(tmp_path, "global:\nscrape_configs:").jobs == ()


def test_keys_for_others_are_listed_and_other_ways_to_find_targets_are_reported(tmp_path: Path) -> None:
    """A job without kubernetes_sd_configs is not run; its scrape options are not listed one by one."""
    read = load(
        tmp_path,
        f"global: {{external_labels: {{a: b}}}}\nscrape_configs:\n- {{job_name: a, {PODS}, honor_labels: true, static_configs: []}}\n"
        "- {job_name: b, static_configs: [], honor_labels: true}",
    )
    at = f"{tmp_path}/scrape.yml: "
    assert names(read) == ["a"]
    assert read.not_used == (
        f"{at}global.external_labels: for others than discovery",
        f"{at}scrape_configs[0].honor_labels: for others than discovery",
        f"{at}scrape_configs[1]: job 'b' has no kubernetes_sd_configs",
    )
    assert read.warnings == (f"{at}scrape_configs[0].static_configs: targets that job 'a' finds so are not exported",)


def test_a_kind_of_discovery_that_is_newer_than_this_is_another_kind(tmp_path: Path) -> None:
    """Both peers get new ones all the time."""
    read = load(tmp_path, f"scrape_configs: [{{job_name: a, {PODS}, moon_sd_configs: []}}]")
    assert "scrape_configs[0].moon_sd_configs: " in read.warnings[0]


def test_where_a_text_is_due_a_scalar_is_what_is_written(tmp_path: Path) -> None:
    """As in both peers, whatever YAML takes it for: a number in octal, yes, a date, minutes and seconds."""
    (job,) = load(
        tmp_path,
        """
scrape_configs:
- job_name: 010
  metrics_path: yes
  params: {a: [1.0, 12:30, no]}
  kubernetes_sd_configs: [{role: pod, namespaces: {names: [123]}}]
  relabel_configs:
  - {source_labels: [on, 5], target_label: 7, replacement: 2020-01-01, separator: 1_0}
  - {action: hashmod, source_labels: [a], target_label: b, modulus: 8}
  - {regex: [1.0, true, 2], target_label: x}
""",
    ).jobs
    assert (job.job_name, job.target_defaults) == ("010", TargetDefaults(metrics_path="yes", params={"a": ("1.0", "12:30", "no")}))
    assert job.kubernetes_sd_configs[0].namespaces.names == ("123",)
    assert job.relabel_configs == (
        RelabelConfig(source_labels=("on", "5"), target_label="7", replacement="2020-01-01", separator="1_0"),
        RelabelConfig("hashmod", ("a",), target_label="b", modulus=8),
        RelabelConfig(regex="1|true|2", target_label="x"),
    )
    texts = [job.job_name, *job.relabel_configs[0].source_labels, job.relabel_configs[0].replacement]
    assert {type(text) for text in texts} == {str}


# ---- mistakes ----


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a mapping, not nothing"),
        ("[]", "must be a mapping, not a list"),
        ("a: [", "no valid YAML: "),
        ("global: [1]", "global: must be a mapping, not a list"),
        ("scrape_configs: {a: b}", "scrape_configs: must be a list, not a mapping"),
        ("scrape_configs: [a]", "scrape_configs[0]: must be a mapping, not a string"),
        ("scrape_configs: [2020-01-01]", "scrape_configs[0]: must be a mapping, not a date"),
        ("global:\n  a: 1\n  b: 2\n  a: 3", "global.a: given twice, on lines 2 and 4"),
        ("scrape_configs:\n- x: a\n- job_name: b\n  job_name: c", "scrape_configs[1].job_name: given twice, on lines 3 and 4"),
        ("scrape_configs: [{}]", "scrape_configs[0].job_name: missing"),
        ("scrape_configs: [{job_name: [5]}]", "scrape_configs[0].job_name: must be a string, not a list"),
        ("scrape_configs: [{job_name: a, PODS, scheme: ftp}]", "scrape_configs[0].scheme: must be http or https"),
        ("scrape_configs: [{job_name: a, PODS, scrape_interval: x}]", "scrape_configs[0].scrape_interval: must be a duration"),
        ("scrape_configs: [{job_name: a, PODS, scrape_timeout: -1}]", "scrape_configs[0].scrape_timeout: must be above 0"),
        ("scrape_configs: [{job_name: a, PODS, metrics_path: [x]}]", "scrape_configs[0].metrics_path: must be a string, not a list"),
        ("scrape_configs: [{job_name: a, PODS, params: {x: y}}]", "scrape_configs[0].params.x: must be a list of strings"),
        ("scrape_configs: [{job_name: a, PODS, params: {x: [{}]}}]", "scrape_configs[0].params.x[0]: must be a string, not a mapping"),
        ("scrape_configs: [{job_name: a, PODS, params: [x]}]", "scrape_configs[0].params: must be a mapping"),
        ("scrape_configs: [{job_name: a, kubernetes_sd_configs: {role: pod}}]", "scrape_configs[0].kubernetes_sd_configs: must be a list"),
        ("scrape_configs: [{job_name: a, kubernetes_sd_configs: [x]}]", "scrape_configs[0].kubernetes_sd_configs[0]: must be a mapping"),
        ("scrape_configs: [{job_name: a, kubernetes_sd_configs: [{role: x}]}]", "scrape_configs[0].kubernetes_sd_configs[0].role: "),
        ("scrape_configs: [{job_name: a, PODS, relabel_configs: {}}]", ""),
        ("scrape_configs: [{job_name: a, PODS, relabel_configs: x}]", "scrape_configs[0].relabel_configs: must be a list, not a string"),
        ("scrape_configs: [{job_name: a, PODS, relabel_configs: [{regx: x}]}]", "scrape_configs[0].relabel_configs[0].regx: unknown key"),
        ("scrape_configs: [{job_name: a, PODS, relabel_configs: [x]}]", "scrape_configs[0].relabel_configs[0]: must be a mapping"),
        ("scrape_configs: [{job_name: a, relable_configs: []}]", "scrape_configs[0].relable_configs: unknown key; is relabel_configs "),
        ("global: {relabel_configs: [{action: x}]}", "global.relabel_configs[0].action: must be one of"),
        ("global: {nonsense: 1}", "global.nonsense: unknown key"),
        ("nonsense: 1", "nonsense: unknown key"),
        ("scrape_config_files: x", "scrape_config_files: must be a list, not a string"),
        ("scrape_config_files: ['http://127.0.0.1/x']", "scrape_config_files[0]: only files are read, not http URLs"),
    ],
)
def test_a_mistake_is_told_with_file_and_place(tmp_path: Path, text: str, message: str) -> None:
    """The YAML path leads from the top of the file."""
    text = text.replace("PODS", PODS)
    if not message:
        load(tmp_path, text)
        return
    found = mistakes(tmp_path, text)
    assert len(found) == 1
    assert found[0].startswith(message)


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    """One for each key of a discovery, each item of its lists, and each rule."""
    found = mistakes(
        tmp_path,
        """
global: {scrape_interval: x}
bogus: 1
scrape_configs:
- job_name: a
  scheme: ftp
  kubernetes_sd_configs:
  - role: pod
    api_server: "ftp://x"
    namespaces: {names: [A]}
    selectors: [{role: pod}, {role: pod, label: x}, {role: nix, label: x}, {role: pod, lable: x}]
    tls_config: {cert: x, key: y}
    nonsense: 1
  relabel_configs: [{regx: b}, {target_label: b}, {regex: "(", target_label: b}]
- job_name: a
- {kubernetes_sd_configs: 5}
- x
""",
    )
    sd = "scrape_configs[0].kubernetes_sd_configs[0]"
    assert sorted(one.split(": ")[0] for one in found) == sorted([
        "global.scrape_interval", "bogus", "scrape_configs[0].scheme", f"{sd}.api_server", f"{sd}.namespaces.names[0]",
        f"{sd}.selectors[0].label", f"{sd}.selectors[2].role", f"{sd}.selectors[3].lable", f"{sd}.tls_config.cert",
        f"{sd}.nonsense",
        "scrape_configs[0].relabel_configs[0].regx", "scrape_configs[0].relabel_configs[2].regex",
        "scrape_configs[1].job_name", "scrape_configs[2].job_name", "scrape_configs[2].kubernetes_sd_configs", "scrape_configs[3]",
    ])  # fmt: skip


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """Also one that is no gzip, though it begins so, and one that is no UTF-8."""
    assert [one.split(": ")[1] for one in mistakes_of(tmp_path / "nothing.yml")] == ["cannot be read"]
    for content in (b"\x1f\x8b", gzip.compress(b"a: 1")[:-5], b"a: \xff"):
        (tmp_path / "bad.yml").write_bytes(content)
        assert [one.split(": ")[1] for one in mistakes_of(tmp_path / "bad.yml")] == ["cannot be read"]


def mistakes_of(file: Path) -> tuple[str, ...]:
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(file)
    return caught.value.mistakes


def test_a_mistake_quotes_no_line_of_the_file(tmp_path: Path) -> None:
    """There may be a password in it."""
    text = f"scrape_configs:\n- job_name: a\n  {PODS}\n  password: 'hush\n"
    assert "hush" not in mistakes(tmp_path, text)[0]
    assert "in line 5, column 1" in mistakes(tmp_path, text)[0]


# ---- included files ----


def included(folder: Path, files: Mapping[str, str], patterns: str = "conf.d/*.yml") -> Configuration:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return load(folder, jobs("main") + f"scrape_config_files: ['{patterns}']")


def test_included_jobs_come_after_those_of_the_main_file(tmp_path: Path) -> None:
    """In the order of the names of files; of a mapping, or of a bare list."""
    read = included(tmp_path, {"conf.d/b.yml": jobs("b1", "b2"), "conf.d/a.yml": jobs("a"), "conf.d/c.txt": "nonsense"})
    assert names(read) == ["main", "a", "b1", "b2"]
    assert read.dialect == "prometheus"
    assert "conf.d/a.yml: scrape_configs: a mapping in an included file" in read.dialect_reason
    bare = included(tmp_path, {f"conf.d/{name}.yml": jobs(name).partition("\n")[2] for name in "ab"})
    assert (names(bare), bare.dialect) == (["main", "a", "b"], "victoriametrics")


def test_names_of_files_start_where_the_peer_has_them_start(tmp_path: Path) -> None:
    """vmagent: at the main file; Prometheus: at the file that they stand in."""
    text = "- {job_name: a, kubernetes_sd_configs: [{role: pod, api_server: 'https://127.0.0.1:1', bearer_token_file: token}]}\n"
    for file, content in ((tmp_path / "token", text), (tmp_path / "conf.d" / "token", "scrape_configs:\n" + text)):
        (_, job) = included(tmp_path, {"conf.d/a.yml": content}).jobs
        assert job.kubernetes_sd_configs[0].authorization is not None
        assert job.kubernetes_sd_configs[0].authorization.credentials_file == str(file)


@pytest.mark.parametrize("given", ["prometheus.yml", "./conf.d/../prometheus.yml", "{}/prometheus.yml"])
def test_spellings_of_one_file_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    """Else two jobs that mean the same would not share their watches; names are joined as Go joins them, without a look at links."""
    discovery = "kubernetes_sd_configs: [{role: pod, api_server: 'https://127.0.0.1:1', authorization: {credentials_file: '%s'}}]"
    (tmp_path / "conf.d").mkdir()
    names = ("token", "./conf.d/../token", f"{tmp_path}//token")
    jobs = [f"- {{job_name: {number}a, {discovery % name}}}\n" for number, name in enumerate(names)]
    (tmp_path / "prometheus.yml").write_text("scrape_config_files: [conf.d/*.yml]\nscrape_configs:\n" + "".join(jobs))
    (tmp_path / "conf.d" / "other.yml").write_text(f"scrape_configs: [{{job_name: other, {discovery % '../token'}}}]")
    monkeypatch.chdir(tmp_path)
    read = load_configuration(given.format(tmp_path), dialect="prometheus")
    (config,) = {job.kubernetes_sd_configs[0] for job in read.jobs}
    assert len(read.jobs) == 4
    assert config.authorization is not None
    assert config.authorization.credentials_file == str(tmp_path / "token")


def test_a_job_name_that_is_there_twice_is_a_mistake_wherever_it_is(tmp_path: Path) -> None:
    """It says where the other one is."""
    with pytest.raises(ConfigError) as caught:
        included(tmp_path, {"conf.d/a.yml": jobs("a"), "conf.d/b.yml": jobs("a", "b")})
    folder = tmp_path / "conf.d"
    assert str(caught.value) == f"{folder}/b.yml: scrape_configs[0].job_name: {folder}/a.yml: scrape_configs[0] is called 'a' too"


def test_a_mistake_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    """In a bare list the path begins with the place in it."""
    for text, message in (
        ("- {job_name: a, relable_configs: []}", "[0].relable_configs: unknown key; is relabel_configs meant?"),
        ("5", "must be a list of jobs, or a mapping with scrape_configs"),
        ("{scrape_configs: [], global: {}}", "global: unknown key; an included file has scrape_configs only"),
        ("[x]", "[0]: must be a mapping, not a string"),
    ):
        with pytest.raises(ConfigError) as caught:
            included(tmp_path, {"conf.d/a.yml": text})
        assert str(caught.value) == f"{tmp_path}/conf.d/a.yml: {message}"


def test_a_pattern_that_no_file_matches_is_warned_of(tmp_path: Path) -> None:
    """Both peers go on without it."""
    read = included(tmp_path, {}, "nothing/*.yml")
    assert read.warnings == (f"{tmp_path}/scrape.yml: scrape_config_files[0]: no file matches 'nothing/*.yml'",)


def test_folders_are_passed_over(tmp_path: Path) -> None:
    """A mounted ConfigMap has some, beside the links to its files."""
    (tmp_path / "conf.d" / "..data").mkdir(parents=True)
    (tmp_path / "conf.d" / "..data" / "a.yml").write_text(jobs("a"))
    (tmp_path / "conf.d" / "a.yml").symlink_to("..data/a.yml")
    assert names(included(tmp_path, {}, "conf.d/*")) == ["main", "a"]


def test_an_included_file_may_be_empty(tmp_path: Path) -> None:
    """Its jobs have been taken out."""
    assert names(included(tmp_path, {"conf.d/a.yml": ""})) == ["main"]


# ---- the environment, gzip ----


def test_vmagents_variables_are_expanded_everywhere(tmp_path: Path) -> None:
    """Values may hold variables themselves; what is not set stays, and so does all that belongs to relabeling."""
    environment = {"NAME": "a%{MORE}", "MORE": "b", "LOOP": "%{LOOP}", "JOB": "no", "1": "no"}
    text = jobs("'%{NAME}'", "'%{NONE}'", "'%{LOOP}'", "'${JOB} $1 $(MORE)'", "'%{open'")
    assert names(load(tmp_path, text, environment=environment)) == ["ab", "%{NONE}", "%{LOOP}", "${JOB} $1 $(MORE)", "%{open"]
    assert names(load(tmp_path, jobs("%{NAME}"), environment=environment)) == ["ab"]


def test_prometheus_files_keep_what_vmagent_would_expand(tmp_path: Path) -> None:
    """It is told, where a variable is set."""
    for options in ({"dialect": "prometheus"}, {}):
        read = load(tmp_path, jobs("'%{NAME}'") + "rule_files: []", environment={"NAME": "a"}, **options)
        assert names(read) == ["%{NAME}"]
        assert any("stays as it is written" in warning for warning in read.warnings)
        assert load(tmp_path, jobs("'%{NAME}'") + "rule_files: []", environment={}, **options).warnings == ()


def test_variables_in_parentheses_are_expanded_on_demand(tmp_path: Path) -> None:
    """As the reloader of prometheus-operator does before Prometheus reads the file: one that is not set is a mistake."""
    assert names(load(tmp_path, jobs("$(A)-$(B_1)"), expand_env=True, environment={"A": "a", "B_1": "%{A}"})) == ["a-a"]
    assert mistakes(tmp_path, jobs("a", "$(GONE)"), expand_env=True, environment={}) == [
        "line 3: $(GONE): no such variable in the environment"
    ]


def test_a_gzipped_file_is_read(tmp_path: Path) -> None:
    """Whatever it is called; the checksum is that of the file as it is."""
    file = tmp_path / "config"
    file.write_bytes(gzip.compress(jobs("a").encode()))
    read = load_configuration(file)
    assert names(read) == ["a"]
    assert read.checksums == {file: hashlib.sha256(file.read_bytes()).hexdigest()}


# ---- dialects ----

RULE = "scrape_configs: [{{job_name: a, kubernetes_sd_configs: [{{role: pod}}], relabel_configs: [{{{}}}]}}]"
SD = "scrape_configs: [{{job_name: a, kubernetes_sd_configs: [{{{}}}]}}]"
VMAGENT_ONLY = [
    (RULE.format("if: '{a=\"b\"}', target_label: x"), "scrape_configs[0].relabel_configs[0].if"),
    (RULE.format("regex: [a, b], target_label: x"), "scrape_configs[0].relabel_configs[0].regex"),
    (RULE.format("action: Drop_If_Equal, source_labels: [a, b]"), "scrape_configs[0].relabel_configs[0].action"),
    (SD.format("role: pod, headers: ['A: b']"), "scrape_configs[0].kubernetes_sd_configs[0].headers"),
    (SD.format("role: endpointslices"), "scrape_configs[0].kubernetes_sd_configs[0].role"),
    ("global: {relabel_configs: []}", "global.relabel_configs"),
    ("scrape_configs: [{job_name: a, stream_parse: true}]", "scrape_configs[0].stream_parse"),
]
PROMETHEUS_ONLY = [
    ("rule_files: []", "rule_files"),
    ("remote_write: [{url: 'http://127.0.0.1:1'}]", "remote_write"),
    ("global: {evaluation_interval: 1m}", "global.evaluation_interval"),
    ("scrape_configs: [{job_name: a, body_size_limit: 1MB}]", "scrape_configs[0].body_size_limit"),
    (SD.format("role: pod, enable_http2: false"), "scrape_configs[0].kubernetes_sd_configs[0].enable_http2"),
    (
        "scrape_configs: [{job_name: a, http_sd_configs: [{url: 'http://127.0.0.1:1', refresh_interval: 1m}]}]",
        "scrape_configs[0].http_sd_configs[0].refresh_interval",
    ),
]


@pytest.mark.parametrize(
    ("text", "path", "dialect"),
    [(*one, "victoriametrics") for one in VMAGENT_ONLY] + [(*one, "prometheus") for one in PROMETHEUS_ONLY],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
def test_the_dialect_is_that_of_the_peer_that_alone_accepts_a_key(tmp_path: Path, text: str, path: str, dialect: str) -> None:
    """It is told which key that is."""
    program = {"victoriametrics": "vmagent", "prometheus": "Prometheus"}[dialect]
    read = load(tmp_path, text)
    assert read.dialect == dialect
    assert read.dialect_reason == f"The dialect is {dialect}, since only {program} accepts this: {tmp_path}/scrape.yml: {path}."
    assert all(job.dialect == dialect for job in read.jobs)


def test_where_no_key_decides_the_dialect_is_victoriametrics(tmp_path: Path) -> None:
    """It is told that none does."""
    read = load(tmp_path, jobs("a"))
    assert (read.dialect, "both peers would accept" in read.dialect_reason) == ("victoriametrics", True)


def test_where_keys_of_both_occur_one_is_asked_for(tmp_path: Path) -> None:
    """Told, or said in the settings, it decides; keys of the other peer are warned of where they are used."""
    text = RULE.format("if: '{a=\"b\"}', target_label: x") + "\nrule_files: []"
    (mistake,) = mistakes(tmp_path, text)
    assert mistake == (
        f"only vmagent accepts {tmp_path}/scrape.yml: scrape_configs[0].relabel_configs[0].if, and only Prometheus "
        f"{tmp_path}/scrape.yml: rule_files: say with --dialect whose labels to make"
    )
    assert load(tmp_path, text, dialect="victoriametrics").warnings == ()
    assert load(tmp_path, text, dialect="prometheus").warnings == (
        f"{tmp_path}/scrape.yml: scrape_configs[0].relabel_configs[0].if: Prometheus would not load it",
    )
    (tmp_path / "settings.yml").write_text("defaults: {dialect: prometheus}")
    assert load(tmp_path, text, settings=tmp_path / "settings.yml").dialect == "prometheus"


def test_rules_are_checked_by_the_dialect_of_their_job(tmp_path: Path) -> None:
    """A separator that means nothing is refused by Prometheus only."""
    text = RULE.format("action: labeldrop, regex: a, separator: x")
    assert load(tmp_path, text).jobs
    assert mistakes(tmp_path, text, dialect="prometheus") == [
        "scrape_configs[0].relabel_configs[0].separator: action labeldrop has no use for it"
    ]


def test_prometheus_has_no_global_rules_and_stricter_durations(tmp_path: Path) -> None:
    """Both are told."""
    text = "global: {relabel_configs: [{target_label: a}]}\n" + jobs("a")
    read = load(tmp_path, text, dialect="prometheus")
    assert (len(load(tmp_path, text).jobs[0].relabel_configs), read.jobs[0].relabel_configs) == (1, ())
    assert any("they do not run" in line for line in read.warnings)
    for duration in ("30", "1.5m", "1m1h"):
        assert load(tmp_path, f"global: {{scrape_interval: {duration}}}").dialect
        (mistake,) = mistakes(tmp_path, f"global: {{scrape_interval: {duration}}}", dialect="prometheus")
        assert mistake.startswith("global.scrape_interval: must be a duration")
    (mistake,) = mistakes(tmp_path, f"scrape_configs: [{{job_name: a, {PODS}, scrape_timeout: 2m}}]", dialect="prometheus")
    assert mistake == "scrape_configs[0].scrape_timeout: must not be longer than the scrape_interval"


# ---- settings ----


def with_settings(folder: Path, settings: str, text: str = "") -> Configuration:
    (folder / "settings.yml").write_text(settings)
    return load(folder, text or jobs("a", "b"), settings=folder / "settings.yml")


def test_settings_say_what_only_fastdisco_has(tmp_path: Path) -> None:
    """Those of a job before those of all; the rest stays as it is."""
    first, second = with_settings(
        tmp_path,
        "{defaults: {list_limit: 500, api_server_timeout: 5m}, jobs: {b: {list_limit: 7, disable_sharding: false, dialect: prometheus}}}",
    ).jobs
    assert first.kubernetes_sd_configs == (KubernetesSDConfig("pod", list_limit=500, api_server_timeout=300.0),)
    assert second.kubernetes_sd_configs == (KubernetesSDConfig("pod", list_limit=7, api_server_timeout=300.0),)
    assert [(job.dialect, job.disable_sharding) for job in (first, second)] == [("victoriametrics", True), ("prometheus", False)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("{default: {}}", "default: unknown key; there are defaults and jobs"),
        ("{defaults: {role: pod}}", "defaults.role: unknown key"),
        ("{defaults: {dialect: auto}}", "defaults.dialect: must be one of victoriametrics, prometheus, not 'auto'"),
        ("{jobs: {a: {list_limit: -1}}}", "jobs.a.list_limit: must not be negative"),
        ("{jobs: {a: {disable_sharding: 1}}}", "jobs.a.disable_sharding: must be true or false, not an integer"),
        ("{jobs: {c: {}}}", "jobs.c: no job is called so"),
        ("{jobs: []}", ""),
        ("[1]", "must be a mapping, not a list"),
        ("{", "no valid YAML: "),
    ],
)
def test_mistakes_in_settings_are_told_with_their_file(tmp_path: Path, settings: str, message: str) -> None:
    """Those of the configuration come with them."""
    if not message:
        with_settings(tmp_path, settings)
        return
    with pytest.raises(ConfigurationError) as caught:
        with_settings(tmp_path, settings, jobs("a") + "nonsense: 1")
    first, second = caught.value.mistakes
    found = {one.partition(": ")[0]: one.partition(": ")[2] for one in (first, second)}
    assert found[f"{tmp_path}/settings.yml"].startswith(message)
    assert found[f"{tmp_path}/scrape.yml"] == "nonsense: unknown key"


@pytest.mark.parametrize(
    "key", ["api_server_timeout: 5m", "list_limit: 5", "encoding: json", "compression: gzip", "initial_state: list", "relist_interval: 1h"]
)
def test_what_no_peer_would_load_is_refused_with_advice(tmp_path: Path, key: str) -> None:
    """The configuration is to stay one that the peer can load."""
    (mistake,) = mistakes(tmp_path, SD.format(f"role: pod, {key}"))
    name = key.partition(":")[0]
    assert mistake == f"scrape_configs[0].kubernetes_sd_configs[0].{name}: no peer would load this file; say it in a file for --settings"


# ---- what is shown, what has changed ----


def test_the_effective_configuration_shows_no_secret(tmp_path: Path) -> None:
    """All else is as it is run; and it can be read again."""
    text = """
scrape_configs:
- job_name: a
  kubernetes_sd_configs:
  - {role: pod, api_server: "https://127.0.0.1:1", authorization: {credentials: hush}, proxy_url: "http://me:hush@127.0.0.1:2",
     namespaces: {names: [web]}, attach_metadata: {node: true}, headers: ["X-Key: hush", "Authorization: hush"]}
  - {role: node, api_server: "https://127.0.0.1:1", basic_auth: {username: me, password: hush}}
  - {role: node, api_server: "https://127.0.0.1:1", tls_config: {cert_file: c, key: "-----BEGIN PRIVATE KEY-----hush-----END "}}
  relabel_configs: [{action: graphite, match: a.*, labels: {x: $1}}, {if: '{a="b"}', source_labels: [é], target_label: x}]
- {job_name: b, scrape_interval: 90s, params: {x: [y]}, kubernetes_sd_configs: [{role: pod, bearer_token: hush}]}
"""
    shown = load(tmp_path, text).text
    assert "hush" not in shown
    assert shown.count("<secret>") == 7
    readable = shown.replace("  dialect: victoriametrics\n", "").replace("  disable_sharding: true\n", "")
    again = load(tmp_path, readable.replace(" key: <secret>", " key: '-----BEGIN PRIVATE KEY-----hush-----END '"))
    assert again.text == shown
    assert again.jobs[0].relabel_configs[1] == RelabelConfig(if_=('{a="b"}',), source_labels=("é",), target_label="x")
    assert again.jobs[0].kubernetes_sd_configs[0].namespaces == Namespaces(("web",))
    assert again.jobs[1].target_defaults == TargetDefaults(scrape_interval=90.0, params={"x": ("y",)})


def test_a_change_of_any_file_that_was_read_is_noticed(tmp_path: Path) -> None:
    """Included ones and settings too, and files that come to a pattern or go from it; after a mistake as well."""
    settings = tmp_path / "settings.yml"
    settings.write_text("defaults:")
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "a.yml").write_text(jobs("a"))

    def read() -> Configuration | ConfigurationError:
        text = jobs("main") + "scrape_config_files: ['conf.d/*.yml']"
        try:
            return load(tmp_path, text, settings=settings)
        except ConfigurationError as error:
            return error

    for file, text in (
        (tmp_path / "conf.d" / "a.yml", jobs("b")),
        (tmp_path / "conf.d" / "a.yml", "bad"),
        (tmp_path / "conf.d" / ".c.yml", jobs("c")),
        (settings, "jobs:"),
    ):
        before = read()
        assert not changed(before)
        file.write_text(text)
        assert changed(before)
        assert not changed(read())
    before = read()
    (tmp_path / "conf.d" / "a.yml").unlink()
    assert changed(before)
    before = read()
    (tmp_path / "scrape.yml").unlink()
    assert changed(before)


def test_jobs_of_two_configurations_are_told_apart(tmp_path: Path) -> None:
    """Only rules: relabeled. Whatever else: replaced. The order says nothing."""

    def job(name: str, more: str = "") -> str:
        return f"- {{job_name: {name}, {PODS}{more}}}\n"

    rules = ", relabel_configs: [{target_label: x, replacement: 'y'}]"
    old = load(tmp_path, "scrape_configs:\n" + job("gone") + job("same", rules) + job("rules") + job("interval") + job("discovery"))
    new = load(
        tmp_path,
        "scrape_configs:\n" + job("new") + job("rules", rules) + job("interval", ", scrape_interval: 1s")
        + job("discovery").replace("pod", "node") + job("same", rules),
    )  # fmt: skip
    change = compare(old, new)
    assert (change.added, change.removed, change.kept) == (("new",), ("gone",), ("same",))
    assert (change.relabeled, change.replaced) == (("rules",), ("interval", "discovery"))
    sharding = with_settings(tmp_path, "{jobs: {rules: {disable_sharding: false}}}", jobs("rules"))
    assert compare(load(tmp_path, jobs("rules")), sharding).replaced == ("rules",)
    dialect = load(tmp_path, jobs("rules"), dialect="prometheus")
    assert compare(load(tmp_path, jobs("rules")), dialect).replaced == ("rules",)
    assert AttachMetadata() == dialect.jobs[0].kubernetes_sd_configs[0].attach_metadata
