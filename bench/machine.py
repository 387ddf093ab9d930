"""What the figures were measured on and with."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("fastdisco", "uvloop", "aiohttp", "orjson", "msgspec", "kubernetes", "kubernetes-asyncio", "lightkube")


def machine() -> dict[str, Any]:
    """Processor, cores that this process may use, memory, kernel and Python."""
    return {
        "cpu": _field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mb": int(_field("/proc/meminfo", "MemTotal").split()[0] or 0) // 1024,
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def versions() -> dict[str, str | None]:
    """Of each package that is measured or helps measuring; None where it is not installed."""
    found: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def _field(file: str, name: str) -> str:
    for line in Path(file).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
