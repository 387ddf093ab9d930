"""fastdisco-bench: its flags, each stage at a tiny size, floors and ratios, and that a wrong answer is never reported as a time."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from bench.__main__ import main
from bench.attempts import attempt, median, peers, registered
from bench.cases import ENGINE, FIGURES, UNITS, Below, Case, Times, ratio_of
from bench.holds import LoopHolds
from bench.jobs import CLOSED, Job
from bench.peers import PEERS, peer
from bench.peers.program import Peer
from bench.peers.samples import Samples
from bench.peers.vmagent import Vmagent
from bench.plan import STATED, Plan, Sizes
from bench.report import as_json, lines, tables
from bench.runs import clients, decode, dialects, engine, roles, turnovers
from bench.runs.child import MissingError, RunError, answer, run
from bench.stages import STAGES, growth
from fastdisco.config import DIALECTS
from fastdisco.synthetic import SyntheticProcess

TINY = Sizes(
    sync=40, events=40, delay=40, jobs=3, pods_of_jobs=40, pods_of_jobs_alone=60, services=2, endpoints=60, decode=20, clients=20,
    growth=20, roles=40, turnovers=20, burst=300, burst_of_jobs=90, rate=100, seconds=0.3, marks=2, repeats=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Any:
    """Forty pods of three applications."""
    with SyntheticProcess(pods=40, apps=3, oddities=0.0) as running:
        yield running


def results(ours: dict[str, float], **rivals: dict[str, float]) -> dict[str, dict[str, float]]:
    return {ENGINE: ours, **rivals}


@pytest.mark.parametrize(
    ("floor", "given", "met"),
    [
        (Below("p99", 50), results({"p99": 49.9}), True),
        (Below("p99", 50), results({"p99": 50.0}), False),
        (Below("p99", 50), results({"p50": 1.0}), None),
        (Times("wall", 12, "vmagent"), results({"wall": 2.0}, vmagent={"wall": 24.0}), True),
        (Times("wall", 12, "vmagent"), results({"wall": 2.0}, vmagent={"wall": 23.0}), False),
        (Times("wall", 12, "vmagent"), results({"wall": 2.0}, prometheus={"wall": 99.0}), None),
        (Times("wall", 12), results({"wall": 2.0}, vmagent={"wall": 23.0}, prometheus={"wall": 99.0}), False),
        (Times("wall", 12), results({"wall": 2.0}, vmagent={"cpu": 1.0}, prometheus={"wall": 99.0}), True),
        (Times("events", 15, "vmagent"), results({"events": 150.0}, vmagent={"events": 10.0}), True),
        (Times("events", 15, "vmagent"), results({"events": 149.0}, vmagent={"events": 10.0}), False),
        (Times("wall", 12), results({"wall": 2.0}), None),
        (Times("wall", 12), {"vmagent": {"wall": 2.0}}, None),
    ],
)
def test_a_floor_is_met_missed_or_not_compared(floor: Below | Times, given: dict[str, dict[str, float]], met: bool | None) -> None:
    """Of times and memory less is better, of rates more; without a name every rival has to be outdone; what is missing is no success."""
    assert floor.met(given) is met


def test_a_ratio_says_how_many_times_better_the_engine_is() -> None:
    """Below 1 it is worse."""
    given = results({"wall": 2.0, "events": 10.0}, other={"wall": 1.0, "events": 40.0, "peak": 3.0})
    assert [ratio_of(figure, given, "other") for figure in ("wall", "events", "peak")] == [0.5, 0.25, None]


def test_floors_hold_for_the_sizes_that_they_were_stated_for_alone() -> None:
    """A small or another cluster is measured without them."""
    assert Plan(STATED).stated("sync", "jobs")
    assert not Plan(Sizes.quick()).stated("sync")
    assert not Plan(Sizes.of_pods(100)).stated("jobs", "pods_of_jobs")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--stages", "sync,nap"], "no stage is called 'nap'; there are sync, events"),
        (["--stages", ","], "no stage is named"),
        (["--peer", "nagios"], "no peer is called 'nagios'; there are vmagent, prometheus"),
        (["--peer", "vmagent=/nowhere/vmagent"], "/nowhere/vmagent is no program"),
        (["--pods", "0"], "must be a whole number above 0, not '0'"),
        (["--jobs", "many"], "must be a whole number above 0, not 'many'"),
        (["--encoding", "protobuf"], "invalid choice: 'protobuf'"),
        (["--json", "/nowhere/at/all.json"], "there is no directory /nowhere/at"),
        (["--stages", "sync,endpoints", "--jobs", "3"], "--jobs: only the stage jobs uses it"),
        (["--stages", "jobs", "--services", "3"], "--services: only the stage endpoints uses it"),
        (["--slow"], "unrecognized arguments: --slow"),
    ],
)
def test_wrong_usage_is_told_before_anything_runs(flags: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, and which flag is wrong and why."""
    with pytest.raises(SystemExit) as ended:
        main(flags)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_the_help_says_what_holds_when(capsys: pytest.CaptureFixture[str]) -> None:
    """How long --quick takes with peers, and where --pods is another number."""
    with pytest.raises(SystemExit):
        main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    for words in ("a minute on two cores, with both peers about four", "N/4 to 2N in `growth`", "no second, larger case in `jobs`"):
        assert words in said


