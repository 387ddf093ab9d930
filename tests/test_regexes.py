"""Regular expressions and templates: anchoring, what needs no engine, and how Go expands a template."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastdisco.errors import ConfigError
from fastdisco.regexes import Groups, Pattern, Runs, Search, Template, compile_re2, matches_anything, without_anchors


def groups(*values: str, **named: str) -> Groups:
    return lambda name: (values[name] if name < len(values) else "") if isinstance(name, int) else named.get(name, "")


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        ("", ""), ("plain", "plain"), ("$1", "one"), ("${1}", "one"), ("$1$2", "onetwo"), ("<$1>", "<one>"), ("$0", "all"),
        ("$name", "named"),
        ("${name}x", "namedx"), ("$namex", ""), ("$1x", ""), ("${1}x", "onex"), ("$1-x", "one-x"), ("$9", ""), ("$$1", "$1"),
        ("$$$1", "$one"),
        ("$", "$"), ("a$", "a$"), ("$-", "$-"), ("$ 1", "$ 1"), ("${", "${"), ("${1", "${1"), ("${}", "${}"), ("${1-}", "${1-}"),
        ("$01", ""),
        ("${00}", ""), ("$1é", ""), ("$1²", "one²"), ("$_", ""), ("$1٣", ""), ("$1234567890", ""), ("\\$1", "\\one"),
    ],
)  # fmt: skip
def test_a_template_expands_as_in_go(template: str, wanted: str) -> None:
    assert Template(template).expand(groups("all", "one", "two", name="named")) == wanted


@pytest.mark.parametrize(
    ("expression", "matching", "others"),
    [
        ("", [""], ["a", "\n"]),
        ("a", ["a"], ["", "aa", "ba", "a\n"]),
        ("a|b|", ["a", "b", ""], ["ab", "|"]),
        ("(a|b)", ["a", "b"], ["", "ab"]),
        ("(?:a|b)", ["a", "b"], ["", "ab"]),
        ("^a|b$", ["a", "b"], ["ab", "xb", "ax"]),
        ("^^a$$", ["a"], ["^a", "a$"]),
        ("a\\$", ["a$"], ["a"]),
        ("a\\.b", ["a.b"], ["axb"]),
        ("a.b", ["axb", "a.b", "a\nb"], ["ab", "axxb"]),
        (".*", ["", "a", "\n", "a\nb"], []),
        (".+", ["a", "\n"], [""]),
        ("(.*)", ["", "a\nb"], []),
        ("a.*", ["a", "ab", "a\n"], ["", "ba"]),
        ("a.+", ["ab", "a\n"], ["a"]),
        (".*a", ["a", "ba"], ["ab"]),
        ("a.*a", ["aa", "aba"], ["a", "ab"]),
        ("a(.+)a", ["aba"], ["aa", "a"]),
        ("(?i)A", ["a", "A"], ["b"]),
        ("日本.*", ["日本", "日本x"], ["日"]),
        ("[ab]+", ["ab"], ["abc", ""]),
    ],
)
def test_the_whole_text_has_to_match(expression: str, matching: list[str], others: list[str]) -> None:
    pattern = Pattern(expression, Runs())
    assert [text for text in matching + others if pattern.matches(text)] == matching
    assert [text for text in matching + others if pattern.groups(text) is not None] == matching


@pytest.mark.parametrize("expression", ["a", "a|b", "", "(a|b)", "(?:a)", "a\\.b|c", "a.*", ".+b", "a(.*)b", ".*", "^a$", "日|本"])
def test_plain_expressions_need_no_engine(expression: str) -> None:
    runs = Runs()
    pattern = Pattern(expression, runs)
    for text in ("", "a", "ab", "axb", "日"):
        pattern.matches(text)
        pattern.groups(text)
    assert not pattern.needs_re2
    assert runs.count == 0


@pytest.mark.parametrize("expression", ["a.b", "[ab]", "a?", "(a)(.*)", "(?i)a", "(a|b).*", "a|b.*", "\\d", "a{2}", "a^b", "(?P<x>a)"])
def test_the_others_run_re2_once_each_time(expression: str) -> None:
    runs = Runs()
    pattern = Pattern(expression, runs)
    pattern.matches("a")
    pattern.groups("b")
    assert pattern.needs_re2
    assert runs.count == 2


@pytest.mark.parametrize(
    ("expression", "text", "wanted"),
    [
        ("a", "a", ["a", "", ""]), ("(a|b)", "b", ["b", "b", ""]), ("(?:a|b)", "b", ["b", "", ""]), ("a(.*)c", "abc", ["abc", "b", ""]),
        ("a.*c", "abc", ["abc", "", ""]), ("(.+)", "x", ["x", "x", ""]), ("(a)|(b)", "b", ["b", "", "b"]),
        ("(?P<n>a)(.)", "ab", ["ab", "a", "b"]),
    ],
)  # fmt: skip
def test_groups_have_numbers(expression: str, text: str, wanted: list[str]) -> None:
    found = Pattern(expression, Runs()).groups(text)
    assert found is not None
    assert [found(0), found(1), found(2)] == wanted
    assert found(99) == found("nothing") == ""


def test_groups_have_names() -> None:
    found = Pattern("(?P<word>[a-z]+)(?P<rest>.*)", Runs()).groups("ab1")
    assert found is not None
    assert (found("word"), found("rest")) == ("ab", "1")


@pytest.mark.parametrize("expression", ["(.*)", "x?(.*)", "a(.+)", "(a)(.*)"])
def test_groups_may_be_kept_within_a_line(expression: str) -> None:
    pattern = Pattern(expression, Runs())
    assert pattern.groups("a\nb") is not None
    assert pattern.groups("a\nb", newlines=False) is None
    assert pattern.groups("ab", newlines=False) is not None


@pytest.mark.parametrize(
    ("expression", "template", "text", "wanted"),
    [
        ("a", "b", "banana", "bbnbnb"), ("", "-", "ab", "-a-b-"), ("x*", "-", "abxd", "-a-b-d-"),
        ("(a)(b)?", "[$1$2]", "abaab", "[ab][a][ab]"),
        ("^a", "x", "aa", "xa"), ("b$", "x", "bb", "bx"), (".", "x", "a\nb", "x\nx"), (".*", "x", "ab\nc", "x\nx"),
        ("(.*)", "$1", "ab", "ab"),
        ("é", "e", "éé日", "ee日"), ("", "-", "é日", "-é-日-"), ("a|", "x", "ba", "xbx"),
        ("nothing", "x", "ab", "ab"), ("a", "$$", "a", "$"),
        ("\\b", "|", "a b", "|a| |b|"),
    ],
)  # fmt: skip
def test_replacing_all_is_as_in_go(expression: str, template: str, text: str, wanted: str) -> None:
    assert Search(expression, Runs()).replace_all(text, Template(template)) == wanted


@pytest.mark.parametrize("expression", ["(", "a)", "[", "*", "a{2,1}", "\\", "(?P<a", "\\8", "(?=a)", "x|)", "^*"])
def test_what_is_no_expression_is_told(expression: str) -> None:
    with pytest.raises(ConfigError, match=r"^regex: ."):
        Pattern(expression, Runs())


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        (".*", True), ("(.*)", True), ("^.*$", True), ("((.*))", True), ("(?:.*)", True), ("(?P<all>.*)", True), ("(?i).*", True),
        (".+", False), ("", False),
        ("a.*", False), ("(.*)a", False),
    ],
)  # fmt: skip
def test_some_expressions_are_other_spellings_of_the_default(expression: str, wanted: bool) -> None:
    assert matches_anything(expression) is wanted


@pytest.mark.parametrize(
    ("expression", "wanted"), [("^a$", "a"), ("^^a$$", "a"), ("a\\$", "a\\$"), ("$", ""), ("a^", "a^"), ("\\^a", "\\^a")]
)
def test_anchors_around_it_mean_nothing_more(expression: str, wanted: str) -> None:
    assert without_anchors(expression) == wanted


PARTS = st.sampled_from(["a", "b", ".*", ".+", "(.*)", "|", "(a|b)", "a?", ".", "[ab]", "\\.", "\n", "é"])


@given(st.lists(PARTS, max_size=4).map("".join), st.text(alphabet="ab.\né", max_size=5))
def test_the_short_ways_find_what_python_finds(expression: str, text: str) -> None:
    match = re.fullmatch(expression, text, re.DOTALL)
    pattern = Pattern(expression, Runs())
    found = pattern.groups(text)
    assert pattern.matches(text) == (match is not None) == (found is not None)
    if match is not None and found is not None:
        assert [found(number) for number in range(match.re.groups + 1)] == [match[number] or "" for number in range(match.re.groups + 1)]


@pytest.mark.parametrize("expression", [r"a\|b", r"x|a\|b", r"(x|a\|b)", r"a\\|b", r"a\\\|b", r"|a\|", r"a||b", r"\||b"])
def test_an_escaped_pipe_is_text(expression: str) -> None:
    """Plain alternatives are told apart as RE2 does."""
    bare = compile_re2(f"^(?s:{expression})$")
    for text in ("a|b", "a", "b", "x", "a\\", "|", "", "a\\|b", "|a|", "a|"):
        assert Pattern(expression, Runs()).matches(text) == (bare.match(text) is not None), text
