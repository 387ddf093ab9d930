"""`fastdisco explain` as it is used: a configuration file, a real server, text and JSON, exit codes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from fastdisco.synthetic import SyntheticProcess

from .live import endpoints, node, pod, service
from .test_cli import end, nobody, run, started

OBJECTS = {
    "nodes": [node("n1", zone="a")],
    "pods": [pod("web-0", "127.3.0.1", app="web"), pod("web-1", "127.3.0.2", app="web", ports=(80, 9090)), pod("idle", "", app="idle")],
    "services": [service("web", app="web")],
    "endpoints": [endpoints("web", {"web-0": "127.3.0.1"})],
}
HEAD = "scrape_configs:\n- job_name: web\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyntheticProcess]:
    file = tmp_path_factory.mktemp("objects") / "objects.json"
    file.write_bytes(orjson.dumps(OBJECTS))
    with SyntheticProcess(objects=file) as running:
        yield running


def written(path: Path, url: str, *roles: str, rules: str = "", more: str = "", sd: str = "") -> str:
    """A configuration with a job `web`."""
    configs = "".join(f"  - {{role: {role}, api_server: '{url}'{sd}}}\n" for role in roles)
    file = path / "prometheus.yml"
    file.write_text(f"{more}{HEAD}  kubernetes_sd_configs:\n{configs}{'  relabel_configs:' if rules else ''}{rules}\n")
    return str(file)


def explain(file: str, name: str, *flags: str, job: str = "web") -> subprocess.CompletedProcess[str]:
    done = run("explain", "--config", file, "--job", job, name, *flags)
    assert "Traceback" not in done.stderr
    return done


def block(text: str, title: str) -> list[str]:
    """The lines under a line, as far as they are indented further."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.strip().startswith(title))
    indent = len(lines[start]) - len(lines[start].lstrip())
    found = []
    for line in lines[start + 1 :]:
        if len(line) - len(line.lstrip()) <= indent:
            break
        found.append(line.strip())
    return found


RULES = """
  - {source_labels: [__meta_kubernetes_pod_label_app], action: keep, regex: web}
  - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
  - {source_labels: [__address__], target_label: __address__, regex: '(.+):80$', replacement: '$1:81'}
  - {source_labels: [__address__], action: drop, regex: '.*:9090', if: '{job="web"}'}
  - {action: labeldrop, regex: __meta_kubernetes_pod_uid}
"""


def test_each_target_is_shown_rule_by_rule(server: SyntheticProcess, tmp_path: Path) -> None:
    """What each rule changes, the labels for the scraper and those of the samples; the rule that drops a target."""
    file = written(tmp_path, server.url, "pod", rules=RULES, more="global: {scrape_interval: 30s}\n")
    done = explain(file, "default/web-1")
    assert (done.returncode, done.stderr) == (0, "")
    head, kept, dropped = done.stdout.split("\n\n")
    assert head == "default/web-1, role pod: 2 targets"
    assert kept.startswith("target 1: 127.3.0.2:80: kept\n  before the rules:\n")
    before = block(kept, "before the rules:")
    assert before[0] == '__address__="127.3.0.2:80"'
    assert {'job="web"', '__scrape_interval__="30s"', '__meta_kubernetes_pod_name="web-1"'} <= set(before)
    assert block(kept, "rule 1: {action: keep, source_labels: [__meta_kubernetes_pod_label_app], regex: web}") == []
    assert block(kept, "rule 2: {action: replace, source_labels: [__meta_kubernetes_pod_name], target_label: pod}") == ['+ pod="web-1"']
    assert block(kept, "rule 3:") == ['~ __address__="127.3.0.2:80" becomes "127.3.0.2:81"']
    assert 'regex: ".*:9090", if: ["{job=\\"web\\"}"]}' in kept
    assert [line.partition("=")[0] for line in block(kept, "rule 5:")] == ["- __meta_kubernetes_pod_uid"]
    assert block(kept, "for the scraper:") == [
        '__address__="127.3.0.2:81"', '__metrics_path__="/metrics"', '__scheme__="http"', '__scrape_interval__="30s"',
        '__scrape_timeout__="10s"', 'instance="127.3.0.2:81"', 'job="web"', 'pod="web-1"',
    ]  # fmt: skip
    assert kept.endswith('  with its samples: instance="127.3.0.2:81", job="web", pod="web-1"')
    assert dropped.startswith("target 2: 127.3.0.2:9090: dropped: rule 4: drop\n")
    assert dropped.endswith("    drops the target\n")


def test_targets_that_end_as_one_are_told(server: SyntheticProcess, tmp_path: Path) -> None:
    """A rewritten port is the commonest way to have fewer works than targets."""
    file = written(tmp_path, server.url, "pod", rules="\n  - {target_label: __address__, replacement: 'one:1'}")
    lines = explain(file, "default/web-1").stdout.splitlines()
    assert [line for line in lines if line.startswith("target ")] == [
        "target 1: 127.3.0.2:80: kept",
        "target 2: 127.3.0.2:9090: kept, as one with target 1: their final labels are equal",
    ]


