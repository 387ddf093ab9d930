"""The command `fastdisco`: 0 is success, 1 a failure that a message tells of, 2 a mistake in flags or in a configuration file."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

from ..errors import ConfigError
from .arguments import parser
from .output import CannotWrite

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; the exit code. Wrong flags end by SystemExit, as argparse does it."""
    if sys.stdout is None or sys.stderr is None:
        return 1  # a number that is free now would be that of the next socket, and the targets would be written there
    arguments = parser().parse_args(argv)
    if arguments.command is None:
        parser().print_help(sys.stderr)
        return 2
    _log(_LEVELS[min(arguments.verbose, len(_LEVELS) - 1)])
    try:
        return _command(arguments.command)(arguments)
    except ConfigError as error:
        code, message = 2, str(error)
    except CannotWrite as error:
        code, message = 1, str(error)
    except BrokenPipeError:
        _let_go_of_stdout()
        return 0
    except KeyboardInterrupt:
        return 130
    sys.stderr.write(f"fastdisco {arguments.command}: error: {message}\n")
    return code
