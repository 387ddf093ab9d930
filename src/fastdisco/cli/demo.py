"""The synthetic cluster of a demo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fastdisco.errors import FastdiscoError
from fastdisco.synthetic import SyntheticProcess

from .ending import sigterm_interrupts

_KINDS = ["pods"] * 17 + ["nodes", "services", "ingresses"]
_MIX = {"modified": 2, "added": 1, "deleted": 1}


@contextmanager
def demo_cluster(pods: int) -> Iterator[SyntheticProcess]:
    """A synthetic cluster in a process of its own, which is gone at the end, however that comes."""
    server = SyntheticProcess(pods=pods)
    with sigterm_interrupts():
        try:
            try:
                server.start()
            except RuntimeError as error:
                raise FastdiscoError(str(error)) from None
            yield server
        finally:
            server.stop()


def keep_changing(cluster: SyntheticProcess, rate: float) -> None:
    """From now on `rate` changes a second: mostly pods, of which half become ready or unready and as many come as go; blocks."""
    cluster.control("churn", rate=rate, kinds=_KINDS, mix=_MIX)