def test_json_has_all_of_it(server: SyntheticProcess, tmp_path: Path) -> None:
    """Rules as they are written, labels in the order of the rules."""
    done = explain(written(tmp_path, server.url, "pod", rules=RULES), "default/web-1", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    (found,) = orjson.loads(done.stdout)
    assert {key: found[key] for key in ("role", "namespace", "name", "known", "reason")} == {
        "role": "pod", "namespace": "default", "name": "web-1", "known": True, "reason": "",
    }  # fmt: skip
    kept, dropped = found["targets"]
    assert kept["discovered"]["__meta_kubernetes_pod_name"] == "web-1"
    assert "job" not in kept["discovered"]
    assert (kept["dropped"], kept["labels"]["__address__"], kept["stored"]["pod"]) == ("", "127.3.0.2:81", "web-1")
    assert kept["rules"][1]["rule"] == {"action": "replace", "source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"}
    assert kept["rules"][1]["after"] == [*kept["rules"][1]["before"], ["pod", "web-1"]]
    assert (dropped["dropped"], dropped["labels"], dropped["stored"], len(dropped["rules"])) == ("rule 4: drop", {}, {}, 4)
    assert dropped["rules"][3]["rule"]["if"] == ['{job="web"}']
    assert dropped["rules"][3]["after"] == []


def test_every_role_that_knows_the_name_answers(server: SyntheticProcess, tmp_path: Path) -> None:
    """Roles that do not are left out if some do."""
    done = explain(written(tmp_path, server.url, "pod", "service", "endpoints", "node"), "default/web")
    assert done.returncode == 0
    titles = [line for line in done.stdout.splitlines() if line.startswith("default/web, ")]
    assert titles == ["default/web, role service: 1 target", "default/web, role endpoints: 1 target"]
    assert block(done.stdout, "discovered:")[0] == '__address__="web.default.svc:80"'


def test_a_node_is_told_by_its_name(server: SyntheticProcess, tmp_path: Path) -> None:
    """Without a namespace."""
    done = explain(written(tmp_path, server.url, "node", "pod"), "n1")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "n1, role node: 1 target")


def test_an_object_without_a_target_is_known(server: SyntheticProcess, tmp_path: Path) -> None:
    """Exit code 0, and why; so is one that a selector leaves out."""
    done = explain(written(tmp_path, server.url, "pod"), "default/idle")
    assert (done.returncode, done.stdout) == (0, "default/idle, role pod: no target: the pod has no IP address\n")
    selectors = ", selectors: [{role: pod, label: 'app=idle'}]"
    done = explain(written(tmp_path, server.url, "pod", sd=selectors), "default/web-0", "--json")
    (found,) = orjson.loads(done.stdout)
    assert (done.returncode, found["known"], found["reason"]) == (0, True, "the selector app=idle leaves it out")


def test_what_nobody_knows_is_a_failure(server: SyntheticProcess, tmp_path: Path) -> None:
    """Exit code 1, and of each role why."""
    done = explain(written(tmp_path, server.url, "pod", "service"), "default/ghost")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == (
        "default/ghost, role pod: no target: the API server has no such object\n"
        "default/ghost, role service: no target: the API server has no such object\n"
    )
    done = explain(written(tmp_path, server.url, "pod", sd=", namespaces: {names: [other]}"), "default/web-0", "--json")
    (found,) = orjson.loads(done.stdout)
    assert (done.returncode, found["known"], found["targets"]) == (1, False, [])
    assert found["reason"] == "namespace default is not among those of the configuration"


def test_without_a_sync_there_is_nothing_to_explain(server: SyntheticProcess, tmp_path: Path) -> None:
    """Exit code 1 with the reason, nothing printed: no server, or one that refuses all that the roles read; one of two is enough."""
    with nobody() as url:
        done = explain(written(tmp_path, url, "pod"), "default/web-0", "--timeout", "0.3")
    assert (done.returncode, done.stdout) == (1, "")
    assert "fastdisco explain: error: no first sync within 0.3 s" in done.stderr
    server.control("faults", path="/api/v1/pods", status=403, message="forbidden by a test")
    try:
        done = explain(written(tmp_path, server.url, "pod"), "default/web-0")
        assert (done.returncode, done.stdout) == (1, "")
        assert "error: the server refused /api/v1/pods: status code 403: forbidden by a test" in done.stderr
        done = explain(written(tmp_path, server.url, "pod", "service"), "default/web")
        assert (done.returncode, done.stdout.splitlines()[0]) == (0, "default/web, role service: 1 target")
    finally:
        server.request("DELETE", "/control/faults")


def test_ctrl_c_ends_the_waiting(server: SyntheticProcess, tmp_path: Path) -> None:
    """Exit code 130, no traceback."""
    file = written(tmp_path, server.url, "pod")
    server.control("faults", path="/api/v1/pods", hang=True)
    try:
        with started("explain", "--config", file, "--job", "web", "default/web-0", "-v") as process:
            assert process.stderr is not None
            while b"started watching" not in process.stderr.readline():
                pass
            code, errors = end(process, 2)
        assert (code, "Traceback" in errors) == (130, False)
    finally:
        server.request("DELETE", "/control/faults")


