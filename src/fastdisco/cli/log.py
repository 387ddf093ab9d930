"""The log of a command on standard error; what the command's last words will say, too, is held back meanwhile."""

from __future__ import annotations

import logging
import re
import sys

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
_TROUBLE = re.compile(r"cannot (?:list|watch) (.*)", re.DOTALL)
_RECOVERED = "watching %s again"  # at INFO, but who has read of the trouble waits for it


class Log(logging.StreamHandler):  # type: ignore[type-arg]  # generic for type checkers only
    """Writes to standard error; without `-v`, warnings, errors, and that a trouble is over."""

    def __init__(self, verbose: int) -> None:
        super().__init__(sys.stderr)
        self._shown_from = _LEVELS[min(verbose, len(_LEVELS) - 1)]
        self._holding = False
        self._held: list[logging.LogRecord] = []
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
        self.addFilter(lambda record: record.levelno >= self._shown_from or record.msg == _RECOVERED)

    def install(self) -> None:
        """From now on it is the program's log."""
        logging.getLogger().addHandler(self)
        logging.getLogger("fastdisco").setLevel(min(self._shown_from, logging.INFO))

    def emit(self, record: logging.LogRecord) -> None:
        if self._holding and _TROUBLE.match(record.getMessage()):
            self._held.append(record)
        else:
            super().emit(record)

    def hold(self) -> None:
        """Until `let_go`, troubles with the API server wait. A log that was asked for is complete and in order."""
        self._holding = self._shown_from == logging.WARNING

    def let_go(self, said: str = "") -> None:
        """Writes what waits, but for what `said` has told."""
        self._holding = False
        held, self._held = self._held, []
        for record in held:
            trouble = _TROUBLE.match(record.getMessage())
            if trouble is None or trouble[1] not in said:
                super().emit(record)


def hold() -> None:
    """As `Log.hold`, where the program has such a log."""
    for log in _logs():
        log.hold()


def let_go(said: str = "") -> None:
    """As `Log.let_go`."""
    for log in _logs():
        log.let_go(said)


def _logs() -> list[Log]:
    return [handler for handler in logging.getLogger().handlers if isinstance(handler, Log)]
