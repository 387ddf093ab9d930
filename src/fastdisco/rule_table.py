"""The rules of a Discovery, each once: what one job's targets have taught about a rule serves all jobs that have it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from weakref import WeakValueDictionary

from ._core import Symbols
from ._relabel import Relabeling
from ._steps import Step
from .errors import ConfigError
from .regexes import Runs
from .relabel_config import VICTORIAMETRICS_ACTIONS, RelabelConfig
from .rules import compile_rule
from .sections import within
from .target_labels import prometheus_instance, prometheus_refusal, victoriametrics_instance

logger = logging.getLogger("fastdisco")


class RuleTable:
    """Rules of one table of symbols and one dialect; a rule is forgotten with the last job that has it."""

    def __init__(self, symbols: Symbols, dialect: str) -> None:
        self.dialect = dialect
        self.runs = Runs()
        self._symbols = symbols
        self._steps: WeakValueDictionary[RelabelConfig, Step] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._steps)

    def step(self, config: RelabelConfig) -> Step:
        """The one step of rules like this; ConfigError, with the key, if it makes no sense."""
        step = self._steps.get(config)
        if step is None:
            step = Step(self._symbols, compile_rule(config, self.dialect, self.runs))
            if self.dialect == "prometheus":
                _warn(config)
            self._steps[config] = step
        return step

    def relabeling(self, rules: Iterable[RelabelConfig], defaults: Mapping[str, str], *, path: str = "relabel_configs") -> Relabeling:
        """What a job does with its targets; ConfigError tells which rule is wrong."""
        steps = []
        for index, config in enumerate(rules):
            if not isinstance(config, RelabelConfig):
                raise ConfigError(f"{path}[{index}]: must be a RelabelConfig, not {type(config).__name__}")
            with within(f"{path}[{index}]"):
                steps.append(self.step(config))
        if self.dialect == "prometheus":
            return Relabeling(self._symbols, steps, dict(defaults), prometheus_instance, refusal=prometheus_refusal)
        return Relabeling(self._symbols, steps, dict(defaults), victoriametrics_instance)


def _warn(config: RelabelConfig) -> None:
    if config.action in VICTORIAMETRICS_ACTIONS:
        logger.warning("relabel_configs: Prometheus has no action %s", config.action)
    if config.if_:
        logger.warning("relabel_configs: Prometheus has no if, as in %s", config.if_[0])
