"""Kubernetes target discovery for metric scrapers: live targets and their labels, for any number of jobs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._labels import Labels
from .config import KubernetesSDConfig, Selector
from .errors import ApiError, ConfigError, DecodeError, FastdiscoError, NetworkError, NotSynced
from .relabel_config import RelabelConfig
from .target_labels import TargetDefaults
from .version import __version__

if TYPE_CHECKING:
    from .api_watcher import APIWatcher
    from .changes import Change
    from .discovery import Discovery

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

_LATE = {"APIWatcher": "api_watcher", "Change": "changes", "Discovery": "discovery"}
"""Names whose modules bring in asyncio, the HTTP client and the engine: who reads configurations, or asks for the version, does without."""


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LATE[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
