"""Where the configuration is that the sidecar runs by, and how it is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fastdisco.configuration import Configuration, load_configuration


@dataclass(frozen=True, slots=True)
class Options:
    """As flags say."""

    file: Path
    settings: Path | None = None
    dialect: str = "auto"
    expand_env: bool = False


def load(options: Options) -> Configuration:
    """ConfigurationError has all that is wrong."""
    return load_configuration(options.file, settings=options.settings, dialect=options.dialect, expand_env=options.expand_env)
