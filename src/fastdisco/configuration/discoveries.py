"""The `kubernetes_sd_configs` of a job."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from fastdisco.config import KubernetesSDConfig
from fastdisco.kubeconfig import with_kubeconfig
from fastdisco.sections import kind_of, typed

from .documents import Job
from .mistakes import Mistakes
from .peer_keys import PROMETHEUS
from .settings import ENGINE_KEYS
from .sources import Reader


def read_discoveries(job: Job, main: Path, dialect: str, reader: Reader, mistakes: Mistakes) -> list[KubernetesSDConfig]:
    """All that are right; `main` is the folder of the main file."""
    # Names of files start where the peer has them start.
    directory = str(job.file.parent if dialect == PROMETHEUS else main)
    configs = []
    with mistakes.at(job.file, job.path):
        for index, written in enumerate(typed("kubernetes_sd_configs", job.written["kubernetes_sd_configs"], list)):
            path = f"{job.path}.kubernetes_sd_configs[{index}]"
            if not isinstance(written, Mapping):
                mistakes.add(job.file, f"{path}: must be a mapping, not {kind_of(written)}")
                continue
            given = [key for key in ENGINE_KEYS if key in written]
            for key in given:
                mistakes.add(job.file, f"{path}.{key}: no peer would load this file; say it in a file for --settings")
            left = {key: value for key, value in written.items() if key not in given}
            kubeconfig = left.get("kubeconfig_file")
            if dialect != PROMETHEUS and isinstance(kubeconfig, str) and kubeconfig:
                left["kubeconfig_file"] = str(Path(kubeconfig).absolute())  # the only name that vmagent has start where it runs
            config = mistakes.read(job.file, path, left, partial(KubernetesSDConfig.from_dict, directory=directory))
            if config is not None:
                with mistakes.at(job.file, path):
                    configs.append(_connected(config, reader))
    return configs


def _connected(config: KubernetesSDConfig, reader: Reader) -> KubernetesSDConfig:
    """What a kubeconfig file says is part of the configuration, so a change of it is one of the job."""
    if not config.kubeconfig_file:
        return config
    reader.watch(Path(config.kubeconfig_file))
    return with_kubeconfig(config)
