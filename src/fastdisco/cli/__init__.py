"""The command `fastdisco`: 0 is success, 1 a failure that a message tells of, 2 a mistake in flags or in a configuration file."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Sequence

from fastdisco.errors import ConfigError, FastdiscoError

from .arguments import parser

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code. Wrong flags end by SystemExit, as argparse has it."""
    if sys.stdout is None or sys.stderr is None:
        # A descriptor that is free now would be that of the next socket, and the targets would be written there.
        if sys.stderr is not None:
            sys.stderr.write("fastdisco: error: standard output is closed\n")
        return 1
    known = parser()
    arguments = known.parse_args(argv)
    if not arguments.command:
        known.print_help(sys.stderr)
        return 2
    _log(_LEVELS[min(arguments.verbose, len(_LEVELS) - 1)])
    try:
        return _command(arguments.command)(arguments)
    except (FastdiscoError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            return 0  # who reads has had enough
        logging.getLogger("fastdisco").debug("where it failed", exc_info=True)
        sys.stderr.write(f"fastdisco {arguments.command}: error: {error}\n")
        return 2 if isinstance(error, ConfigError) else 1
    except KeyboardInterrupt:  # before there is a loop
        return 130


def _command(name: str) -> Callable[[argparse.Namespace], int]:
    """A command brings in what it alone needs."""
    if name == "run":
        from .run import run
    elif name == "explain":
        from .explain import run
    else:
        from .targets import run
    return run


def _log(level: int) -> None:
    """Standard error is for logs, standard output for what was asked for."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
    logging.getLogger().addHandler(handler)
    logging.getLogger("fastdisco").setLevel(level)
