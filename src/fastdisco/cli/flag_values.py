"""What flags may be given; argparse puts the flag's name before the message of an error."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from dataclasses import fields
from typing import TypeVar
from urllib.parse import urlsplit

from fastdisco.config import AttachMetadata, KubernetesSDConfig, Selector
from fastdisco.errors import ConfigError
from fastdisco.sections import parse_duration

T = TypeVar("T")

ATTACHED = tuple(one.name for one in fields(AttachMetadata))
"""What `--attach-metadata` may name."""


def role(text: str) -> str:
    return _checked(lambda: KubernetesSDConfig(role=text)).role


def selector(text: str) -> Selector:
    role, colon, rest = text.partition(":")
    label, _, field = rest.partition(";")
    if not colon or not (label.strip() or field.strip()):
        raise argparse.ArgumentTypeError(f"must be of the form ROLE:LABEL[;FIELD], not {text!r}")
    return _checked(lambda: Selector(role, label.strip(), field.strip()))


def object_name(text: str) -> str:
    if not re.fullmatch(r"([^/\s]+/)?[^/\s]+", text):
        raise argparse.ArgumentTypeError(f"must be of the form NAMESPACE/NAME, or NAME for a node, not {text!r}")
    return text


def attached(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in ATTACHED:
            raise argparse.ArgumentTypeError(f"must be of {', '.join(ATTACHED)}, not {name!r}")
    return names


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        try:
            number = parse_duration(text)
        except ConfigError:
            number = math.nan
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"must be seconds, or a duration such as 30s or 5m, not {text!r}")
    return number


def some_seconds(text: str) -> float:
    number = seconds(text)
    if not number:
        raise argparse.ArgumentTypeError("must be above 0")
    return number


def mode(text: str) -> int:
    if not re.fullmatch(r"0?[0-7]{3}", text):
        raise argparse.ArgumentTypeError(f"must be three octal digits such as 644, not {text!r}")
    return int(text, 8)


def external_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise argparse.ArgumentTypeError(f"must be of the form https://HOST[:PORT][/PATH], not {text!r}")
    return text.rstrip("/")


def prefix(text: str) -> str:
    if re.search(r"[\s?#{}]", text):
        raise argparse.ArgumentTypeError(f"must be a path, not {text!r}")
    inner = text.strip("/")
    return f"/{inner}" if inner else ""


def rate(text: str) -> float:
    if not re.fullmatch(r"\d+(\.\d*)?|\.\d+", text):
        raise argparse.ArgumentTypeError(f"must be a number of changes per second, such as 20 or 0.5, not {text!r}")
    return float(text)


def count(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,6}", text):
        raise argparse.ArgumentTypeError(f"must be a number from 1 to 9999999, not {text!r}")
    return int(text)


def address(text: str) -> tuple[str, int]:
    """As Prometheus has it: `HOST:PORT`, `[::1]:PORT`, or `:PORT` for all addresses."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""
    if not colon or not re.fullmatch(r"\d{1,5}", port) or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"must be of the form HOST:PORT, not {text!r}")
    return host, int(port)


def _checked(make: Callable[[], T]) -> T:
    """Without this argparse would say only that the value is invalid."""
    try:
        return make()
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("role: ")) from None
