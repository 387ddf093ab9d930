"""`fastdisco run` with a configuration, and `fastdisco healthcheck`, as processes of their own."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import bcrypt
import orjson
import pytest

from bench.peers.program import free_port
from fastdisco.sidecar.job_files import file_of
from fastdisco.synthetic import SyntheticProcess

TLS = Path(__file__).parent / "data" / "tls"


@pytest.fixture(scope="module")
def cluster() -> Iterator[SyntheticProcess]:
    with SyntheticProcess(pods=50, oddities=0.0) as server:
        yield server


def configuration(folder: Path, url: str, *jobs: str, **more: Any) -> Path:
    """Jobs of role pod."""
    file = folder / "jobs.yml"
    scrape = [{"job_name": name, "kubernetes_sd_configs": [{"role": "pod", "api_server": url}], **more} for name in jobs]
    file.write_text(json.dumps({"scrape_configs": scrape}))
    return file


def command(*flags: str) -> list[str]:
    return [sys.executable, "-m", "fastdisco", *flags]


def done(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*flags), capture_output=True, text=True, timeout=60, check=False)


@contextmanager
def running(*flags: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and its URL, once it serves; killed at the end if it still runs."""
    address = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(command("run", f"--web.listen-address={address}", *flags), stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: answer(f"http://{address}/-/healthy") is not None or process.poll() is not None)
        yield process, f"http://{address}"
    finally:
        process.kill()
        process.communicate()


def answer(url: str, method: str = "GET", **headers: str) -> tuple[int, str] | None:
    try:
        with urlopen(Request(url, method=method, headers=headers)) as found:
            return found.status, found.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return None


