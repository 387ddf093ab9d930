"""The labels before the first rule, and what is made of those after the last one."""

from __future__ import annotations

from typing import Any

import pytest

from fastdisco.errors import ConfigError
from fastdisco.target_labels import (
    TargetDefaults,
    default_labels,
    prometheus_instance,
    prometheus_refusal,
    stored_labels,
    victoriametrics_instance,
)


def test_the_labels_before_the_first_rule() -> None:
    defaults = TargetDefaults("https", "/m", "1d", "30s", {"module": ("x", "y"), "none": ()})
    assert default_labels("j", defaults, "victoriametrics") == {
        "job": "j", "__scheme__": "https", "__metrics_path__": "/m", "__scrape_interval__": "24h0m0s", "__scrape_timeout__": "30s",
        "__param_module": "x",
    }  # fmt: skip
    assert default_labels("j", defaults, "prometheus")["__scrape_interval__"] == "1d"


def test_what_they_are_if_nothing_is_said() -> None:
    labels = default_labels("j", TargetDefaults(), "victoriametrics")
    assert labels == {
        "job": "j", "__scheme__": "http", "__metrics_path__": "/metrics", "__scrape_interval__": "1m0s", "__scrape_timeout__": "10s",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("written", "go", "prometheus"),
    [
        ("1ms", "1ms", "1ms"), ("500ms", "500ms", "500ms"), ("1s", "1s", "1s"), (1.5, "1.5s", "1s500ms"), ("90s", "1m30s", "1m30s"),
        ("1h", "1h0m0s", "1h"), ("1h1ms", "1h0m0.001s", "1h1ms"), ("26h", "26h0m0s", "1d2h"), ("1w", "168h0m0s", "1w"),
        ("8d", "192h0m0s", "8d"),
        ("1y", "8760h0m0s", "1y"), (0.25, "250ms", "250ms"), (0.0015, "1.5ms", "2ms"), (0.0000015, "1.5µs", "0s"), (61, "1m1s", "1m1s"),
    ],
)  # fmt: skip
def test_durations_are_written_as_each_program_does(written: float | str, go: str, prometheus: str) -> None:
    defaults = TargetDefaults(scrape_interval=written)
    assert default_labels("j", defaults, "victoriametrics")["__scrape_interval__"] == go
    assert default_labels("j", defaults, "prometheus")["__scrape_interval__"] == prometheus


def test_nobody_waits_longer_than_until_the_next_scrape() -> None:
    assert TargetDefaults(scrape_interval="5s").scrape_timeout == 5.0
    assert TargetDefaults(scrape_interval="5s", scrape_timeout="1s").scrape_timeout == 1.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"scrape_interval": "often"}, "scrape_interval: must be a duration"),
        ({"scrape_interval": 0}, "scrape_interval: must be above 0"),
        ({"scrape_timeout": -1.0}, "scrape_timeout: must be above 0"),
        ({"scheme": "ftp"}, "scheme: must be http or https, not 'ftp'"),
    ],
)
def test_mistakes_are_told(values: dict[str, float | str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TargetDefaults(**values)  # type: ignore[arg-type]


def test_the_scheme_may_be_in_capitals() -> None:
    assert TargetDefaults("HTTPS").scheme == "https"


@pytest.mark.parametrize(
    ("address", "scheme", "wanted"),
    [
        ("a:1", "http", "a:1"), ("a", "http", "a:80"), ("a", "", "a:80"), ("a", "https", "a:443"), ("[::1]", "http", "[::1]"),
        ("https://a", "http", "a:443"),
        ("http://a", "https", "a:80"), ("a/m", "http", "a:80"), ("a:1/m", "http", "a:1"), ("https://a:1/m", "http", "a:1"),
        ("http://https://a", "http", "https:"), ("ftp://a", "http", "ftp:"),
    ],
)  # fmt: skip
def test_the_instance_of_an_address(address: str, scheme: str, wanted: str) -> None:
    assert victoriametrics_instance(address, scheme) == wanted
    assert prometheus_instance(address, scheme) == address


def test_samples_are_stored_without_labels_of_special_meaning() -> None:
    assert stored_labels({"job": "j", "__address__": "a", "__param_x": "y", "_a": "b"}) == {"job": "j", "_a": "b"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"scrape_interval": float("nan")}, "scrape_interval: must be from a nanosecond"),
        ({"scrape_interval": float("inf")}, "scrape_interval: must be from a nanosecond"),
        ({"scrape_timeout": 1e300}, "scrape_timeout: must be from a nanosecond"),
        ({"scrape_interval": 1e-300}, "scrape_interval: must be from a nanosecond"),
        ({"metrics_path": None}, "metrics_path: must be a string, not None"),
        ({"scheme": 5}, "scheme: must be a string, not 5"),
        ({"params": None}, "params: must be a mapping, not None"),
        ({"params": {"module": "http"}}, "params.module: must be a list of strings, not 'http'"),
        ({"params": {"module": [1]}}, "params.module: must be a list of strings"),
    ],
)
def test_values_that_no_target_can_have_are_refused(values: dict[str, Any], message: str) -> None:
    """A string for a list of them would silently give its first character."""
    with pytest.raises(ConfigError, match=message):
        TargetDefaults(**values)


@pytest.mark.parametrize(
    ("address", "interval", "timeout", "reason"),
    [
        ("a:80", "1m", "10s", ""),
        ("", "1m30s", "1m30s", ""),
        ("a", "1y", "1w2d3h4m5s6ms", ""),
        ("a/b", "1m", "10s", "the address 'a/b' has a path"),
        ("a", "", "10s", "the scrape interval '' is no duration"),
        ("a", "1m", "1.5s", "the scrape timeout '1.5s' is no duration"),
        ("a", "5s1m", "1s", "the scrape interval '5s1m' is no duration"),
        ("a", "0ms", "1s", "the scrape interval is 0"),
        ("a", "500ms", "1s", "the scrape timeout 1s is above the interval 500ms"),
    ],
)
def test_prometheus_refuses_some_targets(address: str, interval: str, timeout: str, reason: str) -> None:
    """For their address, or for how often they are to be scraped: durations are as it writes them, units in order."""
    assert prometheus_refusal(address, interval, timeout).startswith(reason)
    assert bool(prometheus_refusal(address, interval, timeout)) == bool(reason)
