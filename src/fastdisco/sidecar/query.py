"""What of a job's targets is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Syntax = Literal["json", "yaml"]
"""Of a document that lists targets."""

_PARAMETERS = ("job", "labels", "dropped")
_LABELS = ("discovered", "used", "final")


class BadQueryError(ValueError):
    """A parameter that means nothing, in words for the client."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which targets, and which of their labels."""

    labels: str = "discovered"
    """`used`: without the `__meta_*` labels that no rule of the job can read; `final`: as its rules have made them."""
    dropped: bool = False
    """Also targets that the job's rules drop."""

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Query:
        """Of the parameters of a URL; `job` belongs to who looks for the job. BadQueryError, also for others: most are slips of the pen."""
        for name in parameters:
            if name not in _PARAMETERS:
                raise BadQueryError(f"{name}: unknown parameter; there are {', '.join(_PARAMETERS)}")
        labels, dropped = parameters.get("labels", "discovered"), parameters.get("dropped", "exclude")
        if labels not in _LABELS:
            raise BadQueryError(f"labels: must be one of {', '.join(_LABELS)}, not {labels!r}")
        if dropped not in ("include", "exclude"):
            raise BadQueryError(f"dropped: must be include or exclude, not {dropped!r}")
        if labels == "final" and dropped == "include":
            raise BadQueryError("dropped: what is dropped has no final labels")
        return cls(labels, dropped == "include")
