"""Where the configuration is that the sidecar runs by, and how it is read."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from fastdisco.configuration import Configuration, load_configuration, unmade_labels

logger = logging.getLogger("fastdisco")


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


def report(read: Configuration) -> None:
    """Logs what of it may be other than its writer thinks. What is normal is a line, for its parts come again at each reload."""
    for line in read.warnings:
        logger.warning("%s", line)
    for job in read.jobs:
        for line in unmade_labels(job):
            logger.warning("job %s: a label that is never there is read: %s", job.job_name, line)
    if not read.jobs:
        logger.warning("no job has kubernetes_sd_configs: there is nothing to discover")
    if read.not_used:
        logger.info("keys and jobs that are for others than discovery: %d (fastdisco check names them)", len(read.not_used))
