"""What a user may write, and what is said about mistakes."""

from pathlib import Path
from typing import Any

import pytest

from fastdisco.config import (
    AttachMetadata,
    Authorization,
    BasicAuth,
    KubernetesSDConfig,
    Namespaces,
    Selector,
    TLSConfig,
    load_sd_config,
)
from fastdisco.errors import ConfigError

EVERYTHING = """
role: endpointslices
api_server: https://10.0.0.1:6443/k8s/clusters/c1
namespaces: {names: [web, db], own_namespace: false}
selectors:
- {role: pod, label: "app in (a,b)", field: "spec.nodeName=n1"}
- {role: pod, label: tier=web}
- {role: namespace, label: team=x}
attach_metadata: {node: true, namespace: true}
proxy_url: http://proxy:3128
bearer_token_file: token
tls_config:
  ca_file: ca.crt
  cert_file: /etc/client.crt
  key_file: client.key
  server_name: kubernetes
  insecure_skip_verify: true
  min_version: TLS12
headers: ["X-Team: scrapers"]
follow_redirects: true
enable_http2: true
api_server_timeout: 1h30m
list_limit: 500
relist_interval: 12h
"""


def test_everything_is_read(tmp_path: Path) -> None:
    """Each key has its place; files start at the directory of the configuration; durations are seconds."""
    (tmp_path / "sd.yml").write_text(EVERYTHING)
    assert load_sd_config(tmp_path / "sd.yml") == KubernetesSDConfig(
        role="endpointslice",
        api_server="https://10.0.0.1:6443/k8s/clusters/c1",
        namespaces=Namespaces(("web", "db")),
        selectors=(Selector("pod", "app in (a,b)", "spec.nodeName=n1"), Selector("pod", "tier=web"), Selector("namespace", "team=x")),
        attach_metadata=AttachMetadata(node=True, namespace=True),
        proxy_url="http://proxy:3128",
        authorization=Authorization(credentials_file=str(tmp_path / "token")),
        tls_config=TLSConfig(
            ca_file=str(tmp_path / "ca.crt"),
            cert_file="/etc/client.crt",
            key_file=str(tmp_path / "client.key"),
            server_name="kubernetes",
            insecure_skip_verify=True,
            min_version="TLS12",
        ),
        headers=("X-Team: scrapers",),
        api_server_timeout=5400.0,
        list_limit=500,
        relist_interval=43200.0,
    )


def test_little_is_enough() -> None:
    """A role alone is a configuration; keys without values are as if absent."""
    assert KubernetesSDConfig.from_dict({"role": "pod", "namespaces": None, "tls_config": None}) == KubernetesSDConfig("pod")


def test_configurations_are_keys() -> None:
    """Lists given in Python become tuples, so that equal configurations share a group."""
    configs = [KubernetesSDConfig("pod", namespaces=Namespaces(["a"]), headers=["A: b"]) for _ in range(2)]  # type: ignore[arg-type]
    assert len(set(configs)) == 1


@pytest.mark.parametrize(("role", "known"), [("endpointslices", "endpointslice"), ("node", "node"), ("ingress", "ingress")])
def test_roles_and_the_alias(role: str, known: str) -> None:
    """The alias is the role; selectors know it too."""
    config = KubernetesSDConfig.from_dict({"role": role, "selectors": [{"role": role, "label": "a"}]})
    assert (config.role, config.selectors[0].role) == (known, known)


