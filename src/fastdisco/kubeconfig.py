"""A kubeconfig file: which API server its current context, or another one, means, and how it is reached."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

from .config import Authorization, BasicAuth, KubernetesSDConfig, TLSConfig
from .errors import ConfigError
from .sections import Section, load_yaml, mapping_at, within

_REFUSED = (
    "exec", "auth-provider", "as", "as-uid", "as-groups", "as-user-extra", "act-as", "act-as-uid", "act-as-groups", "act-as-user-extra",
)  # fmt: skip


def with_kubeconfig(config: KubernetesSDConfig, *, context: str = "") -> KubernetesSDConfig:
    """The same discovery, and in place of its `kubeconfig_file` the connection that it has for a context (empty: the current one).

    ConfigError names the file, the key and the reason.
    """
    file = Path(config.kubeconfig_file)
    try:
        document = load_yaml(file)
    except ConfigError as error:  # which names the file
        raise ConfigError(f"kubeconfig_file: {error}") from None
    try:
        return _connected(config, Section(mapping_at("", document), str(file.parent)), context)
    except ConfigError as error:
        raise ConfigError(f"kubeconfig_file: {file}: {error}") from None


def _connected(config: KubernetesSDConfig, top: Section, context: str) -> KubernetesSDConfig:
    name = context or top.text("current-context")
    if not name:
        raise ConfigError("current-context: missing")
    place, chosen = _named(top, "contexts", "context", name)
    with within(place):
        cluster_name, user_name = chosen.text("cluster"), chosen.text("user")
        if not cluster_name:
            raise ConfigError("cluster: missing")
    cluster_place, cluster = _named(top, "clusters", "cluster", cluster_name)
    user_place, user = _named(top, "users", "user", user_name) if user_name else ("", Section({}))
    with within(cluster_place):
        server = cluster.text("server")
        if not server:
            raise ConfigError("server: missing")
        tls_config = TLSConfig(
            ca=(ca := _decoded(cluster, "certificate-authority-data")),
            ca_file="" if ca else cluster.file("certificate-authority"),
            server_name=cluster.text("tls-server-name"),
            insecure_skip_verify=cluster.flag("insecure-skip-tls-verify"),
        )
        proxy_url = cluster.text("proxy-url")
    with within(user_place):
        tls_config = replace(
            tls_config,
            cert=(cert := _decoded(user, "client-certificate-data")),
            cert_file="" if cert else user.file("client-certificate"),
            key=(key := _decoded(user, "client-key-data")),
            key_file="" if key else user.file("client-key"),
        )
        authorization, basic_auth = _proof(user)
    return replace(
        config,
        kubeconfig_file="",
        api_server=server,
        authorization=authorization,
        basic_auth=basic_auth,
        tls_config=tls_config if server.startswith("https://") else None,
        proxy_url=proxy_url,
    )


def _named(top: Section, kind: str, key: str, name: str) -> tuple[str, Section]:
    """The first entry of that name, and where it stands."""
    for place, value in top.items(kind):
        entry = top.nested(place, value)
        with within(place):
            if entry.text("name") == name:
                return f"{place}.{key}", entry.section(key) or Section({})
    raise ConfigError(f"{kind}: none is called {name!r}")


def _proof(user: Section) -> tuple[Authorization | None, BasicAuth | None]:
    """As client-go has it, the file of a token comes before the token, which is what the file held once."""
    for key in _REFUSED:
        if user.take(key):
            raise ConfigError(f"{key}: not supported; use a token, tokenFile or a client certificate")
    token, token_file = user.text("token"), user.file("tokenFile")
    username, password = user.text("username"), user.text("password")
    if token or token_file:
        return Authorization(credentials="" if token_file else token, credentials_file=token_file), None
    return None, BasicAuth(username=username, password=password) if username or password else None


def _decoded(section: Section, key: str) -> str:
    text = section.text(key)
    try:
        return base64.b64decode(text, validate=True).decode("ascii")
    except ValueError:
        raise ConfigError(f"{key}: must be PEM in base64") from None
