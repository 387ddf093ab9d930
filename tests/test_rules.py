"""What each rule does, in both dialects; the values are those of the programs themselves."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from fastdisco._core import Symbols
from fastdisco.errors import ConfigError
from fastdisco.graphite import GraphiteTemplate, expand_matches
from fastdisco.regexes import Runs
from fastdisco.relabel_config import ACTIONS, VICTORIAMETRICS_ACTIONS, RelabelConfig
from fastdisco.rule_table import RuleTable
from fastdisco.rules import compile_rule

from .relabel_reference import relabel
from .relabel_rig import Pods, pod

BOTH = ("victoriametrics", "prometheus")


def after(rules: list[dict[str, Any]], labels: Mapping[str, str], dialect: str = "victoriametrics") -> list[tuple[str, str]] | None:
    """The labels after the last rule, in order, as the heart has them; None: dropped. The reference agrees."""
    pods = Pods()
    pods.put_all([pod("p")])
    (discovered,) = pods.labels()
    steps, _ = pods.relabeling(rules, labels, dialect).steps_of(discovered)
    found = [label for label in steps[-1][2] if label[0] not in discovered and label[0] and label[1]]
    wanted = relabel(dict(labels) | dict(discovered), rules, dialect).labels
    assert found == [label for label in wanted or () if label[0] not in discovered]
    return found if steps[-1][2] else None


def value(rule: dict[str, Any], labels: Mapping[str, str], dialect: str = "victoriametrics") -> str | None:
    """What becomes of the label `t`."""
    return dict(after([rule], labels, dialect) or ()).get("t")


def is_kept(rule: dict[str, Any], labels: dict[str, str], dialect: str = "victoriametrics") -> bool:
    return after([rule], labels | {"z": "z"}, dialect) is not None


# ---- replace ----


@pytest.mark.parametrize("dialect", BOTH)
@pytest.mark.parametrize(
    ("rule", "labels", "wanted"),
    [
        ({"source_labels": ["a"]}, {"a": "x"}, "x"),
        ({"source_labels": ["a", "b"]}, {"a": "x", "b": "y"}, "x;y"),
        ({"source_labels": ["a", "b"], "separator": ""}, {"a": "x"}, "x"),
        ({"source_labels": ["a", "b", "a"], "separator": "-"}, {"a": "x"}, "x--x"),
        ({"replacement": "static"}, {}, "static"),
        ({"source_labels": ["a"], "regex": "(.)(.*)", "replacement": "$2-${1}"}, {"a": "xyz"}, "yz-x"),
        ({"source_labels": ["a"], "regex": "(?P<first>.)(.*)", "replacement": "${first}$$"}, {"a": "xyz"}, "x$"),
        ({"source_labels": ["a"], "regex": "y"}, {"a": "x", "t": "old"}, "old"),
        ({"source_labels": ["a"], "regex": "x"}, {"a": "x", "t": "old"}, None),  # no first group
        ({"source_labels": ["a"], "regex": "x.*"}, {"a": "yx", "t": "old"}, "old"),
        ({"source_labels": ["a"], "regex": "^(x)$"}, {"a": "x"}, "x"),
        ({"source_labels": ["a"], "regex": ""}, {"a": "x", "t": "old"}, "old"),
        ({"source_labels": ["a"], "regex": "", "replacement": "none"}, {}, "none"),
        ({"source_labels": ["a"]}, {"t": "old"}, None),  # an empty value takes the label away
        ({"source_labels": ["a"]}, {"a": "x\ny"}, "x\ny"),
    ],
)  # fmt: skip
def test_replace(rule: dict[str, Any], labels: dict[str, str], wanted: str | None, dialect: str) -> None:
    assert value({"target_label": "t", **rule}, labels, dialect) == wanted


@pytest.mark.parametrize(
    ("rule", "labels", "victoriametrics", "prometheus"),
    [
        # groups do not reach across newlines in VictoriaMetrics, though matches do; the text is then taken as it is
        ({"source_labels": ["a"], "regex": "x(.*)"}, {"a": "x\ny"}, "x\ny", "\ny"),
        ({"source_labels": ["a"], "regex": "x.*", "replacement": "found"}, {"a": "x\ny"}, "x\ny", "found"),
        ({"source_labels": ["a"], "replacement": "<$1>"}, {"a": "x\ny"}, "x\ny", "<x\ny>"),
        ({"source_labels": ["a"], "regex": "x", "replacement": "found"}, {"a": "x"}, "found", "found"),
        ({"source_labels": ["a"], "regex": "(?s)x(.*)"}, {"a": "x\ny"}, "\ny", "\ny"),
        # every spelling of "anything" is the default in VictoriaMetrics, and has a group
        ({"source_labels": ["a"], "regex": ".*"}, {"a": "x"}, "x", None),
        ({"source_labels": ["a"], "regex": "(?P<all>.*)", "replacement": "${all}"}, {"a": "x"}, None, "x"),
        # labels in braces
        ({"replacement": "{{a}}-{{b}}{{a}}"}, {"a": "x"}, "x-x", "{{a}}-{{b}}{{a}}"),
        ({"replacement": "{{a"}, {"a": "x"}, "{{a", "{{a"),
        ({"replacement": "}}{{a}}"}, {"a": "x"}, "}}x", "}}{{a}}"),
        ({"source_labels": ["b"], "replacement": "{{a}}$1"}, {"a": "x", "b": "y"}, "xy", "{{a}}y"),
        ({"source_labels": ["b"], "replacement": "{{a}}"}, {"a": "$1", "b": "y"}, "y", "{{a}}"),
        ({"source_labels": ["b"], "replacement": "{{a}}"}, {"a": "$2", "b": "y"}, "$2", "{{a}}"),
        ({"source_labels": ["b"], "regex": "(y)", "replacement": "{{a}}"}, {"a": "$1$1", "b": "y"}, "yy", "{{a}}"),
        ({"source_labels": ["b"], "regex": "y.*", "replacement": "{{a}}"}, {"a": "x", "b": "y\n"}, "x", "{{a}}"),
    ],
)  # fmt: skip
def test_replace_where_the_dialects_differ(
    rule: dict[str, Any], labels: dict[str, str], victoriametrics: str | None, prometheus: str | None
) -> None:
    rule = {"target_label": "t", **rule}
    assert (value(rule, labels), value(rule, labels, "prometheus")) == (victoriametrics, prometheus)


@pytest.mark.parametrize("dialect", BOTH)
@pytest.mark.parametrize(
    ("target", "wanted"), [("$1", "x"), ("${1}_n", "x_n"), ("n_$2", "n_y"), ("$$", "$"), ("n$", "n$"), ("n_$9", "n_"), ("${first}", "x")]
)
def test_the_target_may_come_from_groups(target: str, wanted: str, dialect: str) -> None:
    rule = {"source_labels": ["a"], "regex": "(?P<first>x)(y)", "target_label": target, "replacement": "v"}
    assert dict(after([rule], {"a": "xy"}, dialect) or ())[wanted] == "v"
    assert after([rule], {"a": "zz"}, dialect) == [("a", "zz")]


def test_a_target_without_a_name_is_no_label() -> None:
    rule = {"source_labels": ["a"], "target_label": "$2", "replacement": "v"}
    for dialect in BOTH:
        assert after([rule], {"a": "x"}, dialect) == [("a", "x")]
    # until the last rule, VictoriaMetrics has it
    assert value({"source_labels": [""], "target_label": "t"}, {"": "v"}) == "v"


# ---- keep and drop ----


@pytest.mark.parametrize("dialect", BOTH)
@pytest.mark.parametrize(
    ("rule", "labels", "wanted"),
    [
        ({"source_labels": ["a"], "regex": "x|y"}, {"a": "y"}, True),
        ({"source_labels": ["a"], "regex": "x|y"}, {"a": "xy"}, False),
        ({"source_labels": ["a"], "regex": "x"}, {}, False),
        ({"source_labels": ["a"], "regex": "x?"}, {}, True),
        ({"source_labels": ["a", "b"], "regex": "x;y"}, {"a": "x", "b": "y"}, True),
        ({"source_labels": ["a"], "regex": "x.*"}, {"a": "x\ny"}, True),
        ({"source_labels": ["a"], "regex": "x.y"}, {"a": "x\ny"}, True),
        ({"source_labels": ["a"], "regex": ".+"}, {"a": ""}, False),
        ({"source_labels": ["a"]}, {}, True),
        ({"source_labels": ["a"], "regex": "a\\.b"}, {"a": "a.b"}, True),
    ],
)  # fmt: skip
def test_keep_and_drop(rule: dict[str, Any], labels: dict[str, str], wanted: bool, dialect: str) -> None:
    assert is_kept({"action": "keep", **rule}, labels, dialect) is wanted
    assert is_kept({"action": "DROP", **rule}, labels, dialect) is not wanted


@pytest.mark.parametrize("dialect", BOTH)
@pytest.mark.parametrize(
    ("rule", "labels", "wanted"),
    [
        ({"action": "keepequal", "source_labels": ["a"], "target_label": "b"}, {"a": "x", "b": "x"}, True),
        ({"action": "keepequal", "source_labels": ["a", "b"], "target_label": "c"}, {"a": "x", "b": "y", "c": "x;y"}, True),
        ({"action": "keepequal", "source_labels": ["a"], "target_label": "b"}, {"a": "x"}, False),
        ({"action": "keepequal", "source_labels": ["a"], "target_label": "b"}, {}, True),
        ({"action": "dropequal", "source_labels": ["a"], "target_label": "b"}, {"a": "x", "b": "x"}, False),
        ({"action": "dropequal", "source_labels": ["a"], "target_label": "b"}, {"a": "x", "b": "y"}, True),
        ({"action": "keep_if_equal", "source_labels": ["a", "b", "c"]}, {"a": "x", "b": "x", "c": "x"}, True),
        ({"action": "keep_if_equal", "source_labels": ["a", "b", "c"]}, {"a": "x", "b": "x"}, False),
        ({"action": "keep_if_equal", "source_labels": ["a", "b"]}, {}, True),
        ({"action": "drop_if_equal", "source_labels": ["a", "b"]}, {"a": "x", "b": "x"}, False),
        ({"action": "drop_if_equal", "source_labels": ["a", "b"]}, {"a": "x"}, True),
        ({"action": "keep_if_contains", "source_labels": ["a", "b"], "target_label": "c"}, {"a": "x", "b": "y", "c": "-x-y-"}, True),
        ({"action": "keep_if_contains", "source_labels": ["a", "b"], "target_label": "c"}, {"a": "x", "b": "z", "c": "xy"}, False),
        ({"action": "keep_if_contains", "source_labels": ["a"], "target_label": "c"}, {}, True),
        ({"action": "drop_if_contains", "source_labels": ["a"], "target_label": "c"}, {"c": "x"}, False),
        ({"action": "drop_if_contains", "source_labels": ["a"], "target_label": "c"}, {"a": "y", "c": "x"}, True),
        ({"action": "keep_metrics", "regex": "up.*"}, {"__name__": "upper"}, True),
        ({"action": "keep_metrics", "regex": ["up", "down"]}, {"__name__": "left"}, False),
        ({"action": "drop_metrics", "regex": "up"}, {"__name__": "up"}, False),
        ({"action": "drop_metrics", "regex": "up"}, {}, True),
    ],
)  # fmt: skip
def test_the_other_rules_that_drop(rule: dict[str, Any], labels: dict[str, str], wanted: bool, dialect: str) -> None:
    assert is_kept(rule, labels, dialect) is wanted


def test_a_rule_that_takes_the_last_label_drops_the_target_but_in_prometheus() -> None:
    rules = [{"action": "labeldrop", "regex": ".*"}, {"target_label": "t", "replacement": "x"}]
    assert after(rules, {}) is None
    assert after(rules, {}, "prometheus") == [("t", "x")]


# ---- values ----


@pytest.mark.parametrize("text", ["", "a", "日本", "a;b"])
@pytest.mark.parametrize("modulus", [1, 2, 1000, 1 << 32, 1 << 63])
def test_hashmod_takes_the_hash_of_each_program(text: str, modulus: int) -> None:
    rule = {"action": "hashmod", "source_labels": ["a"], "target_label": "t", "modulus": modulus}
    xxh64 = {"": 0xEF46DB3751D8E999, "a": 0xD24EC4F1A98C6E5B, "日本": 0x80C2E40B8486AFAB, "a;b": 0xEDE028F38E3F9C9A}
    md5 = {"": 0xE9800998ECF8427E, "a": 0x31C399E269772661, "日本": 0xE67137D3514119B3, "a;b": 0x21960BF46F2EBD0A}
    assert value(rule, {"a": text}) == str(xxh64[text] % modulus)
    assert value(rule, {"a": text}, "prometheus") == str(md5[text] % modulus)


def test_the_remainder_is_a_signed_number_in_victoriametrics() -> None:
    rule = {"action": "hashmod", "source_labels": ["a"], "target_label": "t", "modulus": (1 << 64) - 1}
    assert value(rule, {"a": "a"}) == str(0xD24EC4F1A98C6E5B - (1 << 64))
    assert value(rule, {"a": ""}, "prometheus") == str(0xE9800998ECF8427E)


@pytest.mark.parametrize("dialect", BOTH)
@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [("aB1", "ab1", "AB1"), ("ÄßΣ", "äßσ", "ÄßΣ"), ("İı", "iı", "İI"), ("ŉﬁ", "ŉﬁ", "ŉﬁ"), ("ᾳ", "ᾳ", "ᾼ"), ("ΑΣ", "ασ", "ΑΣ")]
)  # fmt: skip
def test_case_changes_character_by_character(text: str, lower: str, upper: str, dialect: str) -> None:
    rule = {"source_labels": ["a"], "target_label": "t"}
    assert value({"action": "lowercase", **rule}, {"a": text}, dialect) == lower
    assert value({"action": "uppercase", **rule}, {"a": text}, dialect) == upper


@pytest.mark.parametrize(
    ("rule", "labels", "wanted"),
    [
        ({"regex": "-", "replacement": "_"}, {"a": "x-y-z"}, "x_y_z"),
        ({"regex": "(x)(y)?", "replacement": "[$1$2]"}, {"a": "xyx"}, "[xy][x]"),
        ({"regex": "-"}, {"a": "x", "t": "old"}, "old"),  # nothing changes: nothing is set
        ({}, {"a": "x", "t": "old"}, None),  # the default finds everything, and has no group
        ({"regex": "^x", "replacement": "y"}, {"a": "xx"}, "yx"),
        ({"regex": ".", "replacement": "y"}, {"a": "x\nx"}, "y\ny"),
    ],
)  # fmt: skip
def test_replace_all(rule: dict[str, Any], labels: dict[str, str], wanted: str | None) -> None:
    assert value({"action": "replace_all", "source_labels": ["a"], "target_label": "t", **rule}, labels) == wanted


# ---- names ----


@pytest.mark.parametrize(
    ("rule", "labels", "victoriametrics", "prometheus"),
    [
        ({"regex": "x_(.+)"}, {"x_a": "1", "x_b": "2"}, {"a": "1", "b": "2"}, {"a": "1", "b": "2"}),
        ({"regex": "x_(.+)", "replacement": "y_$1"}, {"x_a": "1"}, {"y_a": "1"}, {"y_a": "1"}),
        ({"regex": "x"}, {"x": "1"}, {}, {}),  # a name without text is no label
        # an empty label takes another away in VictoriaMetrics; in Prometheus there is none
        ({"regex": "x_(.+)"}, {"x_a": "", "a": "1"}, {"a": None}, {"a": "1"}),
        # the last one wins
        ({"regex": "x(.)_(.+)", "replacement": "$2"}, {"x2_a": "2", "x1_a": "1"}, {"a": "2"}, {"a": "2"}),
        # a label that has been overwritten is copied on in VictoriaMetrics
        ({"regex": "a(.*)b", "replacement": "a$1"}, {"aab": "1", "aabb": "2"}, {"aa": "1", "aab": "2"}, {"aa": "1", "aab": "2"}),
        ({"regex": "(.)(.*)", "replacement": "${1}x"}, {"b": "1", "bx": "2"}, {"bx": "1"}, {"bx": "2"}),
        ({"regex": ".*", "replacement": "${1}_"}, {"b": "1"}, {"b_": "1"}, {"b_": None}),
    ],
)  # fmt: skip
def test_labelmap(rule: dict[str, Any], labels: dict[str, str], victoriametrics: dict[str, str], prometheus: dict[str, str]) -> None:
    for dialect, wanted in (("victoriametrics", victoriametrics), ("prometheus", prometheus)):
        found = dict(after([{"action": "labelmap", **rule}], labels, dialect) or ())
        assert {name: found.get(name) for name in wanted} == wanted


def test_what_prometheus_has_set_comes_after_what_there_was() -> None:
    rules = [{"target_label": "a", "replacement": "new"}, {"action": "labelmap", "regex": "a|b", "replacement": "t"}]
    labels = {"a": "old", "b": "other"}
    assert dict(after(rules, labels) or ())["t"] == "other"
    assert dict(after(rules, labels, "prometheus") or ())["t"] == "new"


def test_labelmap_all_renames_and_names_may_repeat() -> None:
    rename = {"action": "labelmap_all", "regex": "-", "replacement": "_"}
    assert after([rename], {"x-y-z": "1", "a": "2"}) == [("a", "2"), ("x_y_z", "1")]
    twice = [{"action": "labelmap_all", "regex": "[12]", "replacement": ""}]
    assert after(twice, {"x1": "1", "x2": "2"}) == [("x", "1"), ("x", "2")]
    # rules read and set the first of them, an `if` asks all of them
    assert dict(after([*twice, {"source_labels": ["x"], "target_label": "t"}], {"x1": "1", "x2": "2"}) or ())["t"] == "1"
    asking = {"target_label": "t", "replacement": "found", "if": '{x="2"}'}
    assert dict(after([*twice, asking], {"x1": "1", "x2": "2"}) or ())["t"] == "found"
    pods = Pods()
    pods.put_all([pod("p")])
    (labels,) = pods.survivors(pods.relabeling(twice, {"x1": "1", "x2": "2"}))
    assert labels["x"] == "2"


@pytest.mark.parametrize("dialect", BOTH)
def test_labeldrop_and_labelkeep(dialect: str) -> None:
    labels = {"a": "1", "ab": "2", "b": "3"}
    assert after([{"action": "labeldrop", "regex": "a.*"}], labels, dialect) == [("b", "3")]
    assert after([{"action": "labeldrop", "regex": "a"}], labels, dialect) == [("ab", "2"), ("b", "3")]
    assert after([{"action": "labelkeep", "regex": "a.*|__.*"}], labels, dialect) == [("a", "1"), ("ab", "2")]


# ---- if ----


@pytest.mark.parametrize("dialect", BOTH)
def test_an_if_that_does_not_match_passes_the_rule_over_but_for_keep(dialect: str) -> None:
    yes, no = '{a="x"}', '{a="y"}'
    labels = {"a": "x"}
    assert value({"target_label": "t", "replacement": "v", "if": yes}, labels, dialect) == "v"
    assert value({"target_label": "t", "replacement": "v", "if": no}, labels, dialect) is None
    assert value({"target_label": "t", "replacement": "v", "if": [no, yes]}, labels, dialect) == "v"
    for rule, of_yes, of_no in (
        ({"action": "keep"}, True, False),
        ({"action": "keep_metrics"}, True, False),
        ({"action": "drop"}, False, True),
        ({"action": "drop_metrics"}, False, True),
        ({"action": "keep", "source_labels": ["a"], "regex": "z"}, False, False),
        ({"action": "drop", "source_labels": ["a"], "regex": "z"}, True, True),
        ({"action": "keepequal", "source_labels": ["a"], "target_label": "b"}, False, True),
    ):
        assert is_kept(rule | {"if": yes}, labels, dialect) is of_yes
        assert is_kept(rule | {"if": no}, labels, dialect) is of_no


# ---- graphite ----


@pytest.mark.parametrize(
    ("template", "name", "wanted"),
    [
        ("a.*.c", "a.b.c", ["b"]), ("*.*", "a.b", ["a", "b"]), ("*", "a", ["a"]), ("*", "", [""]), ("*", "a.b", None),
        ("a.*", "a.b.c", None), ("*.c", "a.b.c", None),
        ("a", "a", []), ("a", "ab", None), ("a*", "ab", ["b"]), ("*b", "aab", ["aa"]), ("*a*", "bab", ["b", "b"]), ("*b", "abb", None),
        ("**", "a", None),
        ("**", "a*", ["a"]), ("a.*.*.d", "a.b.c.d", ["b", "c"]), ("*.b.*", "x.b.", ["x", ""]),
    ],
)  # fmt: skip
def test_a_star_of_a_graphite_template_stands_for_no_dot(template: str, name: str, wanted: list[str] | None) -> None:
    assert GraphiteTemplate(template).match(name) == (None if wanted is None else [name, *wanted])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("$1", "x"), ("${2}-$1", "y-x"), ("$0", "x.y"), ("$3", "$3"), ("${3}", "${3}"), ("$$1", "$x"), ("$", "$"), ("$a", "$a"),
        ("${a}", "${a}"), ("${1", "${1"),
        ("${$1", "${$1"), ("$10", "$10"), ("$01", "x"), ("${+1}", "x"), ("${-1}", "${-1}"), ("a", "a"),
    ],
)  # fmt: skip
def test_references_to_what_a_star_stood_for(text: str, wanted: str) -> None:
    assert expand_matches(text, ["x.y", "x", "y"]) == wanted


def test_graphite_sets_labels_from_the_metric_name() -> None:
    rule = {"action": "graphite", "match": "*.b.*", "labels": {"t": "$1:$2", "u": "v"}}
    assert after([rule], {"__name__": "a.b.c"}) == [("__name__", "a.b.c"), ("t", "a:c"), ("u", "v")]
    assert after([rule], {"__name__": "a.c"}) == [("__name__", "a.c")]


# ---- what makes no sense ----

FULL: dict[str, dict[str, Any]] = {
    "replace": {"target_label": "t"},
    "replace_all": {"source_labels": ["a"], "target_label": "t"},
    "keep": {"source_labels": ["a"]},
    "drop": {"source_labels": ["a"]},
    "keepequal": {"target_label": "t"},
    "dropequal": {"target_label": "t"},
    "hashmod": {"source_labels": ["a"], "target_label": "t", "modulus": 2},
    "labelmap": {},
    "labelmap_all": {},
    "labeldrop": {},
    "labelkeep": {},
    "lowercase": {"source_labels": ["a"], "target_label": "t"},
    "uppercase": {"source_labels": ["a"], "target_label": "t"},
    "keep_if_equal": {"source_labels": ["a", "b"]},
    "drop_if_equal": {"source_labels": ["a", "b"]},
    "keep_if_contains": {"source_labels": ["a"], "target_label": "t"},
    "drop_if_contains": {"source_labels": ["a"], "target_label": "t"},
    "graphite": {"match": "*", "labels": {"a": "b"}},
    "keep_metrics": {"regex": "a"},
    "drop_metrics": {"regex": "a"},
}
OTHERS: dict[str, Any] = {
    "source_labels": ["a"], "target_label": "t", "regex": "a", "modulus": 3, "replacement": "x", "match": "*", "labels": {"a": "b"},
}  # fmt: skip
USED = {
    "replace": "source_labels regex target_label replacement", "replace_all": "source_labels regex target_label replacement",
    "keep": "source_labels regex", "drop": "source_labels regex", "keepequal": "source_labels target_label",
    "dropequal": "source_labels target_label",
    "hashmod": "source_labels target_label modulus", "labelmap": "regex replacement", "labelmap_all": "regex replacement",
    "labeldrop": "regex",
    "labelkeep": "regex", "lowercase": "source_labels target_label", "uppercase": "source_labels target_label",
    "keep_if_equal": "source_labels",
    "drop_if_equal": "source_labels", "keep_if_contains": "source_labels target_label", "drop_if_contains": "source_labels target_label",
    "graphite": "match labels", "keep_metrics": "regex", "drop_metrics": "regex",
}  # fmt: skip


def compiled(rule: dict[str, Any], dialect: str = "victoriametrics") -> None:
    compile_rule(RelabelConfig.from_dict(rule), dialect, Runs())


@pytest.mark.parametrize("dialect", BOTH)
@pytest.mark.parametrize("action", ACTIONS)
def test_what_an_action_has_no_use_for_is_refused(action: str, dialect: str) -> None:
    compiled({"action": action, **FULL[action]}, dialect)
    for key, given in OTHERS.items():
        if key not in USED[action].split():
            with pytest.raises(ConfigError, match=f"^{key}: action {action} has no use for it$"):
                compiled({"action": action, **FULL[action], key: given}, dialect)


@pytest.mark.parametrize("action", ACTIONS)
def test_what_an_action_needs_is_missed(action: str) -> None:
    for key in FULL[action]:
        rule = {"action": action, **FULL[action]}
        del rule[key]
        with pytest.raises(ConfigError, match=f"^{key}: missing; action {action} needs "):
            compiled(rule)


@pytest.mark.parametrize(
    ("rule", "dialect", "message"),
    [
        ({"action": "keep_if_equal", "source_labels": ["a"]}, "victoriametrics", "source_labels: action keep_if_equal needs two or more"),
        ({"action": "keep"}, "victoriametrics", "source_labels: missing; action keep needs them, or an if"),
        ({"action": "keep_metrics", "regex": ""}, "victoriametrics", "regex: missing; action keep_metrics needs it, or an if"),
        ({"action": "hashmod", "source_labels": ["a"], "target_label": "t", "modulus": 0}, "victoriametrics", "modulus: missing"),
        ({"action": "hashmod", "target_label": "t"}, "prometheus", "modulus: missing; action hashmod needs it"),
        ({"action": "keepequal", "target_label": "t", "regex": "(.*)"}, "victoriametrics", "regex: action keepequal has no use for it"),
        ({"action": "keepequal", "target_label": "t", "separator": "-"}, "prometheus", "separator: action keepequal has no use for it"),
        ({"action": "labeldrop", "regex": "a", "separator": ""}, "prometheus", "separator: action labeldrop has no use for it"),
        ({"action": "graphite", "match": "*", "labels": {"a": "b"}, "regex": "(.*)"}, "victoriametrics", "regex: action graphite"),
        ({"action": "labelmap", "replacement": ""}, "prometheus", "replacement: must name a label"),
        ({"target_label": "t", "regex": "("}, "victoriametrics", r"regex: missing \): \("),
        ({"target_label": "t", "regex": "(.*"}, "victoriametrics", "regex: missing"),
        ({"target_label": "t", "if": "{"}, "victoriametrics", "if: '{' is no series selector"),
        ({"target_label": "t", "if": '{a=~"("}'}, "victoriametrics", "if: .*regex: missing"),
        ({"action": "replace_all", "source_labels": ["a"], "target_label": "t", "regex": "*"}, "victoriametrics", "regex: no argument"),
    ],
)
def test_other_mistakes(rule: dict[str, Any], dialect: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        compiled(rule, dialect)


def test_prometheus_needs_less() -> None:
    for rule in (
        {"action": "keep"},
        {"action": "hashmod", "target_label": "t", "modulus": 2},
        {"action": "lowercase", "target_label": "t"},
        {"action": "keepequal", "target_label": "t", "separator": ";", "replacement": "$1"},
    ):
        compiled(rule, "prometheus")


@pytest.mark.parametrize("action", [action for action in ACTIONS if action not in VICTORIAMETRICS_ACTIONS])
def test_the_defaults_may_be_written_out_as_prometheus_does(action: str) -> None:
    rule = {"action": action, **FULL[action], "separator": ";", "replacement": "$1"}
    compiled(rule if action in ("keepequal", "dropequal") else {"regex": "(.*)", **rule})


def test_the_place_of_a_mistake_is_told() -> None:
    table = RuleTable(Symbols(), "victoriametrics")
    with pytest.raises(ConfigError, match=r"^relabel_configs\[1\]\.target_label: missing"):
        table.relabeling([RelabelConfig(target_label="a"), RelabelConfig()], {})


def test_what_prometheus_has_not_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    table = RuleTable(Symbols(), "prometheus")
    config = RelabelConfig(action="keep_if_equal", source_labels=("a", "b"), if_=("up",))
    with caplog.at_level(logging.WARNING, "fastdisco"):
        steps = [table.step(config) for _ in range(3)]
    assert len(set(map(id, steps))) == 1
    assert [record.message for record in caplog.records] == [
        "relabel_configs: Prometheus has no action keep_if_equal",
        "relabel_configs: Prometheus has no if, as in up",
    ]
