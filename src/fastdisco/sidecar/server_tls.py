"""`tls_server_config`: the server's certificate, which clients it takes, and which versions it speaks."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastdisco.errors import ConfigError
from fastdisco.sections import typed

_VERSIONS = {name: getattr(ssl.TLSVersion, f"TLSv1_{name[-1]}") for name in ("TLS11", "TLS12", "TLS13")} | {"TLS10": ssl.TLSVersion.TLSv1}
_CLIENTS = {  # `RequestClientCert` looks at nothing that a client shows
    "NoClientCert": ssl.CERT_NONE,
    "RequestClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
_TEXTS = ("cert", "key", "client_ca", "cert_file", "key_file", "client_ca_file", "client_auth_type", "min_version", "max_version")


@dataclass(frozen=True, slots=True)
class ServerTLS:
    """As written; `*_file` are paths, the others PEM texts."""

    cert: str = ""
    key: str = ""
    client_ca: str = ""
    cert_file: Path | None = None
    key_file: Path | None = None
    client_ca_file: Path | None = None
    client_auth: ssl.VerifyMode = ssl.CERT_NONE
    client_allowed_sans: frozenset[str] = frozenset()
    min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    max_version: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED
    ciphers: str = ""

    @classmethod
    def of(cls, section: Mapping[str, Any], directory: Path) -> ServerTLS:
        """ConfigError, with the key. Relative files start at `directory`."""
        given = {key: value for key, value in section.items() if value not in (None, "")}
        texts = {key: typed(f"tls_server_config.{key}", given.pop(key), str) for key in _TEXTS if key in given}
        sans = frozenset(typed("tls_server_config.client_allowed_sans", given.pop("client_allowed_sans", []), list))
        suites = typed("tls_server_config.cipher_suites", given.pop("cipher_suites", []), list)
        given.pop("prefer_server_cipher_suites", None)  # as Go does since 1.17: it has no effect
        for key in given:
            reason = "not supported; OpenSSL chooses" if key == "curve_preferences" else "unknown key"
            raise ConfigError(f"tls_server_config.{key}: {reason}")
        for one in ("cert", "key", "client_ca"):
            if one in texts and f"{one}_file" in texts:
                raise ConfigError(f"tls_server_config.{one}: not together with {one}_file")
            if one != "client_ca" and one not in texts and f"{one}_file" not in texts:
                raise ConfigError(f"tls_server_config.{one}_file: missing")
        has_ca = "client_ca" in texts or "client_ca_file" in texts
        kind = texts.get("client_auth_type", "RequireAndVerifyClientCert" if has_ca else "NoClientCert")
        if kind not in _CLIENTS:
            raise ConfigError(f"tls_server_config.client_auth_type: must be one of {', '.join(_CLIENTS)}, not {kind!r}")
        if _CLIENTS[kind] != ssl.CERT_NONE and not has_ca:
            raise ConfigError(f"tls_server_config.client_ca_file: missing, and client_auth_type is {kind}")
        if sans and _CLIENTS[kind] != ssl.CERT_REQUIRED:
            raise ConfigError("tls_server_config.client_allowed_sans: needs client_auth_type RequireAndVerifyClientCert")
        for key in ("min_version", "max_version"):
            if texts.get(key, "TLS12") not in _VERSIONS:
                raise ConfigError(f"tls_server_config.{key}: must be one of {', '.join(sorted(_VERSIONS))}, not {texts[key]!r}")
        files = {f"{one}_file": directory / texts[f"{one}_file"] for one in ("cert", "key", "client_ca") if f"{one}_file" in texts}
        return cls(
            texts.get("cert", ""), texts.get("key", ""), texts.get("client_ca", ""), **files,
            client_auth=_CLIENTS[kind], client_allowed_sans=sans, ciphers=":".join(_openssl_name(name) for name in suites),
            min_version=_VERSIONS[texts.get("min_version", "TLS12")],
            max_version=_VERSIONS[texts["max_version"]] if "max_version" in texts else ssl.TLSVersion.MAXIMUM_SUPPORTED,
        )  # fmt: skip

    @property
    def files(self) -> tuple[Path, ...]:
        """Those whose change matters."""
        return tuple(file for file in (self.cert_file, self.key_file, self.client_ca_file) if file is not None)

    def context(self) -> ssl.SSLContext:
        """A new one: nothing of what was trusted before is in it. ConfigError if the files cannot be used."""
        for file in self.files:
            try:
                file.read_bytes()
            except OSError as error:
                raise ConfigError(f"tls_server_config: cannot read {file}: {error.strerror}") from None
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            made.minimum_version, made.maximum_version = self.min_version, self.max_version
            if self.ciphers:
                made.set_ciphers(self.ciphers)
            with _as_file(self.cert, self.cert_file) as cert, _as_file(self.key, self.key_file) as key:
                made.load_cert_chain(cert, key, password=_no_password)
            if self.client_auth != ssl.CERT_NONE:
                made.load_verify_locations(self.client_ca_file, cadata=self.client_ca or None)
            made.verify_mode = self.client_auth
        except (OSError, ValueError) as error:  # of ssl, too
            raise ConfigError(f"tls_server_config: cannot be used: {error}") from None
        return made

    def allows(self, certificate: Mapping[str, Any] | None) -> bool:
        """Whether a client with this (verified) certificate may ask."""
        if not self.client_allowed_sans:
            return True
        names = {value for _, value in (certificate or {}).get("subjectAltName", ())}
        return bool(names & self.client_allowed_sans)


def _no_password() -> str:
    raise ValueError("the key is encrypted")


@contextmanager
def _as_file(text: str, file: Path | None) -> Iterator[Path]:
    """Python's ssl takes a certificate of its own from a file only."""
    if file is not None:
        yield file
        return
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as made:
        made.write(text)
        made.flush()
        yield Path(made.name)


def _openssl_name(suite: object) -> str:
    """Of a suite by its name in Go, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256."""
    name = str(suite)
    if not name.startswith("TLS_"):
        raise ConfigError(f"tls_server_config.cipher_suites: {name!r} is no suite of TLS 1.2")
    exchange, mark, cipher = name.removeprefix("TLS_").partition("_WITH_")
    if not mark:
        raise ConfigError(f"tls_server_config.cipher_suites: {name}: those of TLS 1.3 cannot be chosen")
    cipher = cipher.replace("AES_128", "AES128").replace("AES_256", "AES256").replace("_CBC", "").replace("POLY1305_SHA256", "POLY1305")
    exchange = "" if exchange == "RSA" else exchange.replace("_", "-") + "-"
    return exchange + cipher.replace("_", "-")