def test_the_units_are_those_of_the_readme() -> None:
    """Each figure that `--json` keeps, with its unit, has a row there."""
    text = (Path(__file__).parents[1] / "bench" / "README.md").read_text().partition("| figure | unit |")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| `")]
    assert {name.strip("` "): row[2].strip() for row in rows for name in row[1].split(",")} == UNITS


def test_a_peer_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither built nor on PATH: the message says how to name it."""
    monkeypatch.setattr("bench.peers.program.CACHE", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="give prometheus=PATH"):
        peer("prometheus")
    program = tmp_path / "other"
    script(program, "echo prometheus, version 3")
    assert peer(f"prometheus={program}").path == program
    assert peer(f"prometheus={program}").version == "prometheus, version 3"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#!/bin/sh\necho first; echo what is $1 >&2; exit 3\n", r"ended with status 3:\nfirst\nwhat is -version$"),
        ("#!/bin/sh\nkill -9 $$\n", r"ended with signal 9 and wrote nothing$"),
        ("", r"cannot be started: Exec format error$"),
    ],
)
def test_a_program_that_is_no_peer_is_told_before_anything_runs(tmp_path: Path, text: str, words: str) -> None:
    """It is asked for its version once; what it wrote is told as text."""
    program = tmp_path / "vmagent"
    program.write_text(text)
    program.chmod(0o755)
    with pytest.raises(ValueError, match=words):
        peer(f"vmagent={program}")


def script(path: Path, text: str) -> None:
    """A program that does so for `-version`, or what is asked first."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


SHAPE = {"stage", "case", "results", "ratios", "floors", "failures", "absent"}


@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_measures_and_checks(stage: str) -> None:
    """Every case has figures of the engine, or of readers alone, all of them known and none of them negative; nothing fails."""
    said: list[str] = []
    cases = list(STAGES[stage](Plan(TINY, say=said.append)))
    assert said
    assert {case.stage for case in cases} == {stage}
    assert len({case.name for case in cases}) == len(cases)
    for case in cases:
        assert case.failures == {}
        for figures in case.results.values():
            shown = set(figures) & set(FIGURES)
            assert set(figures) <= set(UNITS)
            assert shown
            assert all(figures[name] >= 0 for name in shown - {"per_pod", "bytes_per_pod", "time_spread", "memory_spread"})
        assert ENGINE in case.results or set(case.results) == {"aiohttp", "protocol"}
        assert set(as_json(case)) == SHAPE


