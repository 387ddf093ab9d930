"""Relabeling in the heart: what the plain reference gives, whatever is remembered, forgotten or shared."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdisco._core import Symbols
from fastdisco._labels import Labels
from fastdisco._relabel import Relabeling
from fastdisco.relabel_config import RelabelConfig, load_rules
from fastdisco.rule_table import RuleTable

from .heart import Heart, new_pod
from .relabel_reference import final
from .relabel_rig import Pods, pod
from .rule_strategies import KEYS, VALUES, Rule, label_sets, prometheus_rules, rules

POD_LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=4)
PODS = st.lists(st.tuples(POD_LABELS, st.sampled_from(["web", "db", "a"])), min_size=1, max_size=6)
LABEL = "__meta_kubernetes_pod_label_"
DEFAULTS = {"job": "j"}


def pods_of(drawn: list[tuple[dict[str, str], str]]) -> Pods:
    pods = Pods()
    pods.put_all([pod(f"p{number}", labels, namespace) for number, (labels, namespace) in enumerate(drawn)])
    return pods


def kept(outcomes: list[Any]) -> list[dict[str, str]]:
    return [outcome for outcome in outcomes if isinstance(outcome, dict)]


# ---- heart and reference ----


@pytest.mark.parametrize(("dialect", "made"), [("victoriametrics", rules()), ("prometheus", prometheus_rules())])
def test_the_heart_gives_what_the_reference_gives(dialect: str, made: st.SearchStrategy[list[Rule]]) -> None:
    """Filtered and not, asked again, one by one and all at once; and the counts of what dropped them."""

    @settings(max_examples=250, deadline=None)
    @given(made, label_sets(), PODS)
    def check(rule_list: list[Rule], defaults: dict[str, str], drawn: list[tuple[dict[str, str], str]]) -> None:
        pods = pods_of(drawn)
        wanted = [final(defaults | labels, rule_list, dialect) for labels in pods.discovered()]
        for options in ({}, {"filtered": False}, {"compiled": False}, {"bound": 2}):
            relabeling = pods.relabeling(rule_list, defaults, dialect, **options)
            assert pods.survivors(relabeling) == kept(wanted)
            assert pods.survivors(relabeling, budget=1) == kept(wanted)
            assert pods.survivors(relabeling, effort=1) == kept(wanted)
            by_rule, no_label, no_address, _ = relabeling.drops
            assert by_rule == tuple(3 * wanted.count(number) for number in range(len(rule_list)))
            assert (no_label, no_address) == (3 * wanted.count("no label is left"), 3 * wanted.count("no address"))
        for labels, outcome in zip(pods.labels(), wanted, strict=True):
            ending = relabeling.steps_of(labels)[1]
            assert (dict(ending) if isinstance(ending, Labels) else ending) == outcome

    check()


@settings(max_examples=60, deadline=None)
@given(st.lists(rules(4), min_size=2, max_size=4), PODS)
def test_a_job_does_not_change_what_another_sees(jobs: list[list[Rule]], drawn: list[tuple[dict[str, str], str]]) -> None:
    pods = pods_of(drawn)
    before = pods.discovered()
    table = RuleTable(pods.symbols, "victoriametrics")
    together = [table.relabeling(map(RelabelConfig.from_dict, job), DEFAULTS) for job in jobs]
    found = [pods.survivors(relabeling) for relabeling in together]
    assert found == [pods.survivors(pods.relabeling(job, DEFAULTS)) for job in jobs]
    assert pods.discovered() == before


def test_each_step_is_told_with_the_labels_before_and_after() -> None:
    pods = pods_of([({"app": "a"}, "web")])
    relabeling = pods.relabeling(
        [
            {"source_labels": [f"{LABEL}app"], "target_label": "app"},
            {"action": "labelkeep", "regex": "__address__|app"},
            {"action": "drop", "source_labels": ["app"], "regex": "a"},
            {"target_label": "never", "replacement": "reached"},
        ]
    )
    steps, ending = relabeling.steps_of(pods.labels()[0])
    assert ending == 2
    assert [rule.config.action for rule, _, _ in steps] == ["replace", "labelkeep", "drop"]
    assert steps[0][2] == [*steps[0][1], ("app", "a")]
    assert steps[1][2] == steps[2][1] == [("__address__", "127.0.0.1"), ("app", "a")]
    assert steps[2][2] == []


@pytest.mark.parametrize(
    ("rule_list", "wanted"),
    [
        ([], {"__address__": "127.0.0.1", "instance": "127.0.0.1:80"}),
        ([{"target_label": "instance", "replacement": "i"}], {"__address__": "127.0.0.1", "instance": "i"}),
        (
            [{"target_label": "__scheme__", "replacement": "https"}],
            {"__address__": "127.0.0.1", "__scheme__": "https", "instance": "127.0.0.1:443"},
        ),
        ([{"target_label": "__tmp_x", "replacement": "x"}], {"__address__": "127.0.0.1", "instance": "127.0.0.1:80"}),
        ([{"target_label": "x", "replacement": ""}], {"__address__": "127.0.0.1", "instance": "127.0.0.1:80"}),
        ([{"target_label": "__address__", "replacement": ""}, {"target_label": "x", "replacement": "y"}], "no address"),
        ([{"action": "labelkeep", "regex": "__meta_.*"}], "no label is left"),
        ([{"target_label": "__address__", "replacement": ""}], "no label is left"),
        ([{"target_label": "__address__", "replacement": ""}, {"target_label": "__tmp", "replacement": "y"}], "no address"),
        ([{"action": "labeldrop", "regex": ".*"}], 0),
    ],
)  # fmt: skip
def test_what_comes_after_the_last_rule(rule_list: list[Rule], wanted: Any) -> None:
    pods = pods_of([({}, "web")])
    ending = pods.relabeling(rule_list).steps_of(pods.labels()[0])[1]
    assert (dict(ending) if isinstance(ending, Labels) else ending) == wanted


def test_a_position_and_a_key_are_those_of_the_batch() -> None:
    pods = Pods()
    pods.put_all([pod("p0", {"a": "a"}), pod("p1", {"a": "b"}, ports=[80, 81]), pod("p2", {"a": "a"}, ports=[80])])
    batch, _, _ = pods.renderer.walk(0, [("pod", 0)], 1 << 30)
    everything = {key: [position for position, _ in part] for key, part in batch.targets("pod", 0)}
    found = pods.relabeling([{"action": "keep", "source_labels": [f"{LABEL}a"], "regex": "b"}]).survivors(batch, "pod", 0)[0]
    batch.close()
    (key, part), = found  # fmt: skip
    assert [position for position, _ in part] == everything[key]
    assert len(part) == 2


def test_rules_run_in_steps() -> None:
    """Each step ends when its effort is spent, after the part that spends it: so many expressions over new values hold nobody up."""
    pods = Pods()
    pods.put_all([pod(f"p{number}", {"a": f"x{number}"}) for number in range(100)])
    relabeling = pods.relabeling(
        [{"source_labels": [f"{LABEL}a"], "regex": f"(x[0-9]).*{place}?", "target_label": "b"} for place in range(10)]
    )
    batch, _, _ = pods.renderer.walk(0, [("pod", 0)], 1 << 30)
    steps = 0
    row: int | None = 0
    runs = [pods.runs.count]
    while row is not None:
        _, row = relabeling.survivors(batch, "pod", 0, row=row, effort=640)
        runs.append(pods.runs.count)
        steps += 1
    batch.close()
    assert runs[-1] == 1000
    assert max(after - before for before, after in pairwise(runs)) <= 30
    assert steps >= 34


def test_labels_and_batches_of_other_symbols_are_refused() -> None:
    pods, others = pods_of([({}, "web")]), pods_of([({}, "web")])
    relabeling = pods.relabeling([])
    with pytest.raises(ValueError, match="of other symbols"):
        relabeling.steps_of(others.labels()[0])
    with pytest.raises(ValueError, match="of other symbols"):
        others.survivors(relabeling)
    with pytest.raises(ValueError, match="of other symbols"):
        RuleTable(others.symbols, "victoriametrics").relabeling([], {}).__class__(
            pods.symbols, [others.step({"action": "labeldrop", "regex": "a"})], {}, lambda address, _: address
        )


# ---- the filter: what decides is found through rules over names ----


@pytest.mark.parametrize(
    "before",
    [
        [{"action": "labelmap", "regex": f"{LABEL}(.+)"}],
        [{"action": "labelmap", "regex": f"{LABEL}(.+)", "replacement": "x_$1"}, {"action": "labelmap", "regex": "x_(.+)"}],
        [{"action": "labelmap_all", "regex": f"^{LABEL}", "replacement": ""}],
        [{"action": "labelmap_all", "regex": f"^{LABEL}", "replacement": "x_"}, {"action": "labelmap", "regex": "x_(.+)"}],
        [{"action": "labelmap", "regex": f"{LABEL}(app)", "replacement": f"{LABEL}z"},
         {"action": "labelmap", "regex": f"{LABEL}z", "replacement": "app"}],
        # two labels that become one, the later in the list winning; one of them written anew where it stands
        [{"target_label": f"{LABEL}b", "replacement": "db"}, {"action": "labelmap", "regex": f"{LABEL}(b|app)", "replacement": "app"}],
        [{"source_labels": [f"{LABEL}app"], "target_label": "$1", "regex": "(.+)", "replacement": "web"},
         {"action": "labelmap", "regex": "web", "replacement": "app"}],
    ],
)  # fmt: skip
def test_the_filter_follows_labels_through_rules_over_names(before: list[Rule]) -> None:
    pods = pods_of([({"app": app, "b": other}, "web") for app in ("web", "db") for other in ("web", "db")])
    rule_list = [*before, {"action": "keep", "source_labels": ["app"], "regex": "web"}]
    wanted = [final(DEFAULTS | labels, rule_list) for labels in pods.discovered()]
    assert pods.survivors(pods.relabeling(rule_list, DEFAULTS)) == kept(wanted)


def test_a_rule_that_takes_all_labels_is_what_drops_the_target() -> None:
    """Also where the filter would go on, having seen only some of the labels."""
    rule_list: list[Rule] = [
        {"action": "labelkeep", "regex": "nothing"},
        {"target_label": "a", "replacement": "b"},
        {"action": "drop", "source_labels": ["a"], "regex": "b"},
    ]
    pods = pods_of([({}, "web")])
    relabeling = pods.relabeling(rule_list)
    assert pods.survivors(relabeling) == []
    assert relabeling.drops == ((1, 0, 0), 0, 0, 0)


# ---- programs: what rules do to targets of one shape ----

WAYS: list[list[Rule]] = [
    # outcomes that are not there, or empty, in front of rules over names
    [{"source_labels": [f"{LABEL}a"], "regex": "(a*)b?", "target_label": "b"}, {"action": "labelmap", "regex": f"{LABEL}(.+)"}],
    [{"source_labels": [f"{LABEL}a"], "target_label": "__address__"}, {"source_labels": [f"{LABEL}b"], "target_label": "instance"}],
    [{"source_labels": [f"{LABEL}b"], "target_label": "x_a"}, {"action": "labelmap", "regex": "(x_)?a", "replacement": "a"},
     {"action": "labelmap", "regex": f"{LABEL}(a)"}, {"action": "labeldrop", "regex": "x_.*"}],
    [{"source_labels": [f"{LABEL}a", f"{LABEL}b"], "separator": ".", "regex": "a(.*)", "target_label": "a", "if": f'{{{LABEL}b!="x"}}'},
     {"source_labels": ["a"], "regex": ".b|", "action": "drop"},
     {"action": "hashmod", "source_labels": ["a"], "modulus": 3, "target_label": "b"}],
    [{"action": "labelmap_all", "regex": "^__meta_kubernetes_pod_label_[ab]$", "replacement": "t"},
     {"action": "labelkeep", "regex": "t|__address__"}, {"source_labels": ["t"], "target_label": "u"}],
    [{"action": "labelkeep", "regex": f"{LABEL}a"}, {"source_labels": [f"{LABEL}a"], "regex": "(a)?.*", "target_label": "__address__"}],
    [{"action": "keep", "source_labels": [f"{LABEL}a"], "regex": "a.*|", "if": f'{{{LABEL}b=~"a|"}}'},
     {"action": "uppercase", "source_labels": [f"{LABEL}a"], "target_label": "a"}],
    # nothing but what all targets have
    [{"source_labels": ["job"], "regex": "(j).*", "target_label": "b"}, {"target_label": "__address__", "replacement": "127.0.0.1:1"},
     {"action": "drop", "source_labels": ["job"], "regex": "k"}, {"source_labels": ["nothing"], "target_label": "a"}],
    # a label whose name is a value: no program knows where it goes
    [{"source_labels": [f"{LABEL}b"], "regex": "(.+)", "target_label": "$1", "replacement": "named"}],
    # more ways than a program knows
    [{"source_labels": [f"{LABEL}{key}"], "regex": "(a.*)", "target_label": f"{key}{place}", "replacement": f"$1{place}"}
     for place in range(2) for key in KEYS],
]  # fmt: skip


@pytest.mark.parametrize("dialect", ["victoriametrics", "prometheus"])
@pytest.mark.parametrize("rule_list", WAYS, ids=lambda rule_list: str(len(rule_list)))
def test_a_program_gives_what_the_rules_give(rule_list: list[Rule], dialect: str) -> None:
    """For every pair of values, in two orders, also where values are empty; with the same counts of what dropped the targets."""
    values = ["", "a", "b", "aa", "ab", "x", "127.0.0.1:80", "abc"]
    made = [pod(f"p{a}{b}", dict(zip(KEYS, (values[a], values[b], values[a - b], values[b - 1], values[a - 1]), strict=True)))
            for a in range(8) for b in range(8)]  # fmt: skip
    pods = Pods()
    pods.put_all(made)
    wanted = [final(DEFAULTS | labels, rule_list, dialect) for labels in pods.discovered()]
    relabeling = pods.relabeling(rule_list, DEFAULTS, dialect, refusal=None if dialect == "victoriametrics" else lambda *_: "")
    plain = pods.relabeling(rule_list, DEFAULTS, dialect, compiled=False)
    for _ in range(2):
        assert pods.survivors(relabeling) == pods.survivors(plain) == kept(wanted)
        pods.sweep()
    assert relabeling.drops == plain.drops
    assert relabeling.evaluated == plain.evaluated
    assert (relabeling.followed > 0, plain.followed) == ("$1" not in {rule.get("target_label") for rule in rule_list}, 0)


def test_a_program_is_followed_where_values_differ_and_not_what_rules_do() -> None:
    pods = Pods()
    pods.put_all(many(100, 50))
    rule_list: list[Rule] = [
        {"action": "labelmap", "regex": f"{LABEL}(.+)"},
        {"source_labels": ["app"], "regex": "a(.+)", "target_label": "b"},
    ]
    relabeling = pods.relabeling(rule_list, DEFAULTS)
    assert pods.survivors(relabeling) == [final(DEFAULTS | labels, rule_list) for labels in pods.discovered()]
    assert (relabeling.evaluated, relabeling.followed) == (100, 99)


def test_a_refused_target_is_counted_as_that() -> None:
    """The refusal is asked about the final address, interval and timeout, by a program as by rules."""
    pods = Pods()
    pods.put_all([pod(f"p{number}", {"a": f"{number % 3}"}) for number in range(30)])
    rule_list: list[Rule] = [
        {"source_labels": [f"{LABEL}a"], "target_label": "__address__"},
        {"source_labels": [f"{LABEL}a"], "regex": "[12]", "target_label": "__scrape_interval__", "replacement": "i$0"},
    ]
    refusal = {"0": "", "1": "one", "2": ""}
    for compiled in (True, False):
        asked: set[tuple[str, str, str]] = set()

        def refuse(address: str, interval: str, timeout: str, asked: set[tuple[str, str, str]] = asked) -> str:
            asked.add((address, interval, timeout))
            return refusal[address]

        defaults = DEFAULTS | {"__scrape_timeout__": "t"}
        relabeling = pods.relabeling(rule_list, defaults, "prometheus", refusal=refuse, compiled=compiled)
        assert [labels["instance"] for labels in pods.survivors(relabeling)] == ["0", "2"] * 10
        assert relabeling.drops == ((0, 0), 0, 0, 10)
        assert asked == {("0", "", "t"), ("1", "i1", "t"), ("2", "i2", "t")}


# ---- remembering ----

KEEP_RE2 = {"action": "keep", "source_labels": [f"{LABEL}app", f"{LABEL}a"], "regex": "a[0-9]+;.?b"}


def many(count: int, values: int, seed: int = 1, start: int = 0) -> list[dict[str, Any]]:
    choose = random.Random(seed)
    return [
        pod(f"p{number}", {"app": f"a{choose.randrange(values) + start}", "a": choose.choice("bc"), "b": f"u{number + start}"})
        for number in range(count)
    ]


def test_re2_runs_once_for_each_tuple_of_values() -> None:
    pods = Pods()
    pods.put_all(many(500, 20))
    distinct = {(labels[f"{LABEL}app"], labels[f"{LABEL}a"]) for labels in pods.discovered()}
    named = {"source_labels": [f"{LABEL}app"], "regex": "([a-z])([0-9]+)", "target_label": "$1", "replacement": "$2"}
    relabeling = pods.relabeling([KEEP_RE2, named])
    for _ in range(3):
        pods.survivors(relabeling)
    apps = {app for app, other in distinct if other == "b"}
    assert pods.runs.count == len(distinct) + len(apps)


def test_re2_runs_once_for_all_jobs_that_have_the_rule() -> None:
    pods = Pods()
    pods.put_all(many(300, 20))
    table = RuleTable(pods.symbols, "victoriametrics")
    jobs = [table.relabeling([RelabelConfig.from_dict(KEEP_RE2)], {"job": f"j{number}"}) for number in range(50)]
    first = pods.survivors(jobs[0])
    once = table.runs.count
    assert first
    assert once == len({(labels[f"{LABEL}app"], labels[f"{LABEL}a"]) for labels in pods.discovered()})
    for job in jobs:
        assert [labels | {"job": "j0"} for labels in pods.survivors(job)] == first
    assert table.runs.count == once
    assert len(table) == 1
    del jobs, job
    assert len(table) == 0


@pytest.mark.parametrize(
    "regex",
    [
        "a1", "a1|a2|a3", "(a1|a2)", "(?:a1|a2)", "a.*", "a.+", ".*1", ".+1", "a.*1", "(.*)", ".*", ".+", "(.+)", "^a1$",
        "a\\.1", "a\\.(.*)", "",
    ],
)  # fmt: skip
def test_plain_expressions_never_reach_re2(regex: str) -> None:
    pods = Pods()
    pods.put_all(many(50, 5))
    source = [f"{LABEL}app"]
    selector = f'{{{LABEL}app=~"{regex}" or t=~"|x"}}'.replace("\\", "\\\\")
    relabeling = pods.relabeling(
        [
            {"source_labels": source, "regex": regex, "target_label": "t", "if": selector},
            {"action": "labelmap", "regex": regex},
            {"action": "drop", "source_labels": source, "regex": regex, "if": '{t="nothing"}'},
            {"action": "labeldrop", "regex": regex},
        ]
    )
    pods.survivors(relabeling)
    pods.survivors(relabeling)
    assert pods.runs.count == 0


def test_the_bound_forgets_and_the_outcomes_stay_right() -> None:
    pods = Pods()
    pods.put_all(many(400, 100))
    rule_list = [KEEP_RE2, {"source_labels": [f"{LABEL}b"], "regex": "u(.)(.*)", "target_label": "b", "replacement": "$2-$1"}]
    wanted = kept([final(DEFAULTS | labels, rule_list) for labels in pods.discovered()])
    relabeling = pods.relabeling(rule_list, DEFAULTS, bound=7)
    for _ in range(3):
        assert pods.survivors(relabeling) == wanted
        assert relabeling.remembered <= 7 * 3  # two rules and a filter
    assert relabeling.seen == 1200


def test_what_never_comes_again_is_not_remembered() -> None:
    """Under a tenth of several thousand look-ups found something: nothing more is remembered, and the outcomes stay right."""
    pods = Pods()
    rule: Rule = {"source_labels": [f"{LABEL}b"], "regex": "u(.)(.*)", "target_label": "b", "replacement": "$2-$1"}
    pods.put_all(many(9000, 3))
    step = pods.step(rule)
    relabeling = pods.relabeling([]).__class__(pods.symbols, [step], DEFAULTS, lambda address, _: address)
    found = pods.survivors(relabeling)
    assert step.given_up
    assert step.remembered == 0
    runs = pods.runs.count
    assert pods.survivors(relabeling) == found
    assert pods.runs.count == runs + 9000
    assert [labels["b"] for labels in found[:12]] == ["-0", "-1", "-2", "-3", "-4", "-5", "-6", "-7", "-8", "-9", "0-1", "1-1"]


def test_a_filter_that_is_given_up_decides_nothing() -> None:
    """Each target's verdict is new, so none is remembered: the rule itself drops it."""
    pods = Pods()
    pods.put_all([pod(f"p{number}", {"b": f"u{number}"}) for number in range(9000)])
    rule_list: list[Rule] = [{"action": "keep", "source_labels": [f"{LABEL}b"], "regex": "u.*[02468]"}]
    relabeling = pods.relabeling(rule_list, DEFAULTS)
    for _ in range(2):
        assert len(pods.survivors(relabeling)) == 4500
    assert relabeling.remembered == 0
    assert relabeling.drops == ((9000,), 0, 0, 0)


