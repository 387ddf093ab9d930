"""What a user writes about one discovery: frozen dataclasses, and the loader from a mapping or a YAML file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .errors import ConfigError
from .sections import Section, load_yaml, mapping_at, within

ROLES = ("node", "pod", "service", "endpoints", "endpointslice", "ingress")
DIALECTS = ("victoriametrics", "prometheus")
KINDS = (*ROLES, "namespace")
"""What can be watched, and what a selector may name: the roles, and namespaces for their metadata."""

_ALIASES = {"endpointslices": "endpointslice"}
_TLS_VERSIONS = ("TLS10", "TLS11", "TLS12", "TLS13")
_REFUSED = {
    "kubernetes_sd_configs": "unknown key; give one entry of it",
    "scrape_configs": "unknown key; give one entry of a job's kubernetes_sd_configs",
    **dict.fromkeys((
        "oauth2", "proxy_connect_header", "encoding", "compression", "initial_state",
    ), "not supported"),
}  # fmt: skip
_NO_EFFECT = ("follow_redirects", "enable_http2")  # accepted because configurations have them; in the peers they have no effect either
_NAMESPACE = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"  # a label of RFC 1123
_HEADER_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_RESERVED_HEADERS = ("authorization", "host", "accept-encoding", "connection", "content-length", "content-type", "user-agent")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_CERTIFICATE = r"(?s)-----BEGIN (TRUSTED |X509 )?CERTIFICATE-----.+-----END "
_KEY = r"(?s)-----BEGIN ([A-Z]+ )?PRIVATE KEY-----.+-----END "


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Where to look: the named namespaces; with `own_namespace` and no names, the one that the program runs in; else everywhere."""

    names: tuple[str, ...] = ()
    own_namespace: bool = False

    def __post_init__(self) -> None:
        _tuple(self, "names")
        for index, name in enumerate(self.names):
            if not re.fullmatch(_NAMESPACE, name):
                raise ConfigError(f"names[{index}]: {name!r} is no name of a namespace")


@dataclass(frozen=True, slots=True)
class Selector:
    """Narrows what the API server sends of one kind, for every watcher of that kind in the discovery."""

    role: str
    label: str = ""
    field: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "role", _known_role(self.role, KINDS))
        if not self.label.strip() and not self.field.strip():
            raise ConfigError("label: missing, and field as well; a selector has at least one of them")


