"""How a connection proves who it is, and whom it trusts: tokens, passwords and certificates, read again when their files change."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import ssl
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from .config import Authorization, BasicAuth, KubernetesSDConfig, TLSConfig, is_plain
from .errors import ConfigError, NetworkError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TOKEN_AGE = 60.0  # as client-go: a rotated token is noticed within a minute even where the time of the file does not tell

logger = logging.getLogger("fastdisco")


@dataclass(frozen=True, slots=True)
class Connection:
    """All that decides which requests can share one session; two equal ones do."""

    api_server: str
    proxy_url: str = field(default="", repr=False)
    authorization: Authorization | None = None
    basic_auth: BasicAuth | None = None
    tls_config: TLSConfig = field(default_factory=TLSConfig)
    headers: tuple[str, ...] = field(default=(), repr=False)


def resolve(
    config: KubernetesSDConfig, *, environ: Mapping[str, str] = os.environ, service_account: Path = SERVICE_ACCOUNT
) -> Connection:
    """The connection that a configuration asks for; without `api_server` and `kubeconfig_file`, the one that every pod is given.

    What the configuration says about credentials and trust wins over what the pod is given.
    """
    if config.kubeconfig_file:
        from .kubeconfig import with_kubeconfig

        config = with_kubeconfig(config)
    tls_config = config.tls_config or TLSConfig()
    api_server, authorization = config.api_server.rstrip("/"), config.authorization
    if api_server and "://" not in api_server:
        api_server = f"{'https' if config.tls_config else 'http'}://{api_server}"
    if not api_server:
        host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
        if not host or not port:
            raise ConfigError("api_server: missing, and this is no pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
        api_server = f"https://[{host}]:{port}" if ":" in host and not host.startswith("[") else f"https://{host}:{port}"
        if authorization is None and config.basic_auth is None:
            authorization = Authorization(credentials_file=str(service_account / "token"))
        if not (tls_config.ca or tls_config.ca_file or tls_config.insecure_skip_verify):
            tls_config = replace(tls_config, ca_file=str(service_account / "ca.crt"))
    return Connection(api_server, _proxy_url(config, api_server, environ), authorization, config.basic_auth, tls_config, config.headers)


def _proxy_url(config: KubernetesSDConfig, api_server: str, environ: Mapping[str, str]) -> str:
    if not config.proxy_from_environment and not config.no_proxy:
        return config.proxy_url
    from .proxies import bypasses, proxy_of_environment

    if config.proxy_from_environment:
        return proxy_of_environment(api_server, environ)
    return "" if bypasses(api_server, config.no_proxy) else config.proxy_url


def own_namespace(*, service_account: Path = SERVICE_ACCOUNT) -> str:
    """The namespace that this program runs in, by the file that every pod is given."""
    file = service_account / "namespace"
    try:
        name = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"namespaces.own_namespace: cannot read {file}: {error}") from None
    if not name:
        raise ConfigError(f"namespaces.own_namespace: {file} is empty")
    return name


class Credentials:
    """The request headers of a connection, current at each request."""

    def __init__(self, connection: Connection, clock: Callable[[], float] = monotonic) -> None:
        self._fixed = dict(_header(text) for text in connection.headers)
        self._authorization = connection.authorization
        basic = self._basic = connection.basic_auth
        self._token = _Secret(connection.authorization, "credentials", clock)
        self._username, self._password = _Secret(basic, "username", clock), _Secret(basic, "password", clock)

    def headers(self) -> dict[str, str]:
        """NetworkError of kind `credentials` if a file gives nothing that can be sent, and never did."""
        headers = dict(self._fixed)
        if self._basic is not None:
            pair = f"{self._username.read()}:{self._password.read()}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        elif self._authorization is not None:
            headers["Authorization"] = f"{self._authorization.type} {self._token.read()}"
        return headers

    def refused(self) -> bool:
        """The server refused them: read files again; whether there is anything to try again with."""
        for secret in (self._token, self._username, self._password):
            secret.forget()
        return self._authorization is not None or self._basic is not None


class Trust:
    """The TLS context of a connection, built anew for later connections when one of its files changes."""

    def __init__(self, config: TLSConfig) -> None:
        self._config = config
        self._files = [file for file in (config.ca_file, config.cert_file, config.key_file) if file]
        self._context: ssl.SSLContext | None = None
        self._seen: tuple[object, ...] = ()
        self._failed: tuple[object, ...] | None = None
        self._building = asyncio.Lock()

    async def context(self) -> ssl.SSLContext:
        """NetworkError of kind `credentials` if the files make no context and never did; half-written ones are tried again."""
        seen = tuple(map(_signature, self._files))
        if self._context is not None and seen == self._seen:
            return self._context
        async with self._building:
            if self._context is None or seen != self._seen:
                try:
                    # A bundle of certificates takes tens of milliseconds to parse, too long for the loop.
                    self._context = await asyncio.to_thread(make_tls_context, self._config)
                except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
                    message = f"cannot use the TLS files {', '.join(self._files) or 'as given'}: {error}"
                    if self._context is None:
                        raise NetworkError("credentials", message) from error
                    if self._failed != seen:
                        logger.warning("%s; going on with the earlier ones", message)
                    self._failed = seen
                else:
                    self._seen, self._failed = seen, None
            return self._context


def make_tls_context(config: TLSConfig) -> ssl.SSLContext:
    """Chain, validity and host name are checked; OSError or ValueError for files that do not fit."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    if config.min_version:
        context.minimum_version = _tls_version(config.min_version)
    if config.max_version:
        context.maximum_version = _tls_version(config.max_version)
    if config.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif config.ca or config.ca_file:
        context.load_verify_locations(cafile=config.ca_file or None, cadata=config.ca or None)
    else:
        context.load_default_certs()
    # The CAs of many clusters lack the key identifiers and key usage that Python 3.13 wants, and may be intermediate ones.
    context.verify_flags = context.verify_flags & ~ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    if config.cert_file and config.key_file:
        context.load_cert_chain(config.cert_file, config.key_file)
    elif config.cert or config.cert_file:
        _load_cert_chain(context, config)
    return context


