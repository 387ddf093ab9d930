"""What a configuration has that is for others, what neither peer knows, and what a job finds elsewhere than in Kubernetes."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .documents import Documents, Job
from .mistakes import Mistakes
from .peer_keys import GLOBAL, JOB, PROMETHEUS, TOP, Keys, other_kinds

_TOP = ("global", "scrape_configs", "scrape_config_files")
_GLOBAL = ("scrape_interval", "scrape_timeout", "relabel_configs")
_JOB = (
    "job_name", "scheme", "metrics_path", "params", "scrape_interval", "scrape_timeout", "relabel_configs", "kubernetes_sd_configs",
)  # fmt: skip
_FOR_OTHERS = "for others than discovery"


def find_unused(documents: Documents, dialect: str, mistakes: Mistakes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(lines on what is not used, warnings); keys that neither peer knows are mistakes."""
    main, common = documents.main, documents.top.get("global")
    warnings: list[str] = []
    unused = list(_unused(main, "", documents.top, TOP, _TOP, mistakes))
    if isinstance(common, Mapping):
        unused += _unused(main, "global", common, GLOBAL, _GLOBAL, mistakes)
        if dialect == PROMETHEUS and common.get("relabel_configs"):
            warnings.append(f"{main}: global.relabel_configs: Prometheus has no global rules, so they do not run")
    for job in documents.jobs:
        unused += _unused_of_job(job, mistakes)
        if job.written.get("kubernetes_sd_configs"):
            warnings += [
                f"{job.file}: {job.path}.{key}: targets that job {job.written.get('job_name')!r} finds so are not exported"
                for key in other_kinds(job.written)
            ]
    return tuple(unused), tuple(warnings)


def _unused_of_job(job: Job, mistakes: Mistakes) -> Iterator[str]:
    kinds = other_kinds(job.written)
    written = {key: value for key, value in job.written.items() if key not in kinds}
    lines = list(_unused(job.file, job.path, written, JOB, _JOB, mistakes))
    if job.written.get("kubernetes_sd_configs"):
        yield from lines
    else:
        yield f"{job.file}: {job.path}: job {job.written.get('job_name')!r} has no kubernetes_sd_configs"


def _unused(file: Path, path: str, written: Mapping[str, Any], keys: Keys, used: tuple[str, ...], mistakes: Mistakes) -> Iterator[str]:
    known = keys.all()
    for key in written:
        place = f"{path}{'.' if path else ''}{key}"
        if key not in known:
            close = difflib.get_close_matches(str(key), sorted(known), 1)
            mistakes.add(file, f"{place}: unknown key{f'; is {close[0]} meant?' if close else ''}")
        elif key not in used:
            yield f"{file}: {place}: {_FOR_OTHERS}"
