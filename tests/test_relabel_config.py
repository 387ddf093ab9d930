"""A rule as YAML gives it."""

from __future__ import annotations

from typing import Any

import pytest

from fastdisco.errors import ConfigError
from fastdisco.relabel_config import ACTIONS, RelabelConfig, load_rules


def test_there_are_twenty_actions() -> None:
    assert len(set(ACTIONS)) == len(ACTIONS) == 20


def test_what_is_not_given_has_its_default() -> None:
    rule = RelabelConfig.from_dict({"target_label": "a"})
    assert rule == RelabelConfig(action="replace", source_labels=(), separator=";", target_label="a", regex=None, replacement=None)
    assert RelabelConfig.from_dict({"action": None, "regex": None, "if": None, "target_label": "a"}) == rule


def test_all_keys() -> None:
    rule = RelabelConfig.from_dict(
        {
            "action": "Replace", "source_labels": ["a", "b"], "separator": "", "target_label": "t", "regex": "", "modulus": 3,
            "replacement": "",
            "if": "up", "match": "*", "labels": {"x": "$1"},
        }
    )  # fmt: skip
    assert rule == RelabelConfig("replace", ("a", "b"), "", "t", "", 3, "", ("up",), "*", (("x", "$1"),))


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("a", "a"), ("", ""), (["a", "b"], "a|b"), ([], ""), ([""], ""), (8080, "8080"), (True, "true"), (False, "false"),
        ([1, True, "a", None], "1|true|a|null"),
        (1.0, "1"), (1.5, "1.5"), (1e21, "1000000000000000000000"), ([["a", "b"], "c"], "a|b|c"),
    ],
)  # fmt: skip
def test_a_regex_may_be_a_list_and_of_other_types(written: Any, wanted: str) -> None:
    assert RelabelConfig.from_dict({"regex": written}).regex == wanted


def test_numbers_stand_for_their_text() -> None:
    rule = RelabelConfig.from_dict({"target_label": 1, "replacement": 9100, "source_labels": [2], "separator": 0.5})
    assert (rule.target_label, rule.replacement, rule.source_labels, rule.separator) == ("1", "9100", ("2",), "0.5")


@pytest.mark.parametrize(("written", "wanted"), [("up", ("up",)), (["up", '{a="b"}'], ("up", '{a="b"}')), (None, ())])
def test_an_if_is_one_selector_or_several(written: Any, wanted: tuple[str, ...]) -> None:
    assert RelabelConfig.from_dict({"if": written}).if_ == wanted


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"action": "keeps"}, "action: must be one of replace, .*, not 'keeps'"),
        ({"action": 1}, "action: must be a string, not an integer"),
        ({"source_labels": "a"}, "source_labels: must be a list"),
        ({"source_labels": [["a"]]}, r"source_labels\[0\]: must be a string"),
        ({"target_label": ["a"]}, "target_label: must be a string, not a list"),
        ({"replacement": True}, "replacement: must be a string; put it in quotes"),
        ({"separator": {}}, "separator: must be a string, not a mapping"),
        ({"regex": {"a": "b"}}, "regex: must be a string or a list of strings, not a mapping"),
        ({"modulus": "8"}, "modulus: must be a whole number, not '8'"),
        ({"modulus": True}, "modulus: must be a whole number, not True"),
        ({"modulus": -1}, "modulus: must be a whole number, not -1"),
        ({"modulus": 1 << 64}, "modulus: must be a whole number"),
        ({"if": []}, "if: must be a series selector or a list of them"),
        ({"if": [1]}, "if: must be a series selector"),
        ({"if": {"a": "b"}}, "if: must be a series selector"),
        ({"labels": []}, "labels: must be a mapping, not a list"),
        ({"labels": {"a": []}}, "labels.a: must be a string, not a list"),
        ({"match": 1.5, "sourcelabels": []}, "sourcelabels: unknown key"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_key(mapping: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        RelabelConfig.from_dict(mapping)


def test_mistakes_are_told_with_their_place() -> None:
    with pytest.raises(ConfigError, match=r"^relabel_configs\[1\]\.action: must be one of"):
        load_rules([{"target_label": "a"}, {"action": "x"}])
    with pytest.raises(ConfigError, match=r"^relabel_configs\[0\]: must be a mapping, not a string"):
        load_rules(["a"])
    with pytest.raises(ConfigError, match=r"^global.relabel_configs: must be a list, not a mapping"):
        load_rules({}, path="global.relabel_configs")
    assert load_rules(None) == load_rules([]) == ()


def test_rules_made_in_python_are_checked_too() -> None:
    assert RelabelConfig(source_labels=["a"], labels={"a": "b"}) == RelabelConfig(source_labels=("a",), labels=(("a", "b"),))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="source_labels: must be a list of strings, not 'a'"):
        RelabelConfig(source_labels="a")  # type: ignore[arg-type]
    assert RelabelConfig(if_="up", regex=["a", 1], replacement=9100) == RelabelConfig(if_=("up",), regex="a|1", replacement="9100")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"modulus": "4"}, "modulus: must be a whole number, not '4'"),
        ({"modulus": 4.0}, "modulus: must be a whole number, not 4.0"),
        ({"modulus": 1 << 64}, "modulus: must be a whole number"),
        ({"modulus": 10**5000}, "modulus: must be a whole number, not a longer one"),
        ({"replacement": 10**5000}, "must be in quotes"),
        ({"separator": None}, "separator: must be a string"),
        ({"separator": "\ud800"}, "separator: no valid text"),
        ({"source_labels": ("\ud800",)}, "source_labels: no valid text"),
        ({"regex": "\ud800"}, "regex: no valid text"),
        ({"action": None}, "action: must be one of"),
        ({"source_labels": 5}, "source_labels: must be a list of strings"),
        ({"labels": 5}, "labels: must be pairs"),
        ({"labels": ["ab"]}, "labels: must be pairs"),
        ({"target_label": True}, "target_label: must be a string"),
    ],
)
def test_no_value_of_a_wrong_type_gets_as_far_as_a_target(values: dict[str, Any], message: str) -> None:
    """There it would fail for each object, long after whoever wrote it has gone."""
    with pytest.raises(ConfigError, match=message):
        RelabelConfig(**values)


def test_a_list_that_holds_itself_is_refused() -> None:
    """YAML's aliases can make one."""
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ConfigError, match="without end"):
        RelabelConfig.from_dict({"regex": endless})


def test_equal_rules_are_one_key() -> None:
    assert len({RelabelConfig(action="KEEP", source_labels=("a",)), RelabelConfig(action="keep", source_labels=("a",))}) == 1
