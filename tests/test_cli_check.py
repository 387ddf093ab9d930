"""`fastdisco check` as it is used: files, text and JSON, exit codes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import orjson

from tests.test_cli import run

FILE = """
scrape_configs:
- job_name: pods
  kubernetes_sd_configs:
  - {role: pod, api_server: "https://127.0.0.1:1", namespaces: {names: [a, b]}, selectors: [{role: pod, label: app=x, field: spec.a=b}]}
  relabel_configs:
  - {source_labels: [__meta_kubernetes_pod_lable_app], target_label: app}
- job_name: slices
  honor_labels: true
  kubernetes_sd_configs:
  - role: endpointslice
    api_server: "https://127.0.0.1:1"
    namespaces: {names: [b, a]}
    selectors: [{role: pod, label: app=x, field: spec.a=b}]
    attach_metadata: {node: true}
  - {role: node, namespaces: {own_namespace: true}}
- {job_name: other, static_configs: []}
"""


def check(folder: Path, text: str, *flags: str) -> subprocess.CompletedProcess[str]:
    (folder / "scrape.yml").write_text(text)
    return run("check", str(folder / "scrape.yml"), *flags)


def test_what_would_run_is_told(tmp_path: Path) -> None:
    """Which dialect and why, jobs, what they share, what is not used, and what rules read in vain."""
    (tmp_path / "settings.yml").write_text("jobs: {slices: {disable_sharding: false, dialect: prometheus}}")
    done = check(tmp_path, FILE, "--settings", str(tmp_path / "settings.yml"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.replace(str(tmp_path), "").splitlines() == [
        "The dialect is victoriametrics, the default, since both peers would accept all keys.",
        "job pods: 1 rule",
        "  role pod of https://127.0.0.1:1; namespaces a, b; pods by app=x and spec.a=b",
        "job slices: 0 rules, dialect prometheus, its rules may shard",
        "  role endpointslice of https://127.0.0.1:1; namespaces b, a; pods by app=x and spec.a=b; attached node",
        "  role node of the API server of the pod; namespaces its own",
        "these jobs share their watches: pods, slices",
        "not used:",
        "  /scrape.yml: scrape_configs[1].honor_labels: for others than discovery",
        "  /scrape.yml: scrape_configs[2]: job 'other' has no kubernetes_sd_configs",
        "read by rules, but never there:",
        "  job pods: relabel_configs[0]: __meta_kubernetes_pod_lable_app: no target has it; is __meta_kubernetes_pod_label_app meant?",
    ]


def test_the_same_is_told_as_json(tmp_path: Path) -> None:
    """For programs; credentials are no part of it."""
    text = FILE.replace("role: pod,", "role: pod, bearer_token: hush,", 1)
    done = check(tmp_path, text, "--output", "json")
    told = orjson.loads(done.stdout)
    assert done.returncode == 0
    assert "hush" not in done.stdout
    assert (told["dialect"], told["shared_watches"], len(told["not_used"])) == ("victoriametrics", [], 2)
    assert [(job["job_name"], job["rules"], len(job["unmade_labels"])) for job in told["jobs"]] == [("pods", 1, 1), ("slices", 0, 0)]
    assert told["jobs"][0]["kubernetes_sd_configs"] == [
        {
            "role": "pod",
            "api_server": "https://127.0.0.1:1",
            "namespaces": {"names": ["a", "b"], "own_namespace": False},
            "selectors": [{"role": "pod", "label": "app=x", "field": "spec.a=b"}],
            "attach_metadata": told["jobs"][0]["kubernetes_sd_configs"][0]["attach_metadata"],
        }
    ]
    assert list(told["checksums"]) == [str(tmp_path / "scrape.yml")]


def test_mistakes_are_told_a_line_each(tmp_path: Path) -> None:
    """Exit code 1, and nothing is told of what would run; in JSON they are an array."""
    text = FILE.replace("role: node", "role: nodes").replace("{job_name: other,", "{")
    roles = "node, pod, service, endpoints, endpointslice, ingress"
    role = f"scrape_configs[1].kubernetes_sd_configs[1].role: must be one of {roles}, not 'nodes'"
    wanted = [f"{tmp_path}/scrape.yml: {mistake}" for mistake in (role, "scrape_configs[2].job_name: missing")]
    done = check(tmp_path, text)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [f"fastdisco check: error: {mistake}" for mistake in wanted]
    done = check(tmp_path, text, "--output", "json")
    assert (done.returncode, done.stderr, orjson.loads(done.stdout)) == (1, "", {"mistakes": wanted})


def test_flags_say_how_the_file_is_read(tmp_path: Path) -> None:
    """The dialect, and whether variables in parentheses are expanded; wrong ones end with exit code 2."""
    text = "scrape_configs: [{job_name: $(HOME), kubernetes_sd_configs: [{role: pod}]}]"
    assert "job $(HOME): " in check(tmp_path, text).stdout
    assert "job /" in check(tmp_path, text, "--config.expand-env").stdout
    assert check(tmp_path, text, "--dialect", "prometheus").stdout.startswith("The dialect is prometheus, as asked for.\n")
    assert check(tmp_path, text, "--dialect", "datadog").returncode == run("check").returncode == 2
    assert run("check", str(tmp_path / "nothing.yml")).returncode == 1
