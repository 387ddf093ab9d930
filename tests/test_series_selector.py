"""The `if` of a rule: MetricsQL's series selectors."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fastdisco.errors import ConfigError
from fastdisco.regexes import Runs
from fastdisco.series_selector import SeriesSelector


def matches(text: str, labels: Mapping[str, str]) -> bool:
    selector = SeriesSelector(text, Runs())
    return selector.matches([(labels.get(label, ""),) for label in selector.labels])


LABELS = {"a": "x", "b": "y", "__name__": "up", "or": "o", "a.b": "dot", "a b": "space", "é": "e"}


@pytest.mark.parametrize(
    "text",
    [
        '{a="x"}', "{a='x'}", "{a=`x`}", '{ a = "x" , }', '{a="x",b="y"}', '{a!="y"}', '{a=~"x|y"}', '{a=~".*"}', '{a!~"y"}',
        '{nothing=""}',
        '{nothing!="x"}', '{nothing=~"|x"}', '{nothing!~".+"}', "up", 'up{a="x"}', "up{}", '{__name__="up"}', '{"up"}', '{"up",a="x"}',
        '{up="" or a="x"}',
        '{a="y" or b="y"}', '{a="y" OR b="y"}', 'up{a="y" or b="y"}', '{a="y" or a="z" or a="x"}', '{or="o"}', '{a="y" or or="o"}',
        '{a.b="dot"}',
        '{"a b"="space"}', '{a\\x20b="space"}', '{é="e"}', '{a="\\x78"}', '{a="\\170"}', '{a="x" # comment\n}', '{__name__!="down"}',
        '{__name__=~"u."}',
        '{a="" + "x"}', '{__name__=~"u.*",a="x"}', '{__name__!=""}', 'up{__name__="up"}',
    ],
)  # fmt: skip
def test_what_matches(text: str) -> None:
    assert matches(text, LABELS)


@pytest.mark.parametrize(
    "text",
    [
        '{a="y"}', '{a=""}', '{a="x",b="x"}', '{a!="x"}', '{a=~"y"}', '{a!~"x"}', '{a=~"X"}', '{nothing="x"}', '{nothing=~".+"}', "down",
        'down{a="x"}',
        'up{a="y"}', '{"down"}', '{a="y" or b="x"}', 'down{a="x" or b="y"}', '{__name__=""}', '{__name__!="up"}',
        # the other alternative takes the name as well
        '{__name__="down",a="y" or a="x"}', '{a="x" or "down",a="y"}',
    ],
)  # fmt: skip
def test_what_does_not(text: str) -> None:
    assert not matches(text, LABELS)


def test_a_metric_has_no_empty_name() -> None:
    """As VictoriaMetrics has it: what is not there is not equal to an empty name, but a regular expression sees an empty text."""
    assert not matches('{__name__=""}', {})
    assert matches('{__name__!=""}', {})
    assert matches('{__name__=~"|a"}', {})


def test_strings_have_the_escapes_of_go() -> None:
    labels = {"a": '\n\t\\"é日😀', "b": "'"}
    assert matches('{a="\\n\\t\\\\\\"\\u00e9\\xe6\\x97\\xa5\\U0001f600"}', labels)
    assert matches("{b='\\''}", labels)


def test_of_names_that_repeat_any_value_counts() -> None:
    selector = SeriesSelector('{a="x",b!="y"}', Runs())
    assert selector.matches([("z", "x"), ("",)])
    assert not selector.matches([("z", "x"), ("a", "y")])


def test_it_tells_which_labels_it_reads() -> None:
    assert SeriesSelector('up{b="x" or a="y",b=""}', Runs()).labels == ("b", "a", "__name__")


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "}", "{}", "{a}", '{a="x"', '{a=x}', '{="x"}', '{a=="x"}', '{a="x" b="y"}', '{,a="x"}', '{a="x",,b="y"}', '{or}',
        '{a="x" or}',
        '{a="x", or b="y"}', 'up{a="x"}[5m]', "up + down", "sum(up)", "up down", '{a="x"} or {b="y"}', '{a=~"("}', '{a="\\q"}', "{a=\"x}",
        "1", 'up{"down"}',
        '{a="x" or b="y" or {}}', "{a='x' +}", "up{__name__='down'}",
    ],
)  # fmt: skip
def test_what_is_no_selector_is_told(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^if: "):
        SeriesSelector(text, Runs())


def test_a_comment_line_costs_no_more_than_its_length() -> None:
    """Followed by what is no token, it was tried in every division of its characters."""
    with pytest.raises(ConfigError, match="no series selector"):
        SeriesSelector('{a="b"} ' + "#" * 5000 + "\n;", Runs())
