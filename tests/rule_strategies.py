"""Random relabeling rules, and labels that they often meet: few names and few values, with what is awkward among them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fastdisco.relabel_config import ACTIONS, PROMETHEUS_ACTIONS

Rule = dict[str, Any]

# What pods of these tests carry as labels and annotations; also the names that rules write.
KEYS = ["a", "b", "ab", "x_a", "app"]
META = [f"__meta_kubernetes_pod_label_{key}" for key in KEYS]
OWN = ["__meta_kubernetes_pod_name", "__meta_kubernetes_namespace", "__meta_kubernetes_pod_phase", "__address__", "job", "__name__"]
WRITTEN = ["a", "b", "ab", "x_a", "t", "u", "x_t", "__tmp_a", "__name__", "__meta_a"]
NAMES = [*META, *META, *OWN, *WRITTEN]
VALUES = ["", "a", "b", "ab", "a.b", "a.b.c", "x", "A-ß", "é日本", "$1", "a\nb", "aa", "a;b", "true", "1"]

REGEXES: list[Any] = [
    "a", "a|b", "(a|b)", "a.*", "a.+", ".*b", ".+b", "a.*b", "(.*)", ".*", ".+", "(.+)", "", "(a)(.*)", "(?P<first>[a-z]+)(.*)",
    "([^;]*);(.*)",
    "^a$", "^a|b$", "a\\.b", "a\\.(.*)", "(a)?(b)?.*", "[ab]+", "(?i)A.*", "(\\w+)\\W(\\w+)", "x|", "(?s)a.b", "(.)(.)?.*", "a|b.+", "true",
    ["a", "b.*"], ["a", 1, True], [""], ["(a)", "b"],
]  # fmt: skip
"""None of those in which vmagent's shortcuts find something else than the expression says; docs/relabeling.md has them."""
NAME_REGEXES: list[Any] = [
    "__meta_kubernetes_pod_label_(.+)", "__meta_kubernetes_pod_label_(.*)", "(.*)_(a|b)", "(.)", "(..)", "(.*)a", "a", "a|b", "x_(.*)",
    "(x_)?(.+)",
    "__meta_kubernetes_pod_(label|annotation)_(a.*)", "__meta_.*", "[a-z].*", "(a|b|ab|x_a)", ".*", "(.*)", "(.+)_.*", "", ["a", "x_.*"],
    "(?P<n>t|u)", "__tmp.*", "(__name__|a)", "__meta_kubernetes_pod_label_(a)|__meta_kubernetes_namespace",
]  # fmt: skip
SEARCHES: list[Any] = [
    "a", ".", "a|b", "(a)(b)?", "", "b*", "[^a]", "^a", "b$", "_", "__meta_kubernetes_pod_label_", "(.*)", ".*", "(\\w)\\.", "x*",
]  # fmt: skip
TEMPLATES = [
    "$1", "$1", "$2", "${1}", "x$1", "x_$1", "${1}_$2", "$0", "${first}", "$$1", "$", "a$", "$1$2", "", "t", "a", "${", "${1", "$1é",
    "$01", "$9",
    "$x", "-$1-", "$$", "a\\$1",
]  # fmt: skip
REPLACEMENTS = [*TEMPLATES, "{{a}}", "{{b}}-$1", "{{a", "}}{{t}}{{a}}", "$1{{__meta_kubernetes_pod_label_a}}", "{{a}}$1", "{{}}"]
NAME_TEMPLATES = ["$1", "$1", "$2", "x_$1", "t", "a", "${1}", "$1$2", "x_$2", "__tmp_$1", "${n}_", "", "$$"]
TARGETS = [*WRITTEN, *WRITTEN, "x_$1", "$1", "${2}", "t$$", "$"]
SELECTORS = [
    '{a="a"}', '{b!="a"}', '{t=~"a.*"}', '{__meta_kubernetes_pod_label_a=~"a|b"}', '{__meta_kubernetes_pod_label_b!~".+"}', '{a="a",b="b"}',
    '{a="a" or b="b"}', '{a="a",t="" or __meta_kubernetes_pod_label_app=~".*b" or b!=""}', "a", 'a{b="b"}', '{__name__!="a"}',
    '{nothing=""}', '{nothing=~"|x"}', '{nothing!=""}', '{__meta_kubernetes_pod_label_ab="a\\nb"}', '{__meta_kubernetes_namespace="web"}',
]  # fmt: skip
MATCHES = ["*", "a.*", "*.b", "a.*.c", "*.*", "a", "*.*.*", "a.b.c", "*b*"]
GRAPHITE_TEXTS = ["$1", "${1}", "$2-$1", "x", "$0", "$7", "$", "$$1", "${x}"]


def names() -> SearchStrategy[str]:
    return st.sampled_from(NAMES)