def test_the_command_prints_plain_lines_and_keeps_everything_as_json(tmp_path: Path) -> None:
    """Elsewhere than on a terminal: a line a figure on standard output, what it does on standard error."""
    file = tmp_path / "figures.json"
    command = [sys.executable, "-m", "bench", "--stages", "decode,roles", "--pods", "30", "--quick", "--seed", "7", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "decode: 30 pods: throughput: fastdisco " in done.stdout
    assert "\x1b" not in done.stdout
    assert "starting a cluster of 30 pods" in done.stderr
    kept = json.loads(file.read_text())
    assert set(kept) == {"began", "seconds", "machine", "versions", "peers", "seed", "encoding", "units", "sizes", "cases"}
    assert set(kept["machine"]) == {"cpu", "cores", "memory_mb", "kernel", "python"}
    assert kept["versions"]["uvloop"]
    assert (kept["seed"], kept["encoding"], kept["sizes"]["decode"]) == (7, "json", 30)
    assert (kept["units"]["wall"], kept["units"]["throughput"], kept["units"]["rendered"]) == ("s", "MB/s", "1")
    assert [case["stage"] for case in kept["cases"]] == ["decode", "decode", "roles"]
    assert all(set(case) == SHAPE for case in kept["cases"])
    assert set(kept["cases"][0]["ratios"]) == set(kept["cases"][0]["results"]) - {ENGINE}


def a_case() -> Case:
    return Case(
        "sync",
        "3 pods",
        results({"wall": 2.0, "peak": 150.0}, vmagent={"wall": 25.0, "peak": 1000.0}),
        (Times("wall", 12), Times("peak", 8), Below("peak", 200)),
        {"prometheus": "it ended"},
        {"lightkube": "lightkube is not installed"},
    )


def test_a_missed_floor_is_said_plainly() -> None:
    """So are who failed, and who is not installed."""
    assert list(lines(a_case())) == [
        "sync: 3 pods: wall: fastdisco 2.00 s; vmagent 25.00 s (12 ×); floor 12 × the best: met",
        "sync: 3 pods: peak memory: fastdisco 150 MB; vmagent 1,000 MB (6.7 ×); floor 8 × the best: MISSED; floor below 200 MB: met",
        "sync: 3 pods: prometheus: FAILED: it ended",
        "sync: 3 pods: lightkube: lightkube is not installed",
    ]


def printed(width: int, *cases: Case) -> list[str]:
    """The lines that a terminal so wide shows of the cases of a stage."""
    console = Console(file=io.StringIO(), width=width)
    for one in tables(cases, console):
        console.print(one)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def test_the_table_says_the_same() -> None:
    """On a terminal: the case above its rows, a column for each of those who have figures there, and the rest below."""
    other = Case("sync", "bytes [thrown] away", results({}, aiohttp={"wall": 1.0}), (), {"vmagent": "vmagent ended:\nwhy [] so"})
    assert [line.split() for line in printed(60, a_case(), other)] == [
        line.split()
        for line in """\
sync
3 pods
                 fastdisco             vmagent
  wall              2.00 s      25.00 s (12 ×)
  peak memory       150 MB    1,000 MB (6.7 ×)
  floor of wall: 12 × the best: met
  floor of peak memory: 8 × the best: MISSED
  floor of peak memory: below 200 MB: met
  prometheus: FAILED: it ended
  lightkube: lightkube is not installed

bytes [thrown] away
            aiohttp
  wall       1.00 s
  vmagent: FAILED: vmagent ended:
    why [] so
""".split("\n")
    ]


def test_figures_are_never_broken() -> None:
    """At 80 columns the widest delays of both peers have room; where a table has none the case is told in plain lines."""
    wide = Case("events", "pods", results({"p50": 0.39, "collection": 1.0}, vmagent={"p50": 1114.2}, prometheus={"p50": 16166.0}))
    assert any("0.39 ms    1,114.2 ms (2,857 ×)    16,166.0 ms (41,451 ×)" in line for line in printed(80, wide))
    assert printed(60, wide)[1].startswith("events: pods: delay p50: fastdisco 0.39 ms; vmagent")


def test_who_is_not_installed_has_not_failed() -> None:
    """A run whose packages are missing is noted apart from one that went wrong."""
    case = Case("clients", "some pods")

    def missing() -> dict[str, float]:
        raise MissingError("lightkube is not installed")

    def wrong() -> dict[str, float]:
        raise RunError("wrong answer")

    assert attempt(Plan(), case, "lightkube", missing) is None
    assert attempt(Plan(), case, "kubernetes", wrong) is None
    assert (case.absent, case.failures) == ({"lightkube": "lightkube is not installed"}, {"kubernetes": "wrong answer"})


def test_the_median_run_counts_with_the_longest_hold_of_all() -> None:
    """A hold that one run of three has is not hidden by the other two."""
    runs = iter([{"wall": 3.0, "hold": 1.0}, {"wall": 1.0, "hold": 9.0}, {"wall": 2.0, "hold": 2.0}])
    assert median(Plan(Sizes(repeats=3)), lambda: next(runs)) == {"wall": 2.0, "hold": 9.0}


def test_a_run_that_fails_tells_its_last_words() -> None:
    """What a child process says is what the report shows."""
    with pytest.raises(RunError, match="Cannot connect"):
        run("readers", url="http://127.0.0.1:1", reader="aiohttp")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the import that failed in the child to the report of its parent."""

    def measure() -> dict[str, float]:
        import nowhere_to_be_found  # type: ignore[import-not-found]

        return {"wall": nowhere_to_be_found.wall}

    monkeypatch.setattr("sys.stdin", io.StringIO("{}"))
    errors = io.StringIO()
    monkeypatch.setattr("sys.stderr", errors)
    with pytest.raises(SystemExit) as ended:
        answer(measure)
    assert errors.getvalue() == "nowhere_to_be_found is not installed\n"
    ended_so = subprocess.CompletedProcess([], ended.value.code, b"", errors.getvalue().encode())  # type: ignore[arg-type]
    monkeypatch.setattr("subprocess.run", lambda *_, **__: ended_so)
    with pytest.raises(MissingError, match="nowhere_to_be_found is not installed"):
        run("clients")


async def test_the_engine_is_believed_only_if_its_targets_are_the_server_s(
    server: SyntheticProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number and the contents; of all targets and of those that a job keeps."""
    app = next(iter(server.control("apps")))
    jobs: list[dict[str, Any]] = [{"name": "all"}, {"name": "one", "app": app}]
    figures = await engine.measure(began=time.monotonic(), url=server.url, jobs=jobs)
    assert figures["wall"] > 0
    monkeypatch.setattr("fastdisco.synthetic.digests.digest", lambda _: "0" * 16)
    with pytest.raises(RunError, match="wrong answer: job all has"):
        await engine.measure(began=time.monotonic(), url=server.url, jobs=jobs)


async def test_a_rule_that_keeps_too_little_is_a_wrong_answer(server: SyntheticProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by the number of targets alone."""
    rules = Job.rules
    monkeypatch.setattr(Job, "rules", lambda job: [{"action": "drop", "source_labels": ["__address__"], "regex": ".*:15090"}, *rules(job)])
    with pytest.raises(RunError, match="'targets': 80"):
        await engine.measure(began=time.monotonic(), url=server.url, jobs=[{"name": "all"}])


async def test_an_event_without_its_targets_is_a_wrong_answer(server: SyntheticProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change at a steady rate has to be read among the job's changes."""
    read = engine._read_delays

    async def forgetful(changes: Any, delays: list[float]) -> None:
        await anext(changes)
        await read(changes, delays)

    monkeypatch.setattr(engine, "_read_delays", forgetful)
    monkeypatch.setattr(engine, "_QUIET", 0.1)
    with pytest.raises(RunError, match="changed targets of"):
        await engine.measure(began=time.monotonic(), url=server.url, jobs=[{"name": "all"}], churn={"rate": 100, "seconds": 0.2})


@pytest.mark.parametrize("decoder", ["fastdisco", "json"])
def test_a_decoder_that_loses_a_pod_is_not_timed(decoder: str, server: SyntheticProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names are compared with those that the standard library reads."""
    make = decode.DECODERS[decoder]
    shorter = server.request("GET", "/api/v1/pods?limit=39")[1]
    assert decode.measure(began=0.0, url=server.url, decoder=decoder)["throughput"] > 0
    monkeypatch.setitem(decode.DECODERS, decoder, lambda _: make(shorter))
    with pytest.raises(RunError, match="wrong answer"):
        decode.measure(began=0.0, url=server.url, decoder=decoder)


async def test_a_client_that_loses_a_pod_is_not_timed(server: SyntheticProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names are compared with those of a list of the server's."""

    async def one(_: str) -> tuple[float, list[tuple[str, str]]]:
        return 1.0, [("default", "only")]

    monkeypatch.setitem(clients.CLIENTS, "one", one)
    with pytest.raises(RunError, match="wrong answer: 1 names, not those of the 40 pods"):
        await clients.measure(began=0.0, url=server.url, client="one")


async def test_what_both_dialects_keep_is_checked(server: SyntheticProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """The targets of each job against the server's objects."""
    assert (await dialects.measure(began=time.monotonic(), url=server.url, dialects=DIALECTS))["wall"] > 0
    monkeypatch.setattr(dialects, "_ROLES", ("node",))
    with pytest.raises(RunError, match="wrong answer: targets by job"):
        await dialects.measure(began=time.monotonic(), url=server.url, dialects=DIALECTS)


async def test_roles_and_turnovers_are_checked_too(server: SyntheticProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Targets of each role against the server's objects; those after all turnovers against what it has then."""
    monkeypatch.setattr(roles, "ROLES", ("pod", "node"))
    with pytest.raises(RunError, match="wrong answer: targets by role"):
        await roles.measure(began=time.monotonic(), url=server.url)
    monkeypatch.setattr(turnovers, "digest", lambda _: "0" * 16)
    with pytest.raises(RunError, match="wrong answer: after all turnovers"):
        await turnovers.measure(began=time.monotonic(), url=server.url, times=2)


def test_a_peer_with_other_targets_is_waited_for_in_vain(server: SyntheticProcess) -> None:
    """It is no answer if its own metrics never show what the server's objects give."""

    class Wrong(Vmagent):
        def command(self, folder: Path, port: int) -> list[str]:  # noqa: ARG002
            return ["sleep", "60"]

    job = Job("all")
    with Wrong(Path("/bin/sleep")).run(server.url, [job]) as running:
        with pytest.raises(RunError, match=r"after 0\.2 s still waiting for 120 targets of 1 jobs"):
            registered(Plan(timeout=0.2), running, server, [job])
        running.stop()
        with pytest.raises(RunError, match="vmagent ended with signal 9 and wrote nothing"):
            running.samples()


def test_a_peer_that_fails_is_told_once_a_stage() -> None:
    """Later cases of the stage go on without it; another stage tries again."""
    plan = Plan(peers=[Vmagent(Path("/bin/vmagent")), PEERS["prometheus"](Path("/bin/prometheus"))])
    tried: list[str] = []

    def measure(one: Peer) -> dict[str, float]:
        tried.append(one.name)
        if one.name == "vmagent":
            raise RunError("vmagent ended with status 1:\nno such flag")
        return {"wall": 1.0}

    cases = [Case("sync", "a"), Case("sync", "b"), Case("events", "a")]
    for case in cases:
        peers(plan, case, measure)
    assert tried == ["vmagent", "prometheus", "prometheus", "vmagent", "prometheus"]
    assert [set(case.failures) for case in cases] == [{"vmagent"}, set(), {"vmagent"}]
    assert list(lines(cases[0]))[1].splitlines() == [
        "sync: a: vmagent: FAILED: vmagent ended with status 1:", "    no such flag", "    It is left out of the rest of this stage.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        (STATED, True),
        (Sizes.of_pods(200_000), True),
        (Sizes.of_pods(50_000), False),
        (Sizes.quick(), False),
        (replace(STATED, repeats=1), False),
    ],
)
def test_how_far_sizes_differ_is_told_of_large_ones_alone(sizes: Sizes, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of small ones, and of single runs, it would be the noise of the machine."""

    def best(_: Plan, case: Case, server: Any, __: Any) -> dict[str, float]:
        case.results[ENGINE] = {"wall": 1.0 + server.pods * 1e-5, "steady": 50.0 + server.pods * 1e-3, "hold": 1.0}
        return case.results[ENGINE]

    monkeypatch.setattr(Plan, "server", lambda _, pods: nullcontext(SimpleNamespace(pods=pods)))
    monkeypatch.setattr(growth, "best", best)
    monkeypatch.setattr(growth, "app_near", lambda *_: "a")
    cases = list(growth.measure(Plan(sizes)))
    assert len(cases) == (6 if told else 5)
    assert any("time_spread" in case.results[ENGINE] for case in cases) is told


@pytest.mark.parametrize("job", [Job("a"), Job("b", "endpointslice", app="x", ready=True)])
def test_the_last_rule_sends_every_scrape_to_a_closed_port(job: Job) -> None:
    """A peer must never connect to an address out of synthetic objects."""
    assert job.rules()[-1] == {"target_label": "__address__", "replacement": CLOSED}


_ASKED = """#!{python}
import os, pathlib, socket, sys, time
if "-version" not in sys.argv:
    port = next(flag.rpartition(":")[2] for flag in sys.argv if flag.startswith("-httpListenAddr="))
    asked = socket.create_server(("127.0.0.1", int(port))).accept()
    pathlib.Path("{noted}").write_text(str(os.getpid()))
    time.sleep(600)
"""
"""Notes its process id when it is asked for its metrics, and never answers."""


def test_a_signal_ends_the_peer_too(tmp_path: Path) -> None:
    """Nothing that was started is left running."""
    program, noted = tmp_path / "vmagent", tmp_path / "pid"
    os.mkfifo(noted)
    program.write_text(_ASKED.format(python=sys.executable, noted=noted))
    program.chmod(0o755)
    command = [sys.executable, "-m", "bench", "--stages", "sync", "--pods", "20", "--peer", f"vmagent={program}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        pid = int(noted.read_text())
        assert Path(f"/proc/{pid}").exists()
        running.terminate()
        assert running.wait(30) == 130
    assert not Path(f"/proc/{pid}").exists()


METRICS = {
    "vmagent": """\
vm_promscrape_discovery_kubernetes_subscribers{role="pod",status="pending"} 0
vm_promscrape_discovery_kubernetes_subscribers{role="pod",status="working"} 1
vm_promscrape_discovery_kubernetes_scrape_works{role="pod"} 936
vm_promscrape_discovery_kubernetes_objects_added_total{role="pod"} 2000
vm_promscrape_discovery_kubernetes_objects_updated_total{role="pod"} 30
vm_promscrape_discovery_kubernetes_objects_removed_total{role="pod"} 4
vm_promscrape_scrape_pool_targets{scrape_job="a", status="down"} 930
vm_promscrape_scrape_pool_targets{scrape_job="a", status="up"} 6
""",
    "prometheus": """\
# TYPE prometheus_sd_discovered_targets gauge
prometheus_sd_discovered_targets{config="a",name="scrape"} 6000
prometheus_target_scrape_pool_targets{scrape_job="a"} 936
""",
}


@pytest.mark.parametrize("name", PEERS)
def test_readiness_is_read_from_the_peer_s_own_metrics(name: str) -> None:
    """As recorded from vmagent 1.153 and Prometheus 3.16."""
    one: Peer = PEERS[name](Path(name))
    samples = Samples(METRICS[name])
    assert one.registered(samples, {"a": 936}, 6000)
    assert not one.registered(samples, {"a": 935}, 6000)
    assert not one.registered(samples, {"a": 936, "b": 0}, 6000)
    assert not one.registered(Samples(""), {"a": 936}, 6000)
    assert one.handled(samples) == {"vmagent": 2034, "prometheus": None}[name]


async def test_a_hold_of_the_loop_is_noticed() -> None:
    """As processor time of the loop's thread, so that others on the machine do not count."""
    with LoopHolds() as holds:
        await asyncio.sleep(0.01)
        until = time.thread_time() + 0.03
        while time.thread_time() < until:
            pass
        await asyncio.sleep(0.01)
    assert holds.longest >= 0.03


@pytest.mark.slow
@pytest.mark.peers("vmagent")
@pytest.mark.parametrize("stage", ["sync", "events", "jobs", "endpoints"])
def test_vmagent_goes_through_the_same_stages(stage: str) -> None:
    """On the same server, with figures of its own in each case that it can take part in."""
    cases = list(STAGES[stage](Plan(TINY, [peer("vmagent")], timeout=120)))
    assert [case.failures for case in cases] == [{}] * len(cases)
    assert sum("vmagent" in case.results for case in cases) >= {"sync": 4, "events": 2, "jobs": 2, "endpoints": 1}[stage]


@pytest.mark.slow
@pytest.mark.peers("prometheus")
@pytest.mark.parametrize("stage", ["sync", "jobs"])
def test_prometheus_goes_through_the_same_stages(stage: str) -> None:
    """The same; in those stages in which it does not take minutes."""
    cases = list(STAGES[stage](Plan(TINY, [peer("prometheus")], timeout=120)))
    assert [case.failures for case in cases] == [{}] * len(cases)
    assert sum("prometheus" in case.results for case in cases) >= {"sync": 4, "jobs": 2}[stage]