def wait_for(true: Callable[[], object], seconds: float = 20, look: float = 0.02) -> None:
    """For what another process does."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it does not come"
        time.sleep(look)


def targets(url: str) -> int:
    found = answer(url)
    assert found is not None
    assert found[0] == 200, found
    return len(orjson.loads(found[1]))


def test_run_serves_the_jobs_of_a_file_and_ends_at_once(tmp_path: Path, cluster: SyntheticProcess) -> None:
    """SIGTERM and Ctrl-C are success, also while answers are being sent and requests are held; the log is in lines for machines."""
    file = configuration(tmp_path, cluster.url, "a/b", "c")
    for number, form in ((signal.SIGTERM, "logfmt"), (signal.SIGINT, "json")):
        with running("--config", str(file), f"--log.format={form}") as (process, url):
            assert targets(f"{url}/sd/a%2Fb") == targets(f"{url}/sd?job=c") == 150
            began = time.monotonic()
            process.send_signal(number)
            _, log = process.communicate(timeout=10)
            assert (process.returncode, time.monotonic() - began < 5) == (0, True)
        last = log.splitlines()[-1]
        assert last.startswith("ts=2") if form == "logfmt" else orjson.loads(last)["level"] == "info"
        assert f"serves 2 jobs on {url}/" in log


def test_run_reloads_on_sighup(tmp_path: Path, cluster: SyntheticProcess) -> None:
    """And by a request, since only this machine can reach it; a bad file is told, and what ran goes on."""
    with running("--config", str(configuration(tmp_path, cluster.url, "one"))) as (process, url):
        configuration(tmp_path, cluster.url, "one", "two")
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: answer(f"{url}/sd/two")[0] == 200)  # type: ignore[index]
        configuration(tmp_path, cluster.url, "one", "two", "two")
        process.send_signal(signal.SIGHUP)
        assert answer(f"{url}/-/reload", "POST")[0] == 500  # type: ignore[index]
        assert targets(f"{url}/sd/one") == targets(f"{url}/sd/two") == 150


def test_run_says_what_of_a_file_may_be_other_than_meant(tmp_path: Path, cluster: SyntheticProcess) -> None:
    """A label that rules read in vain is a warning, and so is a file without any job; what is for others is one line."""
    files = ("--once", "--file-sd.directory", str(tmp_path / "files"))
    rules = [{"source_labels": ["__meta_kubernetes_pod_lable_app"], "target_label": "app"}]
    file = configuration(tmp_path, cluster.url, "a", "b", relabel_configs=rules, honor_labels=True, sample_limit=5)
    log = [line.partition(" ")[2] for line in done("run", "--config", str(file), *files).stderr.splitlines()]
    why = "relabel_configs[0]: __meta_kubernetes_pod_lable_app: no target"
    for name in ("a", "b"):
        assert sum(line.startswith(f'level=warn msg="job {name}: a label that is never there is read: {why}') for line in log) == 1
    assert [line for line in log if "others" in line] == [
        'level=info msg="keys and jobs that are for others than discovery: 4 (fastdisco check names them)"'
    ]
    file.write_text("scrape_configs: [{job_name: self}]")
    none = done("run", "--config", str(file), *files)
    assert none.returncode == 1
    assert none.stderr.endswith(f"fastdisco run: error: {file}: no job has kubernetes_sd_configs: there is nothing to write\n")
    with running("--config", str(file)) as (process, url):
        assert answer(f"{url}/-/healthy") is not None
        process.terminate()
        assert 'level=warn msg="no job has kubernetes_sd_configs: there is nothing to discover"' in process.communicate(timeout=10)[1]


@pytest.mark.parametrize("status", [401, 403])
def test_run_once_does_not_wait_for_what_is_refused(tmp_path: Path, status: int) -> None:
    """The files of the others are written, and named."""
    directory = tmp_path / "files"
    with SyntheticProcess(pods=20, oddities=0.0) as server:
        server.control("faults", [{"path": "/api/v1/nodes", "status": status}])
        file = configuration(tmp_path, server.url, "web")
        jobs = json.loads(file.read_text())
        jobs["scrape_configs"].append({"job_name": "nodes", "kubernetes_sd_configs": [{"role": "node", "api_server": server.url}]})
        file.write_text(json.dumps(jobs))
        one = done("run", "--config", str(file), "--once", f"--file-sd.directory={directory}", "--timeout=3000", "--log.level=error")
    assert one.returncode == 1
    assert one.stderr.startswith("fastdisco run: error: job nodes: /api/v1/nodes (")
    assert f"status code {status}" in one.stderr
    assert one.stderr.endswith("; written: web\n")
    assert len(orjson.loads(file_of(directory, "web", "json").read_bytes())) == 60


def test_run_once_writes_the_files_and_ends(tmp_path: Path, cluster: SyntheticProcess) -> None:
    """0 if all are there; 1, and why, if not."""
    file, directory = configuration(tmp_path, cluster.url, "a b"), tmp_path / "files"
    one = done("run", "--config", str(file), "--once", "--file-sd.directory", str(directory), "--log.level=warn")
    assert (one.returncode, one.stderr) == (0, "")
    assert one.stdout == f"wrote the targets of 1 jobs to {directory}\n"
    assert len(orjson.loads(file_of(directory, "a b", "json").read_bytes())) == 150
    gone = configuration(tmp_path, f"http://127.0.0.1:{free_port()}", "gone", "too")
    two = done("run", "--config", str(gone), "--once", "--file-sd.directory", str(directory), "--timeout=0.2", "--log.level=error")
    assert (two.returncode, two.stdout) == (1, "")
    late = "no first sync within 0.2 s (--timeout SECONDS waits for longer): /api/v1/pods ("
    assert two.stderr.startswith(f"fastdisco run: error: jobs gone, too: {late}")
    assert two.stderr.endswith("; written: none\n")
    assert not file_of(directory, "gone", "json").exists()


def test_run_serves_what_the_last_run_knew(tmp_path: Path) -> None:
    """After a restart while the API server is away; killed in between."""
    state = tmp_path / "state"
    with SyntheticProcess(pods=20, oddities=0.0) as server:
        file = configuration(tmp_path, server.url, "web")
        with running("--config", str(file), f"--state={state}") as (process, _):
            wait_for(state.exists)
            process.kill()
    with running("--config", str(file), f"--state={state}") as (_, url), urlopen(f"{url}/sd/web") as found:
        assert (found.headers["X-Fastdisco-State"], len(orjson.loads(found.read()))) == ("past", 60)


def test_paths_begin_where_the_flags_say(tmp_path: Path, cluster: SyntheticProcess) -> None:
    """Behind a proxy that serves it below a path of its own; the index has the URLs that clients can use."""
    configuration(tmp_path, cluster.url, "web")
    flags = ("--config", str(tmp_path / "jobs.yml"), "--web.external-url=https://disco.example.com/x/", "--web.route-prefix=/y")
    address = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(command("run", f"--web.listen-address={address}", *flags), stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: answer(f"http://{address}/y/-/healthy"))
        assert targets(f"http://{address}/y/sd/web") == 150
        index = answer(f"http://{address}/y/sd")
        assert index is not None
        assert orjson.loads(index[1])["jobs"][0]["url"] == "https://disco.example.com/x/sd/web"
        assert answer(f"http://{address}/sd/web")[0] == 404  # type: ignore[index]
    finally:
        process.kill()
        process.wait()


def test_healthcheck_asks_a_run(tmp_path: Path, cluster: SyntheticProcess) -> None:
    """For a probe: exit status 0 or 1; also on the address that has neither TLS nor passwords."""
    web = tmp_path / "web.yml"
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    web.write_text(
        json.dumps(
            {
                "tls_server_config": {"cert_file": f"{TLS}/server.pem", "key_file": f"{TLS}/server.key"},
                "basic_auth_users": {"ann": hashed},
            }
        )
    )
    health, address = (f"127.0.0.1:{free_port()}" for _ in range(2))
    flags = ("--config", str(configuration(tmp_path, cluster.url, "web")), f"--web.config.file={web}", f"--web.health-address={health}")
    process = subprocess.Popen(command("run", *flags, f"--web.listen-address={address}"), stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: answer(f"http://{health}/-/ready") == (200, "fastdisco is ready.\n"))
        for more in ((), ("--ready",), ("--ready", "--job=web")):
            asked = done("healthcheck", f"--address={health}", *more)
            assert (asked.returncode, asked.stdout, asked.stderr) == (0, "", "")
        unknown = done("healthcheck", f"--address={health}", "--ready", "--job=none")
        assert (unknown.returncode, unknown.stderr) == (
            1,
            "fastdisco healthcheck: error: there is no job none (status code 404)\n",
        )
        assert "(status code 401)" in done("healthcheck", f"--address={address}", "--tls").stderr
        assert done("healthcheck", f"--address={address}").stderr.endswith(" (perhaps it speaks TLS: try --tls)\n")
        assert done("healthcheck", f"--address={health}", "--tls").stderr.endswith(" (perhaps it speaks no TLS: leave --tls out)\n")
        assert answer(f"http://{health}/sd/web")[0] == 404  # type: ignore[index]
    finally:
        process.kill()
        process.wait()
    nobody = done("healthcheck", f"--address={health}")
    assert (nobody.returncode, "perhaps" in nobody.stderr) == (1, False)


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--file-sd.mode=9", "must be three octal digits such as 644, not '9'"),
        ("--web.external-url=example.com", "must be of the form https://HOST[:PORT][/PATH], not 'example.com'"),
        ("--config.auto-reload-interval=0", "must be above 0"),
    ],
)
def test_a_mistake_in_a_flag_is_told(flag: str, message: str) -> None:
    """In a line, with exit status 2."""
    one = done("run", "--config=x.yml", flag)
    assert (one.returncode, one.stderr.splitlines()[0]) == (2, f"fastdisco run: error: argument {flag.partition('=')[0]}: {message}")


@pytest.mark.slow
def test_files_are_whole_whenever_it_is_killed(tmp_path: Path) -> None:
    """A hundred times, at any moment, while targets change and are written as often as it can; a reader sees whole files only, and never
    one that has yet to be finished."""
    choose = random.Random(1)
    directory = tmp_path / "files"
    with SyntheticProcess(pods=2000, oddities=0.0) as server:
        server.control("churn", rate=200.0, kinds=["pods"], mix={"modified": 2, "added": 1, "deleted": 1})
        file = configuration(tmp_path, server.url, "a", "b", "c")
        flags = ("--config", str(file), f"--file-sd.directory={directory}", "--log.level=error")
        read = 0
        for _ in range(100):
            process = subprocess.Popen(command("run", "--web.listen-address=127.0.0.1:0", *flags))
            wait_for(lambda: any((directory / ".partial").glob("*")), look=0.001)  # it writes, which takes some milliseconds
            until = time.monotonic() + choose.uniform(0.0, 0.15)
            while time.monotonic() < until:
                read += look_at(directory)
            process.kill()
            process.wait()
            for left in (directory / ".partial").iterdir():
                left.unlink()
            read += look_at(directory)
        assert read > 300


def look_at(directory: Path) -> int:
    """Reads what a scraper would, whatever glob it has; how many files."""
    count = 0
    for pattern in ("*.json", "*/*.json", "*.y*ml", "*/*.y*ml"):
        for file in directory.glob(pattern):
            groups = orjson.loads(file.read_bytes())
            assert isinstance(groups, list)
            assert all(group.keys() == {"targets", "labels"} for group in groups[:10])
            assert len(groups) > 3000
            count += 1
    return count
