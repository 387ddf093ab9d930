"""Memory of this process, in MB, as the kernel counts it."""

from __future__ import annotations

from pathlib import Path


def resident() -> float:
    """Now."""
    return _status("VmRSS")


def peak() -> float:
    """The most there was."""
    return _status("VmHWM")


def _status(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise OSError(f"the kernel tells no {field}")
