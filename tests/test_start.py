"""What a program loads when it starts: counted in modules, for each is time before the first request."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import fastdisco

ROOT = Path(__file__).parents[1]

# Whole packages, and what only some jobs, commands or users need; a name stands for its submodules, too.
NEVER = (
    "aiohttp.web", "argparse", "bcrypt", "decimal", "fastdisco._export", "fastdisco.absence", "fastdisco.cli", "fastdisco.configuration",
    "fastdisco.explanation", "fastdisco.exposition", "fastdisco.graphite", "fastdisco.kubeconfig", "fastdisco.proxies",
    "fastdisco.series_selector", "fastdisco.sidecar", "fastdisco.synthetic", "fastdisco.thread", "jinja2", "prometheus_client", "rich",
    "uvloop", "yaml",
)  # fmt: skip
ENGINE = ("aiohttp", "asyncio", "fastdisco.api", "fastdisco.discovery", "fastdisco.sidecar", "prometheus_client", "uvloop")

WATCH = """
import asyncio
from fastdisco import Discovery, KubernetesSDConfig, RelabelConfig, TargetDefaults
async def watch():
    async with Discovery() as discovery:
        rules = [RelabelConfig("keep", ("app",), regex="a|b"), RelabelConfig("labelmap", regex="app_(.+)"), RelabelConfig(target_label="c")]
        config = KubernetesSDConfig.from_dict({"role": "endpoints", "api_server": "http://127.0.0.1:1"})
        discovery.watch("job", config, relabel_configs=rules, target_defaults=TargetDefaults())
        await asyncio.sleep(0)
asyncio.run(watch())
"""


def loaded(code: str) -> set[str]:
    """The modules of a fresh interpreter that has run the code."""
    code += "\nimport sys; print('modules:', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.rpartition("modules:")[2].split())


def command(*arguments: str) -> str:
    """Code that runs the command `fastdisco`, which succeeds."""
    return f"""
from fastdisco.cli import main
try:
    code = main({list(arguments)!r})
except SystemExit as end:
    code = end.code
assert code == 0, code
"""


def among(names: tuple[str, ...], modules: set[str]) -> list[str]:
    return [name for name in names if any(one == name or one.startswith(name + ".") for one in modules)]


def test_the_package_alone_brings_in_no_engine() -> None:
    """Configurations, rules, labels and errors, without a loop and an HTTP client."""
    assert not among((*NEVER, *ENGINE), loaded("import fastdisco"))


def test_a_job_brings_in_no_more_than_it_uses() -> None:
    """A discovery with a job of plain rules: no metrics unless a registry is given, nothing of the command line, no thread."""
    modules = loaded(WATCH)
    assert {"aiohttp", "fastdisco.discovery", "fastdisco.rules"} <= modules
    assert not among(NEVER, modules)


def test_what_a_job_uses_is_brought_in() -> None:
    """The list above names modules that there are: each comes with its feature."""
    registry = WATCH.replace("Discovery()", "Discovery(registry=__import__('prometheus_client').CollectorRegistry())")
    assert among(("prometheus_client", "fastdisco.exposition"), loaded(registry)) == ["prometheus_client", "fastdisco.exposition"]
    selecting = WATCH.replace('target_label="c"', 'target_label="c", if_=("{a=\\"b\\"}",)')
    assert among(("fastdisco.series_selector",), loaded(selecting))
    assert among(("fastdisco.thread", "uvloop"), loaded("import fastdisco; fastdisco.Discovery.run_in_thread().close()")) == [
        "fastdisco.thread", "uvloop",
    ]  # fmt: skip


@pytest.fixture
def answering() -> Iterator[str]:
    """The address of a server that says yes."""

    class Yes(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Yes) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_commands_that_watch_nothing_bring_in_no_engine(tmp_path: Path, answering: str) -> None:
    """The version, the check of a configuration, and the probe that runs every few seconds."""
    file = tmp_path / "scrape.yml"
    file.write_text("scrape_configs:\n- job_name: web\n  kubernetes_sd_configs:\n  - role: pod\n")
    assert not among((*ENGINE, "yaml"), loaded(command("--version")))
    assert not among(ENGINE, loaded(command("check", str(file))))
    assert not among((*ENGINE, "yaml"), loaded(command("healthcheck", "--address", answering)))


def test_a_run_of_the_bench_begins_without_what_checks_its_answer() -> None:
    """What it measures is the engine, from the start of the process."""
    assert not among(("fastdisco.synthetic", "bench.cases", *NEVER), loaded("import bench.runs.engine"))


def test_names_that_come_late_are_names_of_the_package() -> None:
    """Each public name is found, is listed, and is one object; others are not."""
    assert all(hasattr(fastdisco, name) for name in fastdisco.__all__)
    assert set(fastdisco.__all__) <= set(dir(fastdisco))
    everything: dict[str, object] = {}
    exec("from fastdisco import *", everything)
    assert everything["Discovery"] is fastdisco.Discovery is fastdisco.discovery.Discovery
    assert not hasattr(fastdisco, "Undiscovered")
