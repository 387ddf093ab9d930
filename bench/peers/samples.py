"""What a program tells in its metrics."""

from __future__ import annotations

import re

_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Samples:
    """One reading of a program's metrics."""

    def __init__(self, text: str) -> None:
        self._values: dict[str, list[tuple[dict[str, str], float]]] = {}
        for name, labels, value in _SAMPLE.findall(text):
            self._values.setdefault(name, []).append((dict(_LABEL.findall(labels)), float(value)))

    def total(self, name: str, **labels: str) -> float:
        """The sum of all samples of that name which have these labels."""
        return sum(value for found, value in self._values.get(name, ()) if labels.items() <= found.items())

    def by(self, name: str, label: str) -> dict[str, float]:
        """Sums by the value of one label."""
        sums: dict[str, float] = {}
        for found, value in self._values.get(name, ()):
            sums[found.get(label, "")] = sums.get(found.get(label, ""), 0.0) + value
        return sums
