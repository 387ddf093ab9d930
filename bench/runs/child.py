"""Both ends of a run: `run` starts a module of this package in a fresh process, `answer` is what that module's `__main__` calls."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..cases import Figures


class RunError(Exception):
    """A run did not end well, or its answer was wrong."""


class MissingError(RunError):
    """What is to be measured is not installed."""


_MISSING = 3  # exit status


def run(module: str, /, timeout: float = 1800.0, **parameters: Any) -> Figures:
    """The figures of a module of this package; RunError with its last words if it fails, MissingError if a package is missing.

    It is told when it was started, in seconds of the machine's monotonic clock.
    """
    command = [sys.executable, "-m", f"{__package__}.{module}"]
    given = json.dumps({**parameters, "began": time.monotonic()}).encode()
    try:
        done = subprocess.run(command, input=given, capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise RunError(f"{module} did not end within {timeout:g} s") from None
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit status {done.returncode}"]
        raise (MissingError if done.returncode == _MISSING else RunError)(words[-1])
    figures: Figures = json.loads(done.stdout)
    return figures


def answer(measure: Callable[..., Figures | Coroutine[Any, Any, Figures]], **options: Any) -> None:
    """Measure with the parameters on standard input, and print the figures. Coroutines run on uvloop."""
    parameters = json.load(sys.stdin)
    try:
        made = measure(**parameters, **options)
        if asyncio.iscoroutine(made):
            import uvloop

            made = uvloop.run(made)
    except RunError as error:
        sys.exit(str(error))
    except ModuleNotFoundError as error:
        sys.stderr.write(f"{(error.name or '').partition('.')[0]} is not installed\n")
        sys.exit(_MISSING)
    sys.stdout.write(json.dumps(made))
