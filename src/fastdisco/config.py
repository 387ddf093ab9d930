"""What a user writes about one discovery: frozen dataclasses, and the loader from a mapping or a YAML file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .errors import ConfigError
from .sections import Section, within

ROLES = ("node", "pod", "service", "endpoints", "endpointslice", "ingress")
KINDS = (*ROLES, "namespace")
"""What can be watched, and what a selector may name: the roles, and namespaces for their metadata."""

_ALIASES = {"endpointslices": "endpointslice"}
_TLS_VERSIONS = ("TLS10", "TLS11", "TLS12", "TLS13")
_UNSUPPORTED = frozenset({
    "kubeconfig_file", "oauth2", "no_proxy", "proxy_from_environment", "proxy_connect_header",
    "http_headers", "encoding", "compression", "initial_state",
})  # fmt: skip
_NO_EFFECT = ("follow_redirects", "enable_http2")  # accepted because configurations have them; in the peers they have no effect either


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Where to look: the named namespaces; with `own_namespace` and no names, the one that the program runs in; else everywhere."""

    names: tuple[str, ...] = ()
    own_namespace: bool = False

    def __post_init__(self) -> None:
        _tuple(self, "names")
        for index, name in enumerate(self.names):
            if not name or "/" in name:
                raise ConfigError(f"names[{index}]: {name!r} is no name of a namespace")


@dataclass(frozen=True, slots=True)
class Selector:
    """Narrows what the API server sends of one kind, for every watcher of that kind in the discovery."""

    role: str
    label: str = ""
    field: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "role", _known_role(self.role, KINDS))


@dataclass(frozen=True, slots=True)
class AttachMetadata:
    """Which joined metadata targets get as labels."""

    node: bool = False
    namespace: bool = False


@dataclass(frozen=True, slots=True)
class Authorization:
    """An `Authorization` header: a type, and credentials as text or from a file that is read again when it changes."""

    type: str = "Bearer"
    credentials: str = field(default="", repr=False)
    credentials_file: str = ""

    def __post_init__(self) -> None:
        if self.type.strip().lower() == "basic":
            raise ConfigError('type: must not be "basic"; use basic_auth instead')
        _not_both(self, "credentials", "credentials_file")


@dataclass(frozen=True, slots=True)
class BasicAuth:
    """A user name and a password, each as text or from a file."""

    username: str = ""
    username_file: str = ""
    password: str = field(default="", repr=False)
    password_file: str = ""

    def __post_init__(self) -> None:
        _not_both(self, "username", "username_file")
        _not_both(self, "password", "password_file")
        if not self.username and not self.username_file:
            raise ConfigError("username: missing")


@dataclass(frozen=True, slots=True)
class TLSConfig:
    """How the server is verified and what it is shown; PEM as text or from files that are read again when they change."""

    ca: str = ""
    ca_file: str = ""
    cert: str = ""
    cert_file: str = ""
    key: str = field(default="", repr=False)
    key_file: str = ""
    server_name: str = ""
    insecure_skip_verify: bool = False
    min_version: str = ""

    def __post_init__(self) -> None:
        for name in ("ca", "cert", "key"):
            _not_both(self, name, f"{name}_file")
        if bool(self.cert or self.cert_file) != bool(self.key or self.key_file):
            raise ConfigError("key_file: missing beside a cert" if self.cert or self.cert_file else "cert_file: missing beside a key")
        if self.min_version and self.min_version not in _TLS_VERSIONS:
            raise ConfigError(f"min_version: must be one of {', '.join(_TLS_VERSIONS)}, not {self.min_version!r}")


@dataclass(frozen=True, slots=True)
class KubernetesSDConfig:
    """One `kubernetes_sd_config`: what to discover, where, and how to reach the API server (empty `api_server`: from inside a pod)."""

    role: str
    api_server: str = ""
    namespaces: Namespaces = field(default_factory=Namespaces)
    selectors: tuple[Selector, ...] = ()
    attach_metadata: AttachMetadata = field(default_factory=AttachMetadata)
    proxy_url: str = field(default="", repr=False)
    authorization: Authorization | None = None
    basic_auth: BasicAuth | None = None
    tls_config: TLSConfig | None = None
    headers: tuple[str, ...] = field(default=(), repr=False)
    api_server_timeout: float = 1800.0
    list_limit: int = 0
    relist_interval: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "role", _known_role(self.role, ROLES))
        _tuple(self, "selectors")
        _tuple(self, "headers")
        if self.authorization and self.basic_auth:
            raise ConfigError("basic_auth: at most one of basic_auth, authorization, bearer_token and bearer_token_file may be given")
        _check_url("api_server", self.api_server, default="https://")
        _check_url("proxy_url", self.proxy_url)
        for index, header in enumerate(self.headers):
            name, colon, value = header.partition(":")
            if not colon or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name.strip()) or re.search(r"[\r\n\0]", value):
                raise ConfigError(f'headers[{index}]: must be of the form "Name: value"')
        if not 1.0 <= self.api_server_timeout < math.inf:
            raise ConfigError("api_server_timeout: must be a second or more")
        if self.list_limit < 0:
            raise ConfigError("list_limit: must not be negative")
        if not 0.0 <= self.relist_interval < math.inf:
            raise ConfigError("relist_interval: must not be negative")

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any], *, path: str = "", directory: str = "") -> KubernetesSDConfig:
        """From a mapping as YAML gives it; `path` leads error messages, relative file names start at `directory`."""
        if not isinstance(mapping, Mapping):
            raise ConfigError(f"{path}{': ' if path else ''}must be a mapping, not {type(mapping).__name__}")
        with within(path):
            return _discovery(Section(mapping, directory))


