"""`--web.config.file`, as Prometheus and its exporters have it: TLS, users, headers of answers, and a limit of requests."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastdisco.errors import ConfigError
from fastdisco.sections import load_yaml, mapping_at

from .passwords import Passwords
from .rate_limit import RateLimit
from .server_tls import ServerTLS

_HEADERS = (
    "Content-Security-Policy", "Strict-Transport-Security", "X-Content-Type-Options", "X-Frame-Options", "X-XSS-Protection",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WebFile:
    """What it says."""

    tls: ServerTLS | None = None
    context: ssl.SSLContext | None = None
    """As `tls` says."""
    users: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    rate_limit: RateLimit | None = None


def read_web_file(file: Path) -> WebFile:
    """ConfigError with the file, the key and the reason, also for a certificate that cannot be used."""
    top = dict(mapping_at("", load_yaml(file) or {}))
    try:
        tls = top.pop("tls_server_config", None)
        server = dict(mapping_at("http_server_config", top.pop("http_server_config", None) or {}))
        users = mapping_at("basic_auth_users", top.pop("basic_auth_users", None) or {})
        limit = top.pop("rate_limit", None)
        _refuse_others(top, "")
        server.pop("http2", None)  # there is HTTP/1.1 only, which every client speaks
        headers = mapping_at("http_server_config.headers", server.pop("headers", None) or {})
        _refuse_others(server, "http_server_config.")
        for name in headers:
            if name not in _HEADERS:
                raise ConfigError(f"http_server_config.headers.{name}: must be one of {', '.join(_HEADERS)}")
        for name, hashed in users.items():
            Passwords.check(name, hashed)
        server_tls = ServerTLS.of(mapping_at("tls_server_config", tls), file.parent) if tls else None
        return WebFile(
            server_tls,
            server_tls.context() if server_tls is not None else None,
            {str(name): hashed for name, hashed in users.items()},
            {name: str(value) for name, value in headers.items() if value},
            RateLimit.of(mapping_at("rate_limit", limit)) if limit else None,
        )
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None


def _refuse_others(left: Mapping[str, Any], path: str) -> None:
    for key in left:
        raise ConfigError(f"{path}{key}: unknown key")
