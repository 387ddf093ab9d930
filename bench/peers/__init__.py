"""The programs to compare with, by name."""

from __future__ import annotations

import os
from pathlib import Path

from ..runs.child import RunError
from .program import Peer, find
from .prometheus import Prometheus
from .vmagent import Vmagent

__all__ = ["PEERS", "Peer", "peer"]

PEERS: dict[str, type[Peer]] = {"vmagent": Vmagent, "prometheus": Prometheus}


def peer(text: str) -> Peer:
    """The peer of a flag, `NAME` or `NAME=PATH`; ValueError says what is wrong with it."""
    name, given, path = text.partition("=")
    if name not in PEERS:
        raise ValueError(f"no peer is called {name!r}; there are {', '.join(PEERS)}")
    found = Path(path) if given else find(name)
    if found is None:
        raise ValueError(f"{name} is neither where `make peers` puts it nor on PATH; give {name}=PATH")
    if not os.access(found, os.X_OK) or found.is_dir():
        raise ValueError(f"{found} is no program")
    made = PEERS[name](found)
    try:
        made.version  # noqa: B018 - whether it starts at all is told before anything is measured
    except RunError as error:
        raise ValueError(f"{found} is no {name}: {error}") from None
    return made
