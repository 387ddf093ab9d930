"""The log of a command on standard error; what the command's last words will say, too, is held back meanwhile."""

from __future__ import annotations

import datetime
import json
import logging
import re
import sys

import orjson

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
_SHORT = {"WARNING": "warn", "CRITICAL": "error"}
_TROUBLE = re.compile(r"cannot (?:list|watch) (.*)", re.DOTALL)
_RECOVERED = "watching %s again"  # at INFO, but who has read of the trouble waits for it


class _Logfmt(logging.Formatter):
    """`ts=… level=… msg="…"`, a line for each record."""

    def format(self, record: logging.LogRecord) -> str:
        return " ".join(f"{name}={_quoted(text)}" for name, text in _fields(record, self).items())


class _Json(logging.Formatter):
    """The same fields as an object, a line for each record."""

    def format(self, record: logging.LogRecord) -> str:
        return orjson.dumps(_fields(record, self)).decode()


LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
LOG_FORMATS: dict[str, type[logging.Formatter]] = {"logfmt": _Logfmt, "json": _Json}


def _fields(record: logging.LogRecord, formatter: logging.Formatter) -> dict[str, str]:
    moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    fields = {"ts": moment, "level": _SHORT.get(record.levelname, record.levelname.lower()), "msg": record.getMessage()}
    if record.exc_info:
        fields["error"] = formatter.formatException(record.exc_info)
    return fields


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[\w.:/+-]+", text) else json.dumps(text, ensure_ascii=False)


class Log(logging.StreamHandler):  # type: ignore[type-arg]  # generic for type checkers only
    """Writes to standard error; without `-v`, warnings, errors, and that a trouble is over."""

    def __init__(self, verbose: int) -> None:
        super().__init__(sys.stderr)
        self._shown_from = _LEVELS[min(verbose, len(_LEVELS) - 1)]
        self._holding = False
        self._held: list[logging.LogRecord] = []
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
        self.addFilter(lambda record: record.levelno >= self._shown_from or record.msg == _RECOVERED)

    def structure(self, level: str, form: str) -> None:
        """From this level on, `-v` or not, each record as a line for machines."""
        self._shown_from = min(LEVELS[level], self._shown_from) if self._shown_from < logging.WARNING else LEVELS[level]
        self.setFormatter(LOG_FORMATS[form]())
        logging.getLogger("fastdisco").setLevel(self._shown_from)

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


def structure(level: str, form: str) -> None:
    """As `Log.structure`, where the program has such a log."""
    for log in _logs():
        log.structure(level, form)


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
