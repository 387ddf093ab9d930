"""One job of a configuration file, as far as it concerns discovery."""

from __future__ import annotations

from dataclasses import dataclass, field

from .config import KubernetesSDConfig
from .relabel_config import RelabelConfig
from .target_labels import TargetDefaults


@dataclass(frozen=True, slots=True)
class ScrapeConfig:
    """`relabel_configs` has the global rules in front, where the file's dialect has such."""

    job_name: str
    kubernetes_sd_configs: tuple[KubernetesSDConfig, ...]
    relabel_configs: tuple[RelabelConfig, ...] = ()
    target_defaults: TargetDefaults = field(default_factory=TargetDefaults)
    dialect: str = "victoriametrics"
    disable_sharding: bool = True
    """Whether targets have the label `__tmp_disable_sharding` while rules decide, so that rules of one shard do not drop them."""