def load_sd_config(file: str | Path) -> KubernetesSDConfig:
    """The one `kubernetes_sd_config` that a YAML file holds; relative file names in it start at its directory."""
    import yaml

    file = Path(file)
    try:
        mapping = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: no valid YAML: {' '.join(str(error).split())}") from None
    try:
        return KubernetesSDConfig.from_dict(mapping, directory=str(file.parent))
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None


def _discovery(section: Section) -> KubernetesSDConfig:
    for key in _NO_EFFECT:
        section.flag(key)
    config = KubernetesSDConfig(
        role=section.text("role"),
        api_server=section.text("api_server"),
        namespaces=_namespaces(section.section("namespaces")),
        selectors=tuple(_selector(section, key, value) for key, value in section.items("selectors")),
        attach_metadata=_attach_metadata(section.section("attach_metadata")),
        proxy_url=section.text("proxy_url"),
        authorization=_authorization(section),
        basic_auth=_basic_auth(section.section("basic_auth")),
        tls_config=_tls_config(section.section("tls_config")),
        headers=section.texts("headers"),
        api_server_timeout=section.duration("api_server_timeout", 1800.0),
        list_limit=section.integer("list_limit"),
        relist_interval=section.duration("relist_interval", 0.0),
    )
    section.end(_UNSUPPORTED)
    return config


def _namespaces(section: Section | None) -> Namespaces:
    if section is None:
        return Namespaces()
    with section:
        return Namespaces(section.texts("names"), section.flag("own_namespace"))


def _selector(section: Section, key: str, value: object) -> Selector:
    with section.nested(key, value) as inner:
        return Selector(inner.text("role"), inner.text("label"), inner.text("field"))


def _attach_metadata(section: Section | None) -> AttachMetadata:
    if section is None:
        return AttachMetadata()
    with section:
        return AttachMetadata(section.flag("node"), section.flag("namespace"))


def _authorization(section: Section) -> Authorization | None:
    """`bearer_token` and `bearer_token_file` are older spellings of `authorization`."""
    token, token_file = section.text("bearer_token"), section.file("bearer_token_file")
    inner = section.section("authorization")
    if sum(map(bool, (token, token_file, inner))) > 1:
        raise ConfigError("authorization: at most one of basic_auth, authorization, bearer_token and bearer_token_file may be given")
    if token or token_file:
        return Authorization(credentials=token, credentials_file=token_file)
    if inner is None:
        return None
    with inner:
        return Authorization(inner.text("type").strip() or "Bearer", inner.text("credentials"), inner.file("credentials_file"))


def _basic_auth(section: Section | None) -> BasicAuth | None:
    if section is None:
        return None
    with section:
        return BasicAuth(section.text("username"), section.file("username_file"), section.text("password"), section.file("password_file"))


def _tls_config(section: Section | None) -> TLSConfig | None:
    if section is None:
        return None
    with section:
        return TLSConfig(
            ca=section.text("ca"),
            ca_file=section.file("ca_file"),
            cert=section.text("cert"),
            cert_file=section.file("cert_file"),
            key=section.text("key"),
            key_file=section.file("key_file"),
            server_name=section.text("server_name"),
            insecure_skip_verify=section.flag("insecure_skip_verify"),
            min_version=section.text("min_version"),
        )


def _known_role(role: str, known: tuple[str, ...]) -> str:
    role = _ALIASES.get(role, role)
    if role not in known:
        raise ConfigError(f"role: must be one of {', '.join(known)}, not {role!r}" if role else "role: missing")
    return role


def _tuple(section: object, name: str) -> None:
    """Configurations are keys of groups, so a list that was given becomes a tuple."""
    value = getattr(section, name)
    if isinstance(value, str):
        raise ConfigError(f"{name}: must be a list, not a string")
    object.__setattr__(section, name, tuple(value))


def _not_both(section: object, text: str, file: str) -> None:
    if getattr(section, text) and getattr(section, file):
        raise ConfigError(f"{file}: at most one of {text} and {file} may be given")


def _check_url(key: str, url: str, default: str = "") -> None:
    """An `api_server` may come without a scheme, which is then chosen by whether there is a `tls_config`."""
    if not url:
        return
    try:
        parts = urlsplit(url if "://" in url else default + url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0 and not (parts.query or parts.fragment)
    except ValueError:
        good = False
    if not good or re.search(r"\s", url):
        raise ConfigError(f"{key}: must be an http or https URL without query")