@dataclass(frozen=True, slots=True)
class AttachMetadata:
    """Which joined metadata targets get as labels; the last three are names of what is behind the owner of a pod."""

    node: bool = False
    namespace: bool = False
    deployment: bool = False
    job: bool = False
    cronjob: bool = False


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
        _check_plain("type", self.type)
        _check_plain("credentials", self.credentials)


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
        _check_plain("username", self.username)
        _check_plain("password", self.password)


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
    max_version: str = ""

    def __post_init__(self) -> None:
        for name in ("ca", "cert", "key"):
            _not_both(self, name, f"{name}_file")
        if bool(self.cert or self.cert_file) != bool(self.key or self.key_file):
            raise ConfigError("key_file: missing beside a cert" if self.cert or self.cert_file else "cert_file: missing beside a key")
        for name, text, pem in (("ca", self.ca, _CERTIFICATE), ("cert", self.cert, _CERTIFICATE), ("key", self.key, _KEY)):
            if text and not re.search(pem, text):
                raise ConfigError(f"{name}: must be PEM, with its BEGIN and END lines; the name of a file is for {name}_file")
        try:
            good = is_plain(self.server_name.encode("idna").decode())
        except UnicodeError:  # a part of it is empty or longer than 63 characters
            good = False
        if not good:
            raise ConfigError(f"server_name: {self.server_name!r} is no name of a host")
        for name in ("min_version", "max_version"):
            if (version := getattr(self, name)) and version not in _TLS_VERSIONS:
                raise ConfigError(f"{name}: must be one of {', '.join(_TLS_VERSIONS)}, not {version!r}")
        if self.max_version and self.max_version < self.min_version:
            raise ConfigError("max_version: must not be below the min_version")


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
    kubeconfig_file: str = ""
    no_proxy: str = ""
    proxy_from_environment: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "role", _known_role(self.role, ROLES))
        _tuple(self, "selectors")
        _tuple(self, "headers")
        if self.authorization and self.basic_auth:
            raise ConfigError("basic_auth: at most one of authorization and basic_auth may be given")
        if "@" in _check_url("api_server", self.api_server, default="https://"):
            raise ConfigError("api_server: must not have a user or a password in it; use basic_auth")
        for key in ("api_server", "authorization", "basic_auth", "tls_config", "proxy_url", "proxy_from_environment"):
            if self.kubeconfig_file and getattr(self, key):
                raise ConfigError(f"{key}: not allowed beside kubeconfig_file, which is to say it")
        _check_url("proxy_url", self.proxy_url)
        if self.proxy_from_environment and (self.proxy_url or self.no_proxy):
            raise ConfigError("proxy_from_environment: not allowed beside proxy_url or no_proxy")
        if self.no_proxy and not self.proxy_url:
            raise ConfigError("no_proxy: means nothing without proxy_url")
        for index, header in enumerate(self.headers):
            name, colon, value = header.partition(":")
            if not colon or not re.fullmatch(_HEADER_NAME, name.strip()):
                raise ConfigError(f'headers[{index}]: must be of the form "Name: value"')
            _check_plain(f"headers[{index}]", value.replace("\t", " "))
        if not 1.0 <= self.api_server_timeout < math.inf:
            raise ConfigError("api_server_timeout: must be a second or more")
        if self.list_limit < 0:
            raise ConfigError("list_limit: must not be negative")
        if not 0.0 <= self.relist_interval < math.inf:
            raise ConfigError("relist_interval: must not be negative")

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any], *, path: str = "", directory: str = "") -> KubernetesSDConfig:
        """From a mapping as YAML gives it; `path` leads error messages, relative file names start at `directory`."""
        mapping = mapping_at(path, mapping)
        with within(path):
            return _discovery(Section(mapping, directory, refused=_REFUSED))


def load_sd_config(file: str | Path) -> KubernetesSDConfig:
    """The one `kubernetes_sd_config` that a YAML file holds; relative file names in it start at its directory."""
    file = Path(file)
    mapping = load_yaml(file)
    try:
        return KubernetesSDConfig.from_dict(mapping, directory=str(file.parent))
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None


def _discovery(section: Section) -> KubernetesSDConfig:
    for key in _NO_EFFECT:
        section.flag(key)
    authorization, basic_auth = _proof(section)
    return section.make(
        KubernetesSDConfig,
        role=section.text("role"),
        api_server=section.text("api_server"),
        namespaces=_namespaces(section.section("namespaces")),
        selectors=tuple(_selector(section, key, value) for key, value in section.items("selectors")),
        attach_metadata=_attach_metadata(section.section("attach_metadata")),
        proxy_url=section.text("proxy_url"),
        authorization=authorization,
        basic_auth=basic_auth,
        tls_config=_tls_config(section.section("tls_config")),
        headers=section.texts("headers") + _http_headers(section.section("http_headers")),
        api_server_timeout=section.duration("api_server_timeout", 1800.0),
        list_limit=section.integer("list_limit"),
        relist_interval=section.duration("relist_interval", 0.0),
        kubeconfig_file=section.file("kubeconfig_file"),
        no_proxy=section.text("no_proxy"),
        proxy_from_environment=section.flag("proxy_from_environment"),
    )


def _namespaces(section: Section | None) -> Namespaces:
    if section is None:
        return Namespaces()
    with section:
        return section.make(Namespaces, section.texts("names"), section.flag("own_namespace"))


def _selector(section: Section, key: str, value: object) -> Selector:
    with section.nested(key, value) as inner:
        return inner.make(Selector, inner.text("role"), inner.text("label"), inner.text("field"))


