"""Kubernetes target discovery for metric scrapers: live targets and their labels, for any number of jobs."""

from ._labels import Labels
from .api_watcher import APIWatcher
from .changes import Change
from .config import KubernetesSDConfig, Selector
from .discovery import Discovery
from .errors import ApiError, ConfigError, DecodeError, FastdiscoError, NetworkError, NotSynced
from .relabel_config import RelabelConfig
from .target_labels import TargetDefaults
from .version import __version__

__all__ = [
    "APIWatcher",
    "ApiError",
    "Change",
    "ConfigError",
    "DecodeError",
    "Discovery",
    "FastdiscoError",
    "KubernetesSDConfig",
    "Labels",
    "NetworkError",
    "NotSynced",
    "RelabelConfig",
    "Selector",
    "TargetDefaults",
    "__version__",
]