@pytest.mark.parametrize("others", range(12))
def test_a_verdict_is_not_taken_over_from_a_string_that_was_swept_away(others: int) -> None:
    """The next string may get its number, and its target may be the next that the filter is asked about."""
    pods = Pods()
    relabeling = pods.relabeling([{"action": "keep", "source_labels": [f"{LABEL}app"], "regex": "x.*"}], DEFAULTS)
    for app, count in (("x1", 1), ("y1", 0), ("x2", 1)):
        pods.put_all([pod(f"p{app}", {"app": app} | {f"b{number}": f"{number}{app}" for number in range(others)}, f"n{app}")])
        assert len(pods.survivors(relabeling)) == count
        pods.put_all([])
        pods.sweep()
        pods.sweep()


def test_outcomes_are_forgotten_with_their_symbols() -> None:
    pods = Pods()
    relabeling = pods.relabeling([KEEP_RE2, {"source_labels": [f"{LABEL}b"], "regex": "u(.+)x?", "target_label": "b"}], DEFAULTS)
    pods.put_all(many(300, 300))
    pods.survivors(relabeling)
    assert relabeling.remembered > 300
    pods.put_all([pod("p", {"app": "a1", "a": "b", "b": "u1"})])
    pods.survivors(relabeling)
    pods.sweep()
    pods.sweep()  # what the outcomes owned
    # the one pod's own, and what two fixed names and addresses make
    assert relabeling.remembered <= 6
    before = len(pods.symbols)
    for start in range(1000, 6000, 1000):
        pods.put_all(many(300, 300, start=start))
        assert pods.survivors(relabeling)
        pods.sweep()
        pods.sweep()
        assert relabeling.remembered <= 1300
    pods.put_all([pod("p", {"app": "a1", "a": "b", "b": "u1"})])
    for _ in range(3):
        pods.sweep()
    assert len(pods.symbols) <= before + 5