def _attach_metadata(section: Section | None) -> AttachMetadata:
    if section is None:
        return AttachMetadata()
    with section:
        return section.make(AttachMetadata, **{one.name: section.flag(one.name) for one in fields(AttachMetadata)})


def _proof(section: Section) -> tuple[Authorization | None, BasicAuth | None]:
    """`bearer_token` and `bearer_token_file` are older spellings of `authorization`."""
    authorization, basic_auth = section.section("authorization"), section.section("basic_auth")
    token, token_file = section.text("bearer_token"), section.file("bearer_token_file")
    ways = {"authorization": authorization, "basic_auth": basic_auth, "bearer_token": token, "bearer_token_file": token_file}
    given = [key for key, value in ways.items() if value]
    if len(given) > 1:
        raise ConfigError(f"{given[-1]}: at most one of {', '.join(given[:-1])} and {given[-1]} may be given")
    _check_plain("bearer_token", token)
    if token or token_file:
        return Authorization(credentials=token, credentials_file=token_file), None
    return _authorization(authorization), _basic_auth(basic_auth)


def _authorization(section: Section | None) -> Authorization | None:
    if section is None:
        return None
    with section:
        kind = section.text("type").strip() or "Bearer"
        return section.make(Authorization, kind, section.text("credentials"), section.file("credentials_file"))


def _basic_auth(section: Section | None) -> BasicAuth | None:
    if section is None:
        return None
    with section:
        username, username_file = section.text("username"), section.file("username_file")
        return section.make(BasicAuth, username, username_file, section.text("password"), section.file("password_file"))


def _tls_config(section: Section | None) -> TLSConfig | None:
    if section is None:
        return None
    with section:
        return section.make(
            TLSConfig,
            ca=section.text("ca"),
            ca_file=section.file("ca_file"),
            cert=section.text("cert"),
            cert_file=section.file("cert_file"),
            key=section.text("key"),
            key_file=section.file("key_file"),
            server_name=section.text("server_name"),
            insecure_skip_verify=section.flag("insecure_skip_verify"),
            min_version=section.text("min_version"),
            max_version=section.text("max_version"),
        )


def _http_headers(section: Section | None) -> tuple[str, ...]:
    """Prometheus' spelling of `headers`; several values of a name are sent as one, as HTTP has it."""
    if section is None:
        return ()
    headers = []
    with section:
        for name in section.keys():  # noqa: SIM118  (a Section is no mapping)
            if name.lower() in _RESERVED_HEADERS:
                raise ConfigError(f"{name}: must not be given; requests set it themselves")
            with section.nested(name, section.take(name)) as inner:
                if inner.take("files"):
                    raise ConfigError("files: not supported; give values or secrets")
                headers.append(f"{name}: {', '.join(inner.texts('values') + inner.texts('secrets'))}")
    return tuple(headers)


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


def is_plain(text: str) -> bool:
    """Whether a header of a request can carry it."""
    return not _CONTROL.search(text)


def _check_plain(key: str, text: str) -> None:
    if not is_plain(text):
        raise ConfigError(f"{key}: must have no line ends and no other control characters in it")


def without_secrets(url: str) -> str:
    """For people; however wrong it is, neither its user and password nor its query are shown."""
    bare = re.sub(r"^([a-z][a-z0-9+.-]*://)?.*@", r"\1", url, flags=re.DOTALL | re.IGNORECASE)
    return re.sub(r"([?#]).*", r"\1...", bare, flags=re.DOTALL)


def _check_url(key: str, url: str, default: str = "") -> str:
    """Its part with host and port. An `api_server` may come without a scheme, which is then chosen by whether there is a `tls_config`."""
    if not url:
        return ""
    try:
        parts = urlsplit(url if "://" in url else default + url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:
        good = False
    if not good or re.search(r"\s", url) or not is_plain(url):
        raise ConfigError(f"{key}: must be an http or https URL without query, not {without_secrets(url)!r}")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise ConfigError(f"{key}: must have a port from 1 to 65535, not {without_secrets(url)!r}")
    return parts.netloc