def _tls_version(name: str) -> ssl.TLSVersion:
    return ssl.TLSVersion[name.replace("TLS1", "TLSv1_").replace("_0", "")]


def _load_cert_chain(context: ssl.SSLContext, config: TLSConfig) -> None:
    """OpenSSL takes certificates from files only, so text goes through files that nobody else can read."""
    with tempfile.TemporaryDirectory(prefix="fastdisco-") as directory:
        cert_file, key_file = config.cert_file or f"{directory}/cert", config.key_file or f"{directory}/key"
        for file, text in ((f"{directory}/cert", config.cert), (f"{directory}/key", config.key)):
            Path(file).write_text(text, encoding="ascii")
        context.load_cert_chain(cert_file, key_file)


class _Secret:
    """One secret of a configuration section, from its text or from its file."""

    def __init__(self, section: object, name: str, clock: Callable[[], float]) -> None:
        self._text: str = getattr(section, name, "")
        self._file: str = getattr(section, f"{name}_file", "")
        self._clock = clock
        self._known = False
        self._seen: object = None
        self._until = 0.0

    def read(self) -> str:
        if self._file and (self._clock() >= self._until or _signature(self._file) != self._seen):
            # The signature comes first: if the file changes in between, the next look sees it.
            seen = _signature(self._file)
            try:
                # By path each time: the kubelet swaps the directory that the file is in.
                text = Path(self._file).read_text(encoding="utf-8").strip()
                if not is_plain(text):
                    raise ValueError("it has line ends or other control characters in it")
            except (OSError, ValueError) as error:
                if not self._known:
                    raise NetworkError("credentials", f"cannot read {self._file}: {error}") from error
            else:
                if text or not self._known:  # an empty one is being written
                    self._text, self._known, self._seen = text, True, seen
            self._until = self._clock() + _TOKEN_AGE
        return self._text

    def forget(self) -> None:
        self._until = 0.0


def _signature(file: str) -> object:
    """What differs when a file was written or replaced; None while it is missing."""
    try:
        status = os.stat(file)  # noqa: PTH116  at each request
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_dev, status.st_size


def _header(text: str) -> tuple[str, str]:
    name, _, value = text.partition(":")
    return name.strip(), value.strip()