@pytest.mark.parametrize("bound", [3, 50, 65536])
@pytest.mark.parametrize("seed", range(3))
def test_an_id_given_to_another_string_never_meets_an_old_outcome(bound: int, seed: int) -> None:
    """Pods come and go with ever new strings, whose ids are used again; sweeps run to the end or are in their midst."""
    choose = random.Random(seed)
    pods = Pods()
    rule_list: list[Rule] = [
        {"source_labels": [f"{LABEL}app", f"{LABEL}a"], "regex": "(.*[02468]);(.*)", "action": "keep"},
        {"source_labels": [f"{LABEL}b"], "regex": "u([0-9])(.*)", "target_label": "b", "replacement": "$2-$1"},
        {"source_labels": ["__meta_kubernetes_namespace", f"{LABEL}a"], "regex": "web;v.*[0-8]", "action": "keep"},
        {"source_labels": ["__meta_kubernetes_namespace", f"{LABEL}a"], "regex": "(web);v(.)(.*)", "target_label": "x"},
        {"source_labels": ["b", f"{LABEL}app"], "regex": "(.*);a(.*)", "target_label": "n_$2", "replacement": "$1"},
        {"action": "uppercase", "source_labels": [f"{LABEL}a", "b"], "target_label": "up"},
        {"action": "labelmap", "regex": f"{LABEL}(k.*[13579])"},
        {"action": "labeldrop", "regex": "n_.*[37]"},
        {"target_label": "odd", "replacement": "{{b}}!", "if": '{b=~".*[13579]-."}'},
    ]
    relabeling = pods.relabeling(rule_list, DEFAULTS, bound=bound)
    shared = [pods.relabeling(rule_list[:3], {"job": "k"}, bound=bound), pods.relabeling(rule_list[3:], {}, bound=bound)]
    named_by_key = [rule for rule in rule_list if rule.get("target_label") != "n_$2"]
    followed = pods.relabeling(named_by_key, DEFAULTS, bound=bound)
    names: set[str] = set()
    for cycle in range(40):
        made = []
        for number in range(choose.randrange(1, 40)):
            fresh = choose.randrange(10**9)
            labels = {"app": f"a{fresh % 1000}", "a": f"v{fresh}", "b": f"u{fresh // 7}"}
            labels[f"k{choose.randrange(2000)}"] = choose.choice("xyz")
            made.append(pod(f"p{choose.randrange(10**6)}", labels, ip=f"127.0.{choose.randrange(250)}.{number}"))
        pods.put_all(made)
        discovered = pods.discovered()
        names.update(labels["__meta_kubernetes_pod_name"] for labels in discovered)
        jobs: Any = ((relabeling, rule_list, DEFAULTS), (shared[0], rule_list[:3], {"job": "k"}), (shared[1], rule_list[3:], {}),
                     (followed, named_by_key, DEFAULTS))  # fmt: skip
        for one, its_rules, defaults in jobs:
            wanted = kept([final(defaults | labels, its_rules) for labels in discovered])
            assert pods.survivors(one, budget=choose.choice([1, 7, 1000])) == wanted
            if choose.randrange(3) == 0:
                pods.symbols.sweep(choose.choice([1, 10, 100]))  # a slice, in whatever phase it is
        if choose.randrange(2):
            pods.sweep()
        if cycle % 8 == 7:
            pods.put_all([])
            pods.sweep()
            pods.sweep()
    # ids have been used again: many more strings were seen than there are ids
    assert len(pods.symbols) < len(names) + 3000
    assert min(shared[0].followed, followed.followed) > 0


