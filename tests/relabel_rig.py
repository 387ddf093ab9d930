"""Pods in a store of their own, and what relabeling makes of their targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastdisco._core import Store, Symbols
from fastdisco._json import Decoder
from fastdisco._labels import Labels
from fastdisco._relabel import Relabeling
from fastdisco._render import Renderer
from fastdisco._steps import Step
from fastdisco.regexes import Runs
from fastdisco.relabel_config import load_rules
from fastdisco.rules import compile_rule
from fastdisco.target_labels import prometheus_instance, victoriametrics_instance

from .strategies import list_bytes

Object = dict[str, Any]


def pod(
    name: str, labels: Mapping[str, str] | None = None, namespace: str = "web", ports: Sequence[int] = (), ip: str = "127.0.0.1"
) -> Object:
    """With one container, and so with a target per port, or one without."""
    made: Object = {"name": "c", "image": "i", "ports": [{"containerPort": port, "protocol": "TCP"} for port in ports]}
    return {
        "metadata": {"namespace": namespace, "name": name, "uid": f"uid-{name}", "labels": dict(labels or {})},
        "spec": {"nodeName": "n", "containers": [made]},
        "status": {"podIP": ip, "phase": "Running"},
    }


class Pods:
    """A store of pods."""

    def __init__(self, symbols: Symbols | None = None) -> None:
        self.symbols = symbols or Symbols()
        self.store = Store(self.symbols)
        self.renderer = Renderer(self.store)
        self.runs = Runs()
        self._decoder = Decoder(self.store, "pod")

    def put_all(self, pods: Sequence[Object]) -> None:
        """From now on these are all."""
        self._decoder.begin_list()
        self._decoder.feed(list_bytes("pods", list(pods)))
        self._decoder.end_page()
        while self._decoder.apply_list():
            pass
        assert not self._decoder.take_errors()

    def step(self, rule: Mapping[str, Any], dialect: str = "victoriametrics", **options: Any) -> Step:
        return Step(self.symbols, compile_rule(load_rules([rule])[0], dialect, self.runs), **options)

    def relabeling(
        self,
        rules: Iterable[Mapping[str, Any]],
        defaults: Mapping[str, str] | None = None,
        dialect: str = "victoriametrics",
        **options: Any,
    ) -> Relabeling:
        compiled = [compile_rule(config, dialect, self.runs) for config in load_rules(list(rules))]
        instance = prometheus_instance if dialect == "prometheus" else victoriametrics_instance
        return Relabeling(self.symbols, compiled, {} if defaults is None else dict(defaults), instance, **options)

    def discovered(self) -> list[dict[str, str]]:
        """The labels before relabeling, in the order of the store."""
        return [dict(labels) for labels in self.labels()]

    def labels(self) -> list[Labels]:
        batch, _, _ = self.renderer.walk(0, [("pod", 0)], 1 << 30)
        found = [labels for _, part in batch.targets("pod", 0) for _, labels in part]
        batch.close()
        return found

    def survivors(self, relabeling: Relabeling, budget: int = 1 << 30, effort: int = 1 << 60) -> list[dict[str, str]]:
        """The final labels of what is kept, in the order of the store; rules run until each effort is spent."""
        found, cursor, done = [], 0, False
        while not done:
            batch, cursor, done = self.renderer.walk(cursor, [("pod", 0)], budget)
            row: int | None = 0
            while row is not None:
                parts, row = relabeling.survivors(batch, "pod", 0, row=row, effort=effort)
                found += [dict(labels) for _, part in parts for _, labels in part]
            batch.close()
        return found

    def sweep(self) -> None:
        """To its end."""
        while self.symbols.sweep():
            pass
