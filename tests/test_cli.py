"""The command line as it is used: real processes against a real server."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import termios
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.request import urlopen

import orjson
import pytest

import fastdisco
from fastdisco.cli import first_sync
from fastdisco.cli.output import Output
from fastdisco.synthetic import SyntheticProcess
from fastdisco.url_watcher import Timings

GOLDEN = Path(__file__).parent / "data" / "golden"
VARIANTS: dict[str, list[dict[str, str]]] = orjson.loads((GOLDEN / "targets-victoriametrics.json").read_bytes())
PROMETHEUS: dict[str, list[dict[str, str]]] = orjson.loads((GOLDEN / "targets-prometheus.json").read_bytes())
ENVIRON = {name: value for name, value in os.environ.items() if not name.startswith("KUBERNETES_")} | {"TERM": "xterm"}
PODS = "/api/v1/pods"


def command(*flags: str) -> list[str]:
    return [sys.executable, "-m", "fastdisco", *flags]


def run(*flags: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """`text` is its standard input."""
    return subprocess.run(command(*flags), input=text, capture_output=True, text=True, env=ENVIRON, timeout=30, check=False)


@contextmanager
def started(
    *flags: str, stdout: int | IO[bytes] = subprocess.PIPE, stderr: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[bytes]]:
    """A command that goes on by itself; whatever a test leaves of it is killed."""
    with subprocess.Popen(command(*flags), env=ENVIRON, stdout=stdout, stderr=stderr) as process:
        try:
            yield process
        finally:
            process.kill()


def array_of(stdout: IO[bytes]) -> list[dict[str, str]]:
    """Of a command that goes on: the array ends with a line of its own."""
    lines: list[bytes] = []
    while not lines or lines[-1] not in (b"]\n", b"[]\n"):
        lines.append(stdout.readline())
        assert lines[-1], "no array"
    result: list[dict[str, str]] = orjson.loads(b"".join(lines))
    return result


def end(process: subprocess.Popen[bytes], number: int) -> tuple[int, str]:
    """After a signal: exit code and standard error."""
    process.send_signal(number)
    _, errors = process.communicate(timeout=10)
    return process.returncode, (errors or b"").decode()


@pytest.fixture(scope="module")
def golden() -> Iterator[str]:
    with SyntheticProcess(objects=GOLDEN / "objects.json") as server:
        yield server.url


@pytest.fixture(scope="module")
def cluster() -> Iterator[SyntheticProcess]:
    """Tests put faults and take them away again."""
    with SyntheticProcess(pods=20, namespaces=2, apps=4, oddities=0.0) as server:
        yield server


@contextmanager
def fault(server: SyntheticProcess, **rule: Any) -> Iterator[None]:
    server.control("faults", **rule)
    try:
        yield
    finally:
        server.request("DELETE", "/control/faults")


def on(server: SyntheticProcess, role: str = "pod") -> tuple[str, ...]:
    return ("targets", "--api-server", server.url, "--role", role)


def object_of(name: str, *, port: int = 80) -> Mapping[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "ports": [{"containerPort": port}]}]},
        "status": {"podIP": "127.0.0.9", "phase": "Running"},
    }


# ---- the targets ----


@pytest.mark.parametrize("variant", VARIANTS)
def test_targets_are_those_that_the_original_finds(variant: str, golden: str) -> None:
    """Label by label, for each role and attachment; equal targets count up to twice."""
    role, _, attached = variant.partition("+")
    done = run("targets", "--api-server", golden, "--role", role, *(("--attach-metadata", attached) if attached else ()))
    assert (done.returncode, done.stderr) == (0, "")
    found = [tuple(target.items()) for target in orjson.loads(done.stdout)]
    assert all(list(target) == sorted(target) for target in found)
    capped = {target: min(2, count) for target, count in Counter(found).items()}
    assert capped == Counter(tuple(sorted(target.items())) for target in VARIANTS[variant])


@pytest.mark.parametrize("variant", PROMETHEUS)
def test_targets_of_the_other_dialect_are_those_that_prometheus_finds(variant: str, golden: str) -> None:
    """Label by label, for each role and attachment; Prometheus shows equal targets once."""
    role, _, attached = variant.partition("+")
    flags = ("--dialect", "prometheus", *(("--attach-metadata", attached) if attached else ()))
    done = run("targets", "--api-server", golden, "--role", role, *flags)
    assert (done.returncode, done.stderr) == (0, "")
    assert {tuple(target.items()) for target in orjson.loads(done.stdout)} == {tuple(sorted(one.items())) for one in PROMETHEUS[variant]}


def test_the_order_of_targets_depends_on_their_labels_alone(golden: str) -> None:
    """Two runs print the same bytes, one target a line, by namespace, name and address."""
    first, second = (run("targets", "--api-server", golden, "--role", "endpoints").stdout for _ in range(2))
    assert first == second
    lines = first.split("\n")
    assert (lines[0], *lines[-2:]) == ("[", "]", "")
    names = ("__meta_kubernetes_namespace", "__meta_kubernetes_endpoints_name", "__address__")
    places = [tuple(orjson.loads(line.rstrip(","))[name] for name in names) for line in lines[1:-2]]
    assert places == sorted(places)


def test_flags_narrow_the_discovery(cluster: SyntheticProcess) -> None:
    """Namespaces, label selectors and field selectors reach the server, whose answer is what is printed."""
    every = orjson.loads(run(*on(cluster)).stdout)
    default = [target for target in every if target["__meta_kubernetes_namespace"] == "default"]
    assert 0 < len(default) < len(every)
    assert orjson.loads(run(*on(cluster), "--namespace", "default").stdout) == default
    one = default[0]["__meta_kubernetes_pod_name"]
    selected = run(*on(cluster), "--namespace=default", "--namespace=kube-system", "--selector", f"pod:;metadata.name={one}")
    assert orjson.loads(selected.stdout) == [target for target in default if target["__meta_kubernetes_pod_name"] == one]
    assert run(*on(cluster), "--selector", "pod:nobody=has-it").stdout == "[]\n"


def test_a_file_says_the_same_as_flags(cluster: SyntheticProcess, tmp_path: Path) -> None:
    """`--sd-config` takes a `kubernetes_sd_config` mapping."""
    file = tmp_path / "sd.yml"
    file.write_text(f"role: endpointslices\napi_server: {cluster.url}\nattach_metadata: {{node: true}}\n")
    done = run("targets", "--sd-config", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == run(*on(cluster, "endpointslice"), "--attach-metadata", "node").stdout


def test_a_demo_needs_no_cluster() -> None:
    """`--demo` brings its own."""
    done = run("targets", "--demo", "--role", "pod", "--pods", "7", "--namespace", "default")
    assert (done.returncode, done.stderr) == (0, "")
    assert {target["__meta_kubernetes_namespace"] for target in orjson.loads(done.stdout)} == {"default"}


def test_logs_go_to_standard_error(cluster: SyntheticProcess) -> None:
    """With -v they tell what happens; the array stays what it is."""
    done = run(*on(cluster, "node"), "-v")
    assert "synced job targets" in done.stderr
    assert done.stdout == run(*on(cluster, "node")).stdout


# ---- watching ----


def test_watch_goes_on_with_a_line_per_change() -> None:
    """Added, updated with the old labels, removed; each line comes at once; Ctrl-C then is success."""
    with SyntheticProcess(objects={"pods": [object_of("a")]}) as server, started(*on(server), "--watch") as process:
        assert process.stdout is not None
        array = array_of(process.stdout)
        assert [target["__meta_kubernetes_pod_name"] for target in array] == ["a"]
        server.put("pods", object_of("b"))
        added = orjson.loads(process.stdout.readline())
        assert (added["change"], added["labels"]["__meta_kubernetes_pod_name"]) == ("added", "b")
        assert set(added) == {"change", "labels"}
        server.put("pods", object_of("a", port=81))
        updated = orjson.loads(process.stdout.readline())
        assert (updated["change"], updated["labels"]["__address__"]) == ("updated", "127.0.0.9:81")
        assert updated["old"] == array[0]
        server.delete("pods", "default/b")
        assert orjson.loads(process.stdout.readline()) == {"change": "removed", "labels": added["labels"]}
        assert end(process, signal.SIGINT) == (0, "")


def test_a_watching_demo_changes() -> None:
    """Its changes come by themselves."""
    with started("targets", "--demo", "--role", "pod", "--pods", "5", "--watch") as process:
        assert process.stdout is not None
        array_of(process.stdout)
        assert orjson.loads(process.stdout.readline())["change"] in ("added", "updated", "removed")
        assert end(process, signal.SIGTERM) == (0, "")


def test_the_end_of_an_outage_is_told() -> None:
    """Whoever has read of the trouble reads that it is over, without -v; nothing else is said."""
    with SyntheticProcess(objects={"pods": [object_of("a")]}) as server, started(*on(server), "--watch") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        array_of(process.stdout)
        with fault(server, path=PODS, status=500):
            server.control("watches", ending="close")
            assert b" WARNING cannot watch " in process.stderr.readline()
        server.put("pods", object_of("b"))
        assert process.stderr.readline().endswith(f" INFO watching {PODS} again\n".encode())
        assert end(process, signal.SIGINT) == (0, "")


def test_a_trouble_that_is_overcome_is_told_once_it_is(cluster: SyntheticProcess) -> None:
    """The log holds it back only as long as it may be the reason of an end."""
    with fault(cluster, path=PODS, status=500, count=1):
        done = run(*on(cluster))
    assert done.returncode == 0
    assert f" WARNING cannot list {PODS}: status code 500" in done.stderr


def test_tls_on_a_plain_port_fails_fast(cluster: SyntheticProcess) -> None:
    """The synthetic server hangs up on who greets it so; nobody waits for an answer."""
    with socket.create_connection(("127.0.0.1", int(cluster.url.rpartition(":")[2])), timeout=10) as client:
        client.sendall(b"\x16\x03\x01\x02\x00\x01")
        assert client.recv(1) == b""


def test_a_reader_that_went_away_ends_a_watch(cluster: SyntheticProcess) -> None:
    """Without a word, and without waiting for a change."""
    with started(*on(cluster), "--watch") as process:
        assert process.stdout is not None
        array_of(process.stdout)
        process.stdout.close()
        assert process.wait(10) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_reader_that_does_not_want_all_is_no_failure(cluster: SyntheticProcess) -> None:
    """As with `| head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    with started(*on(cluster), stdout=writing) as process:
        os.close(writing)
        assert process.communicate(timeout=10)[1] == b""
        assert process.returncode == 0


def test_what_cannot_be_written_is_told(cluster: SyntheticProcess) -> None:
    """A full disk, or no standard output at all, is a failure with a message."""
    with Path("/dev/full").open("wb") as full, started(*on(cluster), stdout=full) as process:
        errors = process.communicate(timeout=10)[1]
        assert process.returncode == 1
        assert b"error: cannot write to standard output: No space left on device\n" in errors
    line = ["sh", "-c", '"$@" >&-', "sh", *command(*on(cluster))]
    done = subprocess.run(line, stderr=subprocess.PIPE, env=ENVIRON, timeout=10, check=False)
    assert (done.returncode, done.stderr) == (1, b"fastdisco: error: standard output is closed\n")


async def test_a_slow_reader_gets_the_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes that it missed come as removed and added, so that the lines still add up."""
    from fastdisco.changes import Change
    from fastdisco.cli import targets

    one, two, three = ({"__address__": text} for text in ("one", "two", "three"))

    class Reader:
        def __init__(self) -> None:
            self.left = [
                Change("updated", 2, Hashed(two), Hashed(one)),
                Change("snapshot", 9, works=(Hashed(two), Hashed(three), Hashed(three))),
                Change("removed", 10, Hashed(three)),
            ]

        def __aiter__(self) -> Reader:
            return self

        async def __anext__(self) -> Change:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop(0)

    class Lines:
        def __init__(self) -> None:
            self.lines: list[Any] = []

        async def write(self, data: bytes) -> None:
            self.lines.append(orjson.loads(data))

    lines = Lines()
    await targets._follow(lines, Reader(), (Hashed(one), Hashed(one)))  # type: ignore[arg-type]
    assert lines.lines == [
        {"change": "updated", "labels": two, "old": one},
        {"change": "removed", "labels": one},
        {"change": "added", "labels": three},
        {"change": "added", "labels": three},
        {"change": "removed", "labels": three},
    ]


class Hashed(dict[str, str]):
    """As labels are: equal by content, and hashable."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


async def test_output_that_is_stuck_holds_nothing_up() -> None:
    """A write to a full pipe waits alone, can be given up, and is noticed to be closed."""
    reading, writing = os.pipe()
    output = Output(writing)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await output.write(bytes(1 << 20))
    closed = asyncio.create_task(output.closed())
    await asyncio.sleep(0)
    assert not closed.done()
    os.close(reading)
    await closed
    with pytest.raises(BrokenPipeError):
        await output.write(b"more")


# ---- failures ----


@contextmanager
def nobody() -> Iterator[str]:
    """A URL where nobody listens, and nobody else will meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


def failed(done: subprocess.CompletedProcess[str]) -> str:
    """Of a failed command: its last words, which are all; nothing was printed."""
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("fastdisco targets: error: ")
    return last


def test_a_server_that_cannot_be_reached_is_told_once() -> None:
    """What cannot be reached, and why, and how long it was tried; all of it once, in one line."""
    with nobody() as url:
        done = run("targets", "--role", "pod", "--api-server", url, "--timeout", "0.3")
    last = failed(done)
    assert "no first sync within 0.3 s" in last
    assert f" {PODS}: cannot connect to {url[7:]}" in last
    assert done.stderr == f"{last}\n"
    done = run("targets", "--role", "pod", "--api-server", url, "--timeout", "0.3", "-v")
    assert f"WARNING cannot list {PODS}: cannot connect to {url[7:]}" in done.stderr


async def test_three_attempts_to_connect_are_enough_unless_a_timeout_is_given() -> None:
    """Most likely the URL is wrong; who expects the server to come says how long."""
    timings = Timings(first_backoff=0.1, longest_backoff=0.1)
    with nobody() as url:
        config = fastdisco.KubernetesSDConfig(role="pod", api_server=url)
        async with fastdisco.Discovery(timings=timings) as discovery, asyncio.timeout(10):
            job = discovery.watch("job", config)
            with pytest.raises(first_sync.NoTargets, match=rf"after 3 attempts .*: {PODS}: cannot connect"):
                await first_sync.first_sync(discovery, job, "pod", None)
            assert int(discovery.metrics.requests["error"]) <= 4
            with pytest.raises(first_sync.NoTargets, match=r"no first sync within 0\.6 s"):
                await first_sync.first_sync(discovery, job, "pod", 0.6)


async def test_waiting_is_never_silent(
    cluster: SyntheticProcess, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also with `--timeout 0`, which waits for ever, whatever the server says."""
    monkeypatch.setattr(first_sync, "_TELL", 0.1)
    with fault(cluster, path=PODS, hang=True):
        async with fastdisco.Discovery() as discovery:
            job = discovery.watch("job", fastdisco.KubernetesSDConfig(role="pod", api_server=cluster.url))
            waiting = asyncio.create_task(first_sync.first_sync(discovery, job, "pod", 0))
            async with asyncio.timeout(10):
                while "still waiting" not in caplog.text:  # noqa: ASYNC110  a log has no event
                    await asyncio.sleep(0.01)
            assert f"{PODS} (listing): no answer so far" in caplog.text
            assert not waiting.done()
            waiting.cancel()
            await asyncio.wait([waiting])


def test_a_wrong_token_is_told_at_once(tmp_path: Path) -> None:
    """No further attempt would help."""
    token = tmp_path / "token"
    token.write_text("wrong")
    with SyntheticProcess(pods=1, token="right") as server:
        assert f"error: {PODS}: status code 401" in failed(run(*on(server), "--bearer-token-file", str(token)))
        token.write_text("right\n")
        assert run(*on(server), "--bearer-token-file", str(token)).returncode == 0
        assert f"cannot read {tmp_path}/none" in failed(run(*on(server), "--bearer-token-file", f"{tmp_path}/none"))


def test_a_refused_role_is_told_at_once(cluster: SyntheticProcess) -> None:
    """Nothing is known of the targets, so nothing is printed: no array is not an empty one."""
    with fault(cluster, path=PODS, status=403, message='pods is forbidden: User "x" cannot list'):
        last = failed(run(*on(cluster)))
    assert f'the server refused {PODS}: status code 403: pods is forbidden: User "x" cannot list' in last


def test_what_is_refused_besides_costs_only_itself(cluster: SyntheticProcess) -> None:
    """What there is is printed: other namespaces, and targets without what was to be attached; the exit code tells."""
    default = run(*on(cluster), "--namespace", "default").stdout
    with fault(cluster, path="/api/v1/namespaces/kube-system/", status=403):
        done = run(*on(cluster), "--namespace", "default", "--namespace", "kube-system")
    assert (done.returncode, done.stdout) == (1, default)
    reason = "the server refused /api/v1/namespaces/kube-system/pods: status code 403: refused by a fault"
    assert done.stderr == f"fastdisco targets: error: {reason}\n"
    every = run(*on(cluster)).stdout
    with fault(cluster, path="/api/v1/namespaces", status=403):
        done = run(*on(cluster), "--attach-metadata", "namespace")
    assert (done.returncode, done.stdout) == (1, every)


def test_a_bad_selector_is_told_in_the_words_of_the_server(cluster: SyntheticProcess) -> None:
    """Status code 400 will not become better."""
    assert "status code 400: " in failed(run(*on(cluster), "--selector", "pod:a in b"))


def test_ctrl_c_before_the_first_sync_is_an_interruption(cluster: SyntheticProcess) -> None:
    """Exit code 130, and for SIGTERM 143; no traceback."""
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        with fault(cluster, path=PODS, hang=True), started(*on(cluster), "-v") as process:
            assert process.stderr is not None
            while b"started watching" not in process.stderr.readline():
                pass
            returncode, errors = end(process, number)
            assert (returncode, "Traceback" in errors) == (code, False)


# ---- usage ----


@pytest.mark.parametrize(("flags", "message"), [
    ((), "one of the arguments --role and --sd-config is required"),
    (("--role", "pods"), "argument --role: must be one of node, pod, service, endpoints, endpointslice, ingress, not 'pods'"),
    (("--role", "pod"), "argument --api-server: missing, and this is no pod: KUBERNETES_SERVICE_HOST and"),
    (("--role", "pod", "--api-server", "ftp://x"), "argument --api-server: must be an http or https URL without query"),
    (("--role", "pod", "--namespace", "a/b"), "argument --namespace: 'a/b' is no name of a namespace"),
    (("--role", "pod", "--selector", "pod"), "argument --selector: must be of the form ROLE:LABEL[;FIELD], not 'pod'"),
    (("--role", "pod", "--selector", "job:a=b"), "argument --selector: must be one of node, pod, service, endpoints,"),
    (("--role", "pod", "--attach-metadata", "x"), "argument --attach-metadata: must be of node, namespace, deployment, job, cronjob, not"),
    (("--role", "pod", "--dialect", "other"), "argument --dialect: invalid choice: 'other'"),
    (("--role", "pod", "--timeout", "-1"), "argument --timeout: must be seconds, or a duration such as 30s or 5m, not '-1'"),
    (("--role", "pod", "--timeout", "soon"), "argument --timeout: must be seconds, or a duration such as 30s or 5m, not 'soon'"),
    (("--role", "pod", "--own-namespace"), "argument --own-namespace: cannot read "),
    (("--role", "pod", "--pods", "5"), "argument --pods: not allowed without argument --demo"),
    (("--sd-config", "x", "--own-namespace"), "argument --own-namespace: not allowed with argument --sd-config"),
    (("--sd-config", "x", "--demo"), "argument --demo: not allowed with argument --sd-config"),
    (("--role", "pod", "--demo", "--ca-file", "x"), "argument --ca-file: not allowed with argument --demo"),
])  # fmt: skip
def test_wrong_flags_are_named(
    flags: tuple[str, ...], message: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2, the flag and the reason in one line, and where to read more; nothing printed."""
    from fastdisco.cli import main

    for name in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    try:
        code: object = main(["targets", *flags])
    except SystemExit as ending:
        code = ending.code
    printed = capfd.readouterr()
    assert (code, printed.out) == (2, "")
    first, *more = printed.err.splitlines()
    assert first.startswith(f"fastdisco targets: error: {message}")
    assert more in ([], ["see fastdisco targets --help"])


@pytest.mark.parametrize("text", ["30s", "-1", "inf", "nan", "many", ""])
def test_a_rate_is_a_plain_number(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A duration is none."""
    from fastdisco.cli import main

    with pytest.raises(SystemExit) as ending:
        main(["run", "--demo", f"--rate={text}"])
    assert ending.value.code == 2
    message = f"argument --rate: must be a number of changes per second, such as 20 or 0.5, not {text!r}"
    assert capfd.readouterr().err == f"fastdisco run: error: {message}\nsee fastdisco run --help\n"


def test_a_selector_without_effect_is_told(cluster: SyntheticProcess) -> None:
    """A role reads its own kind, and what its targets are joined with, or show."""
    done = run(*on(cluster, "service"), "--selector", "pod:app=x", "--selector", "service:app=none")
    assert (done.returncode, done.stdout) == (0, "[]\n")
    assert done.stderr.endswith(" WARNING the selector for role pod has no effect: of role service only these are read: service\n")
    assert run(*on(cluster), "--selector", "node:a=b", "--attach-metadata", "node").stderr == ""


def test_a_configuration_comes_from_standard_input(cluster: SyntheticProcess) -> None:
    """`-` reads it; a mistake is told with its key."""
    text = f"{{role: node, api_server: '{cluster.url}'}}"
    done = run("targets", "--sd-config", "-", text=text)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", run(*on(cluster, "node")).stdout)
    for text, message in (("role: pods", "role: must be one of "), ("[", "no valid YAML: "), ("role: pod", "api_server: missing")):
        done = run("targets", "--sd-config", "-", text=text)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"fastdisco targets: error: standard input: {message}")


@pytest.mark.parametrize(("text", "message"), [
    ("role: pod\nnamespaces: {names: [a, {}]}", "namespaces.names[1]: must be a string, not a mapping"),
    ("role: pod\napi_sever: x", "api_sever: unknown key"),
    ("role: [pod", "no valid YAML: "),
    ("- role: pod", "must be a mapping, not a list"),
    ("role: pod", "api_server: missing, and this is no pod"),
])  # fmt: skip
def test_a_mistake_in_a_file_is_told_with_file_and_key(text: str, message: str, tmp_path: Path) -> None:
    """Exit code 2, as for wrong flags."""
    file = tmp_path / "sd.yml"
    file.write_text(text)
    done = run("targets", "--sd-config", str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"fastdisco targets: error: {file}: {message}")


def test_help_and_version() -> None:
    """Help goes to standard output if asked for; a command alone is asked for by exit code 2."""
    assert run("--version").stdout == f"fastdisco {fastdisco.__version__}\n"
    asked = run("--help")
    assert asked.returncode == 0
    assert "fastdisco run --demo" in asked.stdout
    assert "fastdisco explain --config" in asked.stdout
    alone = run()
    assert (alone.returncode, alone.stdout, alone.stderr) == (2, "", asked.stdout)


def test_nobody_has_to_read_the_help() -> None:
    """As with `fastdisco --help | true`."""
    reading, writing = os.pipe()
    os.close(reading)
    with started("--help", stdout=writing) as process:
        os.close(writing)
        assert process.communicate(timeout=10)[1] == b""
        assert process.returncode == 0


# ---- run ----


def test_run_discovers_the_demo_and_serves_it() -> None:
    """Plain lines where there is no terminal; targets of all roles; SIGTERM and Ctrl-C are success and leave nothing behind."""
    for number in (signal.SIGTERM, signal.SIGINT):
        with started("run", "--demo", "--pods", "20", "--web.listen-address", "127.0.0.1:0") as process:
            assert process.stdout is not None
            assert process.stdout.readline().decode().endswith(": making a synthetic cluster of 20 pods…\n")
            lines = [process.stdout.readline().decode()]
            while " 6 jobs synced" not in lines[-1]:
                lines.append(process.stdout.readline().decode())
                assert lines[-1], process.communicate()
            server = lines[0].partition("pods, ")[2].partition(";")[0]
            page = lines[1].split()[-1]
            with urlopen(page + "api/v1/targets") as answer:
                active = orjson.loads(answer.read())["data"]["activeTargets"]
            assert {target["scrapePool"] for target in active} == {"node", "pod", "service", "endpoints", "endpointslice", "ingress"}
            pod = next(target["discoveredLabels"] for target in active if target["scrapePool"] == "pod")
            assert any(name.startswith("__meta_kubernetes_node_label_") for name in pod)
            assert any(name.startswith("__meta_kubernetes_namespace_label_") for name in pod)
            with urlopen(page + "metrics") as answer:
                assert 'fastdisco_discovery_kubernetes_subscribers{role="pod",status="working"} 1.0' in answer.read().decode()
            assert end(process, number) == (0, "")
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", int(server.rpartition(":")[2])))


def test_run_refreshes_a_table_on_a_terminal() -> None:
    """On a screen of its own, with the last change of each job, drawn anew when the size changes; Ctrl-C ends it, the last table stays."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(master, (24, 120))
    flags = ("run", "--demo", "--pods", "20", "--rate", "50", "--web.listen-address", "127.0.0.1:0")
    with started(*flags, stdout=slave, stderr=slave) as process:
        os.close(slave)
        seen = b""
        while seen.count(b"\x1b[H") < 3 or b"~ " not in seen:
            seen += os.read(master, 4096)
        assert seen.index(b"\x1b[?1049h") < seen.index(b"\x1b[H")
        assert re.search(rb"s ago; [\d,]+ events/s; \d+ MB", seen)
        termios.tcsetwinsize(master, (24, 60))
        process.send_signal(signal.SIGWINCH)
        while not re.search(rb"\n[\d,]+ events/s; \d+ MB, \d+% of a CPU", seen):
            seen += os.read(master, 4096)
        process.send_signal(signal.SIGINT)
        while b"\x1b[?1049l" not in seen or not seen.endswith(b"of a CPU\r\n"):
            seen += os.read(master, 4096)
        assert process.wait(10) == 0
    os.close(master)
    assert b"endpointslice" in seen.partition(b"\x1b[?1049l")[2]


def test_a_screen_is_never_wider_or_higher_than_the_terminal() -> None:
    """The table comes first, then the head, then the last notes."""
    from fastdisco.cli.display import screen, wrapped

    head, table, notes = ["head"], ["a" * 30, "b"], ["old", "new"]

    def shown(columns: int, rows: int) -> list[str]:
        text = screen(head, table, notes, columns, rows)
        assert text.startswith("\x1b[H")
        assert text.endswith("\x1b[K\x1b[J")
        return text.removeprefix("\x1b[H").removesuffix("\x1b[J").replace("\x1b[K", "").split("\n")

    assert shown(80, 24) == ["head", "a" * 30, "b", "", "old", "new"]
    assert shown(20, 5) == ["head", "a" * 19, "b", "", "new"]
    assert shown(80, 4) == ["head", "a" * 30, "b"]
    assert shown(80, 2) == table
    assert shown(80, 1) == table[:1]
    assert wrapped("one two", "three", 14) == ["one two; three"]
    assert wrapped("one two", "three", 13) == ["one two", "three"]
    assert wrapped("one two", "three", 5) == ["one", "two", "three"]


def test_run_tells_of_a_port_in_use() -> None:
    """Before anything is started."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run("run", "--demo", "--web.listen-address", address)
    assert (done.returncode, done.stdout) == (1, "")
    reason = "Address already in use (choose another with --web.listen-address)"
    assert done.stderr == f"fastdisco run: error: cannot listen on {address}: {reason}\n"


def test_run_needs_to_know_what_to_discover() -> None:
    """A configuration or a demo, and not both; `--once` also where to write."""
    for flags, reason in (
        ((), "one of the arguments --config and --demo is required"),
        (("--demo", "--config", "x.yml"), "argument --config: not allowed with argument --demo"),
        (("--config", "x.yml", "--once"), "argument --once: writes files, and so needs --file-sd.directory"),
    ):
        done = run("run", *flags)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"fastdisco run: error: {reason}\nsee fastdisco run --help\n"


def test_a_closed_standard_input_is_no_trouble(golden: str) -> None:
    """A supervisor may start a program without one; its descriptor must not become a socket's."""
    command = f'exec "$0" -m fastdisco targets --role node --api-server {golden} <&-'
    done = subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert orjson.loads(done.stdout)