def test_shapes_come_and_go() -> None:
    """More shapes than plans are kept for, and so filters forgotten with them."""
    pods = Pods()
    keep = {"action": "keep", "source_labels": ["1", "2", "3"], "regex": "x;.*"}
    relabeling = pods.relabeling([{"action": "labelmap", "regex": f"{LABEL}k(.+)"}, keep], DEFAULTS)
    for start in range(0, 5000, 1000):
        pods.put_all([pod(f"p{number}", {f"k{number}": "x", f"k{number % 3 + 1}": "x"}) for number in range(start, start + 1000)])
        found = pods.survivors(relabeling)
        assert found
        assert all(labels["1"] == "x" for labels in found)


# ---- a hundred jobs ----


def test_a_hundred_jobs_cost_what_the_design_promises() -> None:
    """Each keeps one application of twenty: rules run once per application and job, and once per target that is kept."""
    pods = Pods()
    pods.put_all([pod(f"p{number}", {"app": f"app-{number % 20}", "b": f"u{number}"}) for number in range(1000)])
    table = RuleTable(pods.symbols, "victoriametrics")

    def job(number: int) -> Any:
        application = f"[{number % 20}]" if number % 20 < 10 else str(number % 20)  # half of them need RE2
        configs: list[Rule] = [
            {"action": "keep", "source_labels": [f"{LABEL}app"], "regex": f"app-{application}"},
            {"source_labels": ["__meta_kubernetes_pod_name"], "regex": "(p)(.+)", "target_label": "pod"},
            {"action": "labelmap", "regex": f"{LABEL}(.+)"},
        ]
        return table.relabeling(map(RelabelConfig.from_dict, configs), {"job": f"j{number}"})

    jobs = [job(number) for number in range(100)]
    for one in jobs:
        assert len(pods.survivors(one)) == 50
        assert (one.seen, one.evaluated) == (1000, 20 + 50)
        assert one.drops == ((950, 0, 0), 0, 0, 0)
    assert len(table) == 20 + 2
    # ten rules need RE2 for twenty applications; and one for the thousand pods, whatever the number of jobs
    runs = table.runs.count
    assert runs == 10 * 20 + 1000
    another = job(100)
    assert len(pods.survivors(another)) == 50
    assert another.evaluated == 20 + 50
    assert table.runs.count == runs
    # outcomes: twenty of the filter, and those of the rules that all share
    assert another.remembered < 20 + 20 + 1000 + 100


