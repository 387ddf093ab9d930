"""Which labels of a target are exported, and how an address is taken apart."""

from __future__ import annotations

from typing import Any

import pytest

from fastdisco.regexes import Runs
from fastdisco.relabel_config import load_rules
from fastdisco.rules import compile_rule
from fastdisco.sidecar.label_choice import final_label, split_address, used_label

M = "__meta_kubernetes_"


@pytest.mark.parametrize(
    ("rules", "used"),
    [
        ([], set()),
        ([{"source_labels": [f"{M}a", f"{M}b"], "target_label": "x"}], {"a", "b"}),
        ([{"action": "labelmap", "regex": f"{M}(a.*)"}], {"a", "ab"}),
        ([{"action": "labelmap_all", "regex": "kubernetes_b", "replacement": "x"}], {"b"}),
        ([{"action": "labeldrop", "regex": f"{M}a"}, {"action": "labelkeep", "regex": "b"}], set()),
        ([{"action": "drop", "if": f'{{{M}b="x"}}'}], {"b"}),
        ([{"target_label": "x", "replacement": f"{{{{{M}c}}}}"}], {"c"}),
        ([{"action": "keep_if_equal", "source_labels": [f"{M}a", f"{M}c"]}], {"a", "c"}),
    ],
)
def test_a_meta_label_is_used_if_a_rule_can_read_copy_or_rename_it(rules: list[dict[str, Any]], used: set[str]) -> None:
    """All others have no effect on what the scraper makes of the target."""
    wanted = used_label([compile_rule(rule, "victoriametrics", Runs()) for rule in load_rules(rules)])
    assert {name for name in ("a", "ab", "b", "c") if wanted(M + name)} == used
    assert all(map(wanted, ("__address__", "instance", "__param_x")))


def test_final_labels_are_all_but_meta_and_temporary_ones() -> None:
    """Labels of special meaning to either peer are among them."""
    kept = "__scheme__ __metrics_path__ __param_a __scrape_interval__ __scrape_timeout__ job instance __series_limit__ __stream_parse__ app"
    assert all(map(final_label, kept.split()))
    assert not any(map(final_label, ("__meta_x", "__tmp", "__tmp_hash")))


@pytest.mark.parametrize(
    ("address", "path", "expected"),
    [
        ("a:80", "/m", {"__address__": "a:80", "__metrics_path__": "/m"}),
        ("https://a/b/c", "/m", {"__address__": "a", "__scheme__": "https", "__metrics_path__": "/b/c"}),
        ("http://a:1/?x=1&x=2", "/m", {"__address__": "a:1", "__scheme__": "http", "__metrics_path__": "/", "__param_x": "1"}),
        ("a?x=%26&y=", "/m", {"__address__": "a", "__metrics_path__": "/", "__param_x": "&", "__param_y": ""}),
        ("[::1]:80/p", "/m", {"__address__": "[::1]:80", "__metrics_path__": "/p"}),
        ("a", "/m?x=1", {"__address__": "a", "__metrics_path__": "/m", "__param_x": "1"}),
    ],
)  # fmt: skip
def test_what_an_address_holds_besides_goes_into_labels_of_its_own(address: str, path: str, expected: dict[str, str]) -> None:
    """As vmagent scrapes it; Prometheus refuses a path in an address."""
    assert split_address({"__address__": address, "__metrics_path__": path}) == expected