# ---- mistakes ----


def refused(capfd: pytest.CaptureFixture[str], *flags: str) -> str:
    """What a command that ends with exit code 2 says first; nothing was printed."""
    from fastdisco.cli import main

    try:
        code: object = main(["explain", *flags])
    except SystemExit as ending:
        code = ending.code
    printed = capfd.readouterr()
    assert (code, printed.out) == (2, "")
    return printed.err.splitlines()[0]


@pytest.mark.parametrize(("flags", "message"), [
    ((), "the following arguments are required: NAMESPACE/NAME, --config, --job"),
    (("default/web",), "the following arguments are required: --config, --job"),
    (("a/b/c", "--config", "x", "--job", "y"), "argument NAMESPACE/NAME: must be of the form NAMESPACE/NAME, or NAME for a node, not 'a"),
    (("/b", "--config", "x", "--job", "y"), "argument NAMESPACE/NAME: must be of the form "),
    (("a/", "--config", "x", "--job", "y"), "argument NAMESPACE/NAME: must be of the form "),
    (("", "--config", "x", "--job", "y"), "argument NAMESPACE/NAME: must be of the form "),
    (("a/b", "--config", "x", "--job", "y", "--dialect", "other"), "argument --dialect: invalid choice: 'other'"),
    (("a/b", "--config", "x", "--job", "y", "--timeout", "-1"), "argument --timeout: must be seconds, or a duration such as "),
    (("a/b", "--config", "/nowhere/x.yml", "--job", "y"), "/nowhere/x.yml: cannot be read: "),
])  # fmt: skip
def test_wrong_flags_are_named(flags: tuple[str, ...], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, the flag and the reason."""
    assert refused(capfd, *flags).startswith(f"fastdisco explain: error: {message}")


SD = "  kubernetes_sd_configs: [{role: pod, api_server: 'http://127.0.0.1:1'}]\n"
MISTAKES: list[tuple[str, str, str]] = [
    ("scrape_configs: []", "a/b", "no job with kubernetes_sd_configs is called 'web'; there are: none"),
    (
        "scrape_configs: [{job_name: a, kubernetes_sd_configs: [{role: pod}]}, {job_name: web}]",
        "a/b",
        "no job with kubernetes_sd_configs is called 'web'; there are: a",
    ),
    (HEAD + SD, "n1", "job 'web' has no role for 'n1'; it discovers objects by NAMESPACE/NAME"),
    (HEAD + SD.replace("pod", "node"), "a/b", "job 'web' has no role for 'a/b'; it discovers objects by NAME, of a node"),
    (HEAD + "  kubernetes_sd_configs: [{role: pods}]", "a/b", "scrape_configs[0].kubernetes_sd_configs[0].role: must be one of "),
    (HEAD + SD + "  relabel_configs: [{action: kep}]", "a/b", "scrape_configs[0].relabel_configs[0].action: must be one of "),
    (HEAD + SD + "  relabel_configs: [{action: hashmod}]", "a/b", "scrape_configs[0].relabel_configs[0].source_labels: missing"),
    (HEAD + "  kubernetes_sd_configs: [{role: pod}]", "a/b", "job 'web': api_server: missing, and this is no pod"),
    ("scrape_configs: [", "a/b", "no valid YAML: "),
]


@pytest.mark.parametrize(("text", "name", "message"), MISTAKES, ids=[message for _, _, message in MISTAKES])
def test_a_mistake_in_the_file_is_told_with_file_and_key(
    text: str, name: str, message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2, before any server is asked."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    file = tmp_path / "x.yml"
    file.write_text(text)
    assert refused(capfd, name, "--config", str(file), "--job", "web").startswith(f"fastdisco explain: error: {file}: {message}")


def test_what_a_rule_says_is_written_as_in_a_file() -> None:
    """Only what is not at its default; texts that YAML may take for something else are quoted."""
    from fastdisco.cli.explain import _written
    from fastdisco.relabel_config import RelabelConfig

    rules: list[tuple[Any, str]] = [
        ({}, "{action: replace}"),
        ({"action": "hashmod", "source_labels": ["a"], "modulus": 8, "target_label": "b"},
         "{action: hashmod, source_labels: [a], target_label: b, modulus: 8}"),
        ({"regex": [1, "a b"], "replacement": "", "separator": ","}, '{action: replace, separator: ",", regex: "1|a b", replacement: ""}'),
        ({"action": "graphite", "match": "*.x", "labels": {"job": "$1"}}, '{action: graphite, match: "*.x", labels: {job: "$1"}}'),
        ({"action": "keep", "if": ['{a="b"}', "c"]}, '{action: keep, if: ["{a=\\"b\\"}", c]}'),
    ]  # fmt: skip
    for mapping, text in rules:
        assert _written(RelabelConfig.from_dict(mapping)) == text
