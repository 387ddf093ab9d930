"""Memory of a process, in MB, as the kernel counts it."""

from __future__ import annotations

from pathlib import Path


def resident(pid: int | str = "self") -> float:
    """Now."""
    return _status(pid, "VmRSS")


def peak(pid: int | str = "self") -> float:
    """The most there was."""
    return _status(pid, "VmHWM")


def _status(pid: int | str, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise OSError(f"the kernel tells no {field} of process {pid}")