def test_a_symbol_table_outlives_its_steps() -> None:
    symbols = Symbols()
    table = RuleTable(symbols, "victoriametrics")
    step = table.step(RelabelConfig(target_label="a", replacement="b"))
    assert table.step(RelabelConfig(target_label="a", replacement="b", action="Replace")) is step
    assert table.step(RelabelConfig(target_label="a", replacement="c")) is not step
    del step
    while symbols.sweep():
        pass
    assert len(table) == 0


@pytest.mark.parametrize("defaults", [{"job": 5}, {5: "job"}, {"a": "b", "job": None}])
def test_labels_that_are_no_strings_are_refused(defaults: dict[Any, Any]) -> None:
    """And what was made until then is freed."""
    with pytest.raises(TypeError, match="must be a string"):
        Relabeling(Symbols(), [], defaults, lambda address, _: address)


@pytest.mark.parametrize(
    "copied", [{"regex": "__meta_kubernetes_pod_label_(.+)"}, {"regex": "__meta_kubernetes_pod_label_n.*", "replacement": "x"}]
)
@pytest.mark.parametrize("dropped", [True, False])
def test_names_that_came_and_went_are_forgotten(copied: dict[str, str], dropped: bool) -> None:
    """Plans, programs, layouts, filters and outcomes over names hold on to no label that no object has any more; none of them is full."""
    heart = Heart(("pod", 0))
    table = RuleTable(heart.store.symbols, "victoriametrics")
    written = [copied | {"action": "labelmap"}, {"action": "keep" if dropped else "drop", "source_labels": ["x"], "regex": "y"}]
    relabeling = table.relabeling(load_rules(written), {"job": "j"})
    sizes = []
    for turn in range(24):
        pods = [new_pod(f"p{number}", labels={f"n{turn}_{number // 2}_{label}": "v" for label in range(5)}) for number in range(10)]
        for one in pods:
            heart.upsert("pods", one)
        batch = heart.renderer.render(1000)
        found, _ = relabeling.survivors(batch, "pod", 0)
        assert bool(found) != dropped
        del found
        batch.close()
        for one in pods:
            heart.delete("pods", one)
        heart.settle()
        for _ in range(5):  # what is given up in one sweep is doomed in the next
            while heart.store.symbols.sweep(100):
                pass
        sizes.append((len(heart.store.symbols), relabeling.remembered))
    assert max(sizes[12:]) <= max(sizes[:12])
    assert (relabeling.followed > 0) != dropped
