"""Whose configuration a file is: what is said about it, or else what only one of the peers would accept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastdisco.config import DIALECTS
from fastdisco.errors import ConfigError

from .documents import Evidence
from .peer_keys import PROMETHEUS, VICTORIAMETRICS

AUTO = "auto"
PROGRAMS = {VICTORIAMETRICS: "vmagent", PROMETHEUS: "Prometheus"}


@dataclass(frozen=True, slots=True)
class Decision:
    """The dialect, and one sentence on why."""

    dialect: str
    reason: str


def decide(asked: str, default: str, evidence: Sequence[Evidence]) -> Decision:
    """`asked` is what the flag says, and `default` what the settings say, or empty. ConfigError where the files have keys of both."""
    if asked != AUTO:
        if asked not in DIALECTS:
            raise ConfigError(f"dialect: must be one of {AUTO}, {', '.join(DIALECTS)}, not {asked!r}")
        return Decision(asked, f"The dialect is {asked}, as asked for.")
    if default:
        return Decision(default, f"The dialect is {default}, as the settings say.")
    found = {one.dialect: one for one in reversed(evidence)}  # the first of each
    if len(found) == 2:
        vmagent, prometheus = found[VICTORIAMETRICS], found[PROMETHEUS]
        raise ConfigError(f"only vmagent accepts {vmagent}, and only Prometheus {prometheus}: say with --dialect whose labels to make")
    for dialect, one in found.items():
        return Decision(dialect, f"The dialect is {dialect}, since only {PROGRAMS[dialect]} accepts this: {one}.")
    return Decision(VICTORIAMETRICS, f"The dialect is {VICTORIAMETRICS}, the default, since both peers would accept all keys.")


def foreign(decision: Decision, evidence: Sequence[Evidence]) -> list[str]:
    """A warning for each rule and each discovery that the peer of this dialect would refuse."""
    program = PROGRAMS[decision.dialect]
    return [
        f"{one}: {program} would not load it"
        for one in evidence
        if one.dialect != decision.dialect and (".relabel_configs" in one.path or ".kubernetes_sd_configs" in one.path)
    ]
