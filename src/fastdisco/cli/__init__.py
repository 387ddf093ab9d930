"""The command `fastdisco`: 0 is success, 1 a failure that a message tells of, 2 a mistake in flags or in a configuration file."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence

from fastdisco.errors import ConfigError, FastdiscoError

from .arguments import parser
from .log import Log


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code. Wrong flags end by SystemExit, as argparse has it."""
    if sys.stdout is None or sys.stderr is None:
        # A descriptor that is free now would be that of the next socket, and the targets would be written there.
        if sys.stderr is not None:
            sys.stderr.write("fastdisco: error: standard output is closed\n")
        return 1
    if sys.stdin is None:
        os.open(os.devnull, os.O_RDONLY)  # the first free descriptor, which is 0; uvloop must not get it for a socket
    known = parser()
    try:
        arguments = known.parse_args(argv)
    finally:
        _flush()  # of the help
    if not arguments.command:
        known.print_help(sys.stderr)
        return 2
    log = Log(arguments.verbose)
    log.install()
    try:
        return _command(arguments.command)(arguments)
    except (FastdiscoError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            return 0  # who reads has had enough
        logging.getLogger("fastdisco").debug("where it failed", exc_info=True)
        log.let_go(str(error))
        sys.stderr.write(f"fastdisco {arguments.command}: error: {error}\n")
        return 2 if isinstance(error, ConfigError) else 1
    except KeyboardInterrupt:  # before there is a loop
        return 130
    finally:
        log.let_go()


def _flush() -> None:
    """Now, since the interpreter would say at its end that nobody reads."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _command(name: str) -> Callable[[argparse.Namespace], int]:
    """A command brings in what it alone needs."""
    if name == "run":
        from .run import run
    elif name == "check":
        from .check import run
    elif name == "explain":
        from .explain import run
    elif name == "healthcheck":
        from .healthcheck import run
    else:
        from .targets import run
    return run