MISTAKES: list[tuple[Any, str]] = [
    ({}, "role: missing"),
    ([], "must be a mapping, not list"),
    ({"role": "pods"}, "role: must be one of node, pod, service, endpoints, endpointslice, ingress, not 'pods'"),
    ({"role": "namespace"}, "role: must be one of"),
    ({"role": 5}, "role: must be a string, not an integer"),
    ({"role": "pod", "rolle": 1}, "rolle: unknown key"),
    ({"role": "pod", "oauth2": {}}, "oauth2: not supported"),
    ({"role": "pod", "namespaces": "web"}, "namespaces: must be a mapping, not a string"),
    ({"role": "pod", "namespaces": {"names": "web"}}, "namespaces.names: must be a list, not a string"),
    ({"role": "pod", "namespaces": {"names": ["a", 1]}}, "namespaces.names[1]: must be a string, not an integer"),
    ({"role": "pod", "namespaces": {"names": ["a", ""]}}, "namespaces.names[1]: '' is no name of a namespace"),
    ({"role": "pod", "namespaces": {"name": []}}, "namespaces.name: unknown key"),
    ({"role": "pod", "namespaces": {"own_namespace": "yes"}}, "namespaces.own_namespace: must be true or false, not a string"),
    ({"role": "pod", "selectors": [{"role": "pod"}, {"role": "x"}]}, "selectors[1].role: must be one of"),
    ({"role": "pod", "selectors": [{"role": "pod", "labels": ""}]}, "selectors[0].labels: unknown key"),
    ({"role": "pod", "selectors": [3]}, "selectors[0]: must be a mapping, not an integer"),
    ({"role": "pod", "attach_metadata": {"deployment": True}}, "attach_metadata.deployment: unknown key"),
    ({"role": "pod", "attach_metadata": {"node": 1}}, "attach_metadata.node: must be true or false, not an integer"),
    ({"role": "pod", "api_server": "ftp://x"}, "api_server: must be an http or https URL without query"),
    ({"role": "pod", "api_server": "https://x:port"}, "api_server: must be"),
    ({"role": "pod", "api_server": "https://x?y"}, "api_server: must be"),
    ({"role": "pod", "proxy_url": "socks5://x"}, "proxy_url: must be"),
    ({"role": "pod", "bearer_token": "a", "bearer_token_file": "b"}, "authorization: at most one of"),
    ({"role": "pod", "authorization": {}, "bearer_token": "b"}, "authorization: at most one of"),
    ({"role": "pod", "authorization": {"type": "Basic"}}, 'authorization.type: must not be "basic"'),
    ({"role": "pod", "authorization": {"credentials": "a", "credentials_file": "b"}}, "authorization.credentials_file: at most one of"),
    ({"role": "pod", "basic_auth": {"username": "u"}, "bearer_token": "t"}, "basic_auth: at most one of"),
    ({"role": "pod", "basic_auth": {"password": "p"}}, "basic_auth.username: missing"),
    ({"role": "pod", "tls_config": {"ca": "x", "ca_file": "y"}}, "tls_config.ca_file: at most one of ca and ca_file"),
    ({"role": "pod", "tls_config": {"cert_file": "y"}}, "tls_config.key_file: missing beside a cert"),
    ({"role": "pod", "tls_config": {"key": "y"}}, "tls_config.cert_file: missing beside a key"),
    ({"role": "pod", "tls_config": {"min_version": "SSL3"}}, "tls_config.min_version: must be one of"),
    ({"role": "pod", "headers": ["nonsense"]}, 'headers[0]: must be of the form "Name: value"'),
    ({"role": "pod", "headers": ["A: b", "B: c\r\nD: e"]}, 'headers[1]: must be of the form "Name: value"'),
    ({"role": "pod", "api_server_timeout": "soon"}, "api_server_timeout: must be a duration such as 30s or 5m, not 'soon'"),
    ({"role": "pod", "api_server_timeout": "1m 2s"}, "api_server_timeout: must be a duration"),
    ({"role": "pod", "api_server_timeout": 0}, "api_server_timeout: must be a second or more"),
    ({"role": "pod", "list_limit": -1}, "list_limit: must not be negative"),
    ({"role": "pod", "list_limit": True}, "list_limit: must be an integer, not true or false"),
    ({"role": "pod", "relist_interval": float("nan")}, "relist_interval: must not be negative"),
]


@pytest.mark.parametrize(("mapping", "message"), MISTAKES)
def test_a_mistake_names_its_key_and_its_reason(mapping: Any, message: str) -> None:
    """The path leads, as seen from where the mapping stands; the file before that."""
    with pytest.raises(ConfigError) as caught:
        KubernetesSDConfig.from_dict(mapping)
    assert str(caught.value).startswith(message)
    with pytest.raises(ConfigError) as caught:
        KubernetesSDConfig.from_dict(mapping, path="scrape_configs[2].kubernetes_sd_configs[0]")
    joint = ": " if message.startswith("must") else "."
    assert str(caught.value).startswith(f"scrape_configs[2].kubernetes_sd_configs[0]{joint}{message}")


def test_mistakes_in_files_name_the_file(tmp_path: Path) -> None:
    """A missing file, one that is no YAML and one with a wrong key."""
    file = tmp_path / "sd.yml"
    with pytest.raises(ConfigError, match=r"sd\.yml: cannot be read"):
        load_sd_config(file)
    file.write_text("role: [")
    with pytest.raises(ConfigError, match=r"sd\.yml: no valid YAML"):
        load_sd_config(file)
    file.write_text("role: pod\nnamespaces: {names: [1]}")
    with pytest.raises(ConfigError, match=r"sd\.yml: namespaces\.names\[0\]: must be a string"):
        load_sd_config(file)
    file.write_text("")
    with pytest.raises(ConfigError, match=r"sd\.yml: must be a mapping"):
        load_sd_config(file)


def test_mistakes_in_python_are_the_same() -> None:
    """Constructors check what the loader checks."""
    with pytest.raises(ConfigError, match="role"):
        KubernetesSDConfig("pods")
    with pytest.raises(ConfigError, match="names"):
        Namespaces("web")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "seconds"), [(30, 30.0), (0.5, 0.5), ("3s", 3.0), ("500ms", 0.5), ("1h30m", 5400.0), ("1d", 86400.0)]
)
def test_durations(written: object, seconds: float) -> None:
    """Numbers are seconds; texts have units."""
    assert KubernetesSDConfig.from_dict({"role": "pod", "relist_interval": written}).relist_interval == seconds


def test_secrets_are_never_shown() -> None:
    """What is logged or printed by accident gives nothing away."""
    config = KubernetesSDConfig(
        "pod",
        proxy_url="http://user:SECRET@proxy",
        authorization=Authorization(credentials="SECRET"),
        tls_config=TLSConfig(cert="c", key="SECRET"),
        headers=("Authorization: SECRET",),
    )
    assert "SECRET" not in repr((config, BasicAuth("u", password="SECRET")))