@st.composite
def rule(draw: DrawFn, actions: tuple[str, ...] = ACTIONS, conditions: bool = True) -> Rule:
    """One rule that makes sense, as YAML would give it."""
    action = draw(st.sampled_from(actions))
    made: Rule = {"action": action} if action != "replace" or draw(st.booleans()) else {}
    if conditions and draw(st.integers(0, 4)) == 0:
        made["if"] = draw(st.one_of(st.sampled_from(SELECTORS), st.lists(st.sampled_from(SELECTORS), min_size=1, max_size=3)))

    def maybe(key: str, values: list[Any], of: int = 2) -> None:
        if draw(st.integers(1, of)) > 1:
            made[key] = draw(st.sampled_from(values))

    def sources(least: int = 0, most: int = 3) -> None:
        made["source_labels"] = draw(st.lists(names(), min_size=least, max_size=most))
        maybe("separator", [";", "", ".", "--"])

    match action:
        case "replace":
            sources()
            made["target_label"] = draw(st.sampled_from(TARGETS))
            maybe("regex", REGEXES)
            maybe("replacement", REPLACEMENTS, 3)
        case "replace_all":
            sources(1)
            made["target_label"] = draw(st.sampled_from(WRITTEN))
            maybe("regex", SEARCHES, 8)
            maybe("replacement", TEMPLATES, 4)
        case "keep" | "drop":
            sources(1)
            maybe("regex", REGEXES, 12)
        case "keep_metrics" | "drop_metrics":
            made["regex"] = draw(st.sampled_from([one for one in REGEXES if one not in ("", [""])]))
        case "keepequal" | "dropequal":
            sources(0, 2)
            made["target_label"] = draw(names())
        case "keep_if_equal" | "drop_if_equal":
            made["source_labels"] = draw(st.lists(names(), min_size=2, max_size=3))
        case "keep_if_contains" | "drop_if_contains":
            made["source_labels"] = draw(st.lists(names(), min_size=1, max_size=3))
            made["target_label"] = draw(names())
        case "hashmod":
            sources(1)
            made["target_label"] = draw(st.sampled_from(WRITTEN))
            made["modulus"] = draw(st.sampled_from([1, 2, 3, 10, 1 << 32, (1 << 64) - 1]))
        case "lowercase" | "uppercase":
            sources(1)
            made["target_label"] = draw(st.sampled_from(WRITTEN))
        case "labelmap":
            maybe("regex", NAME_REGEXES, 12)
            maybe("replacement", NAME_TEMPLATES, 3)
        case "labelmap_all":
            maybe("regex", SEARCHES, 12)
            maybe("replacement", NAME_TEMPLATES, 4)
        case "labeldrop" | "labelkeep":
            # what keeps nothing, or drops everything, ends the list: seldom
            kept = ["(__|job|a|t).*", "__.*", "[^x].*", *NAME_REGEXES] if action == "labelkeep" else NAME_REGEXES[:-1]
            made["regex"] = draw(st.sampled_from(kept))
        case _:
            made["match"] = draw(st.sampled_from(MATCHES))
            made["labels"] = {draw(st.sampled_from(WRITTEN)): draw(st.sampled_from(GRAPHITE_TEXTS))}
    return made


# Rules that drop are a minority, so that lists have an end worth comparing; those that write more often than the others.
_WEIGHTED = (
    *ACTIONS, "replace", "replace", "replace", "replace_all", "labelmap", "labelmap", "labelmap_all", "labeldrop", "labeldrop", "hashmod",
    "lowercase", "uppercase", "graphite", "graphite",
)  # fmt: skip


def rules(most: int = 6) -> SearchStrategy[list[Rule]]:
    """Rules of VictoriaMetrics."""
    return st.lists(rule(_WEIGHTED), max_size=most)


def prometheus_rules(most: int = 6) -> SearchStrategy[list[Rule]]:
    """Rules that Prometheus loads."""
    return st.lists(rule(PROMETHEUS_ACTIONS, conditions=False).map(_for_prometheus), max_size=most)


def _for_prometheus(made: Rule) -> Rule:
    if isinstance(made.get("regex"), list):
        made["regex"] = "|".join("true" if one is True else str(one) for one in made["regex"])
    if made.get("action") in ("keepequal", "dropequal"):
        made.pop("separator", None)
    if made.get("action") == "labelmap" and made.get("replacement") == "":
        made["replacement"] = "t"
    return made


def label_sets() -> SearchStrategy[dict[str, str]]:
    """Labels as a rule may find them; each has an address and a job."""
    found = st.dictionaries(names(), st.sampled_from(VALUES), max_size=8)
    return found.map(lambda labels: {"__address__": "127.0.0.1:80", "job": "j"} | labels)
