"""The labels that a target has before the first rule, and what follows from its labels after the last one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import ConfigError
from .sections import parse_duration


@dataclass(frozen=True, slots=True)
class TargetDefaults:
    """What a job says about its targets; durations are seconds, or texts such as `30s`, of which seconds are made."""

    scheme: str = "http"
    metrics_path: str = "/metrics"
    scrape_interval: float | str = 60.0
    scrape_timeout: float | str = 10.0
    params: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Any others, which those above override."""

    def __post_init__(self) -> None:
        for name in ("scheme", "metrics_path"):
            if not isinstance(getattr(self, name), str):
                raise ConfigError(f"{name}: must be a string, not {getattr(self, name)!r}")
        labels: Any = self.labels
        if not isinstance(labels, Mapping) or not all(isinstance(one, str) for pair in labels.items() for one in pair):
            raise ConfigError(f"labels: must be a mapping of strings to strings, not {labels!r}")
        params: Any = self.params
        if not isinstance(params, Mapping):
            raise ConfigError(f"params: must be a mapping, not {params!r}")
        for name, values in params.items():
            if isinstance(values, str) or not all(isinstance(one, str) for one in (name, *values)):
                raise ConfigError(f"params.{name}: must be a list of strings, not {values!r}")
        interval, timeout = _seconds("scrape_interval", self.scrape_interval), _seconds("scrape_timeout", self.scrape_timeout)
        object.__setattr__(self, "scrape_interval", interval)
        # as both peers have it: nobody waits for longer than until the next scrape
        object.__setattr__(self, "scrape_timeout", min(timeout, interval))
        object.__setattr__(self, "scheme", self.scheme.lower())
        if self.scheme not in ("http", "https"):
            raise ConfigError(f"scheme: must be http or https, not {self.scheme!r}")


# D40: what else there is before the first rule, as Prometheus has it by default
_HISTOGRAMS = {
    "__always_scrape_classic_histograms__": "false",
    "__convert_classic_histograms_to_nhcb__": "false",
    "__scrape_native_histograms__": "false",
}
_SHORTEST, _LONGEST = 1e-9, 100 * 31_536_000.0


def _seconds(name: str, value: object) -> float:
    try:
        seconds = parse_duration(value)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None
    if seconds <= 0:
        raise ConfigError(f"{name}: must be above 0")
    if not _SHORTEST <= seconds <= _LONGEST:
        raise ConfigError(f"{name}: must be from a nanosecond to 100 years")
    return seconds


def default_labels(job: str, defaults: TargetDefaults, dialect: str) -> dict[str, str]:
    """The labels beside the discovered ones, which win where both have one."""
    duration = _prometheus_duration if dialect == "prometheus" else _go_duration
    labels = {
        **(_HISTOGRAMS if dialect == "prometheus" else {}),
        "job": job,
        "__scheme__": defaults.scheme,
        "__metrics_path__": defaults.metrics_path,
        "__scrape_interval__": duration(parse_duration(defaults.scrape_interval)),
        "__scrape_timeout__": duration(parse_duration(defaults.scrape_timeout)),
    }
    return dict(defaults.labels) | labels | {f"__param_{name}": values[0] for name, values in defaults.params.items() if values}


def victoriametrics_instance(address: str, scheme: str) -> str:
    """The address, without a scheme or a path in it, and with the scheme's port if it has none."""
    written, mark, rest = address.partition("://")
    if mark and written in ("http", "https"):
        address, scheme = rest, written
    address = address.partition("/")[0]
    if ":" in address:
        return address
    return f"{address}:{443 if scheme == 'https' else 80}"


def prometheus_instance(address: str, scheme: str) -> str:  # noqa: ARG001  (of the same form as the other)
    """The address as it is."""
    return address


_DURATION = re.compile(r"(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?", re.ASCII)
_MILLISECONDS = (31_536_000_000, 604_800_000, 86_400_000, 3_600_000, 60_000, 1000, 1)


def prometheus_refusal(address: str, interval: str, timeout: str) -> str:
    """Why Prometheus does not scrape a target with such labels; empty if it does."""
    if "/" in address:  # D38
        return f"the address {address!r} has a path"
    milliseconds = []
    for name, text in (("interval", interval), ("timeout", timeout)):
        found = _DURATION.fullmatch(text)
        if not text or found is None:
            return f"the scrape {name} {text!r} is no duration"
        milliseconds.append(sum(int(number or 0) * size for number, size in zip(found.groups(), _MILLISECONDS, strict=True)))
        if not milliseconds[-1]:
            return f"the scrape {name} is 0"
    return f"the scrape timeout {timeout} is above the interval {interval}" if milliseconds[1] > milliseconds[0] else ""


def stored_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels that a target's samples are stored with: those of no special meaning."""
    return {name: value for name, value in labels.items() if not name.startswith("__")}


def _go_duration(seconds: float) -> str:
    """As Go prints it: 24h0m0s, 1m30s, 1.5s, 500ms, 1.5µs."""
    left = round(seconds * 1_000_000_000)
    if left < 1_000_000_000:
        size, unit = next(((size, unit) for size, unit in ((1_000_000, "ms"), (1000, "µs"), (1, "ns")) if left >= size), (1, "s"))
        return _decimal(left, size) + unit
    minutes, rest = divmod(left, 60_000_000_000)
    text = _decimal(rest, 1_000_000_000) + "s"
    if minutes >= 60:
        return f"{minutes // 60}h{minutes % 60}m{text}"
    return f"{minutes}m{text}" if minutes else text


def _decimal(count: int, size: int) -> str:
    """A fraction with as many digits as it needs; `size` is a power of ten."""
    whole, part = divmod(count, size)
    return f"{whole}.{str(size + part)[1:]}".rstrip("0").rstrip(".") if part else str(whole)


def _prometheus_duration(seconds: float) -> str:
    """As Prometheus prints it: 1d, 1m30s, 500ms; years and weeks only if nothing is left over."""
    left = round(seconds * 1000)
    text = ""
    for unit, size, exact in (
        ("y", 31_536_000_000, True), ("w", 604_800_000, True), ("d", 86_400_000, False), ("h", 3_600_000, False), ("m", 60_000, False),
        ("s", 1000, False), ("ms", 1, False),
    ):  # fmt: skip
        if exact and left % size:
            continue
        if left >= size:
            text += f"{left // size}{unit}"
            left %= size
    return text or "0s"
