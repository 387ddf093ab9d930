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
attach_metadata: {node: true, namespace: true, deployment: true, job: false, cronjob: true}
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


def test_headers_may_be_written_as_prometheus_has_them() -> None:
    """Several values of a name are sent as one."""
    written = {"X-Team": {"values": ["a", "b"], "secrets": ["c"]}, "X-Key": {"secrets": ["d"]}}
    config = KubernetesSDConfig.from_dict({"role": "pod", "headers": ["A: b"], "http_headers": written})
    assert config.headers == ("A: b", "X-Team: a, b, c", "X-Key: d")
    assert "X-Key" not in repr(config)


def test_everything_is_read(tmp_path: Path) -> None:
    """Each key has its place; files start at the directory of the configuration; durations are seconds."""
    (tmp_path / "sd.yml").write_text(EVERYTHING)
    assert load_sd_config(tmp_path / "sd.yml") == KubernetesSDConfig(
        role="endpointslice",
        api_server="https://10.0.0.1:6443/k8s/clusters/c1",
        namespaces=Namespaces(("web", "db")),
        selectors=(Selector("pod", "app in (a,b)", "spec.nodeName=n1"), Selector("pod", "tier=web"), Selector("namespace", "team=x")),
        attach_metadata=AttachMetadata(node=True, namespace=True, deployment=True, cronjob=True),
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


PEM = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"
PEM_KEY = PEM.replace("CERTIFICATE", "EC PRIVATE KEY")

MISTAKES: list[tuple[Any, str]] = [
    ({}, "role: missing"),
    ([], "must be a mapping, not a list"),
    (None, "must be a mapping, not nothing"),
    ({"rolle": "pod"}, "rolle: unknown key"),
    ({"global": {}, "kubernetes_sd_configs": [{"role": "pod"}]}, "kubernetes_sd_configs: unknown key; give one entry of it"),
    ({"scrape_configs": []}, "scrape_configs: unknown key; give one entry of a job's kubernetes_sd_configs"),
    ({"role": "pods"}, "role: must be one of node, pod, service, endpoints, endpointslice, ingress, not 'pods'"),
    ({"role": "namespace"}, "role: must be one of"),
    ({"role": 5}, "role: must be a string, not an integer"),
    ({"role": 5.5}, "role: must be a string, not a number"),
    ({"role": "pod", "rolle": 1}, "rolle: unknown key"),
    ({"role": "pod", "oauth2": {}}, "oauth2: not supported"),
    ({"role": "pod", "http_headers": {"A": {"files": ["x"]}}}, "http_headers.A.files: not supported; give values or secrets"),
    ({"role": "pod", "http_headers": {"A": {"value": ["x"]}}}, "http_headers.A.value: unknown key"),
    ({"role": "pod", "http_headers": {"A": "x"}}, "http_headers.A: must be a mapping, not a string"),
    ({"role": "pod", "http_headers": {"Host": {"values": ["x"]}}}, "http_headers.Host: must not be given"),
    ({"role": "pod", "tls_config": {"max_version": "TLS9"}}, "tls_config.max_version: must be one of"),
    (
        {"role": "pod", "tls_config": {"max_version": "TLS11", "min_version": "TLS12"}},
        "tls_config.max_version: must not be below the min_version",
    ),
    ({"role": "pod", "namespaces": "web"}, "namespaces: must be a mapping, not a string"),
    ({"role": "pod", "namespaces": {"names": "web"}}, "namespaces.names: must be a list, not a string"),
    ({"role": "pod", "namespaces": {"names": ["a", 1]}}, "namespaces.names[1]: must be a string, not an integer"),
    ({"role": "pod", "namespaces": {"names": ["a", ""]}}, "namespaces.names[1]: '' is no name of a namespace"),
    ({"role": "pod", "namespaces": {"names": ["Bad_Name"]}}, "namespaces.names[0]: 'Bad_Name' is no name of a namespace"),
    ({"role": "pod", "namespaces": {"names": ["a.b"]}}, "namespaces.names[0]: 'a.b' is no name of a namespace"),
    ({"role": "pod", "namespaces": {"names": ["a-"]}}, "namespaces.names[0]: 'a-' is no name of a namespace"),
    ({"role": "pod", "namespaces": {"names": ["a\n"]}}, "namespaces.names[0]: 'a\\n' is no name of a namespace"),
    ({"role": "pod", "namespaces": {"names": ["a" * 64]}}, "namespaces.names[0]: 'aaa"),
    ({"role": "pod", "namespaces": {"name": []}}, "namespaces.name: unknown key"),
    ({"role": "pod", "namespaces": {"own_namespace": "yes"}}, "namespaces.own_namespace: must be true or false, not a string"),
    ({"role": "pod", "selectors": [{"role": "pod", "label": "a"}, {"role": "x"}]}, "selectors[1].role: must be one of"),
    ({"role": "pod", "selectors": [{"role": "pod", "labels": ""}]}, "selectors[0].labels: unknown key"),
    ({"role": "pod", "selectors": [{"rolle": "pod"}]}, "selectors[0].rolle: unknown key"),
    ({"role": "pod", "selectors": [{"role": "pod"}]}, "selectors[0].label: missing, and field as well"),
    ({"role": "pod", "selectors": [{"role": "pod", "label": " ", "field": ""}]}, "selectors[0].label: missing, and field as well"),
    ({"role": "pod", "selectors": [3]}, "selectors[0]: must be a mapping, not an integer"),
    ({"role": "pod", "attach_metadata": {"daemonset": True}}, "attach_metadata.daemonset: unknown key"),
    ({"role": "pod", "attach_metadata": {"node": 1}}, "attach_metadata.node: must be true or false, not an integer"),
    ({"role": "pod", "api_server": "ftp://x"}, "api_server: must be an http or https URL without query, not 'ftp://x'"),
    ({"role": "pod", "api_server": "https://x:port"}, "api_server: must have a port from 1 to 65535, not 'https://x:port'"),
    ({"role": "pod", "api_server": "http://127.0.0.1:99999"}, "api_server: must have a port from 1 to 65535, not 'http://127.0.0.1:99999'"),
    ({"role": "pod", "api_server": "x:0"}, "api_server: must have a port from 1 to 65535, not 'x:0'"),
    ({"role": "pod", "api_server": "https://x?y"}, "api_server: must be an http or https URL without query, not 'https://x?...'"),
    ({"role": "pod", "api_server": "https://x\0"}, "api_server: must be an http or https URL without query, not 'https://x\\x00'"),
    ({"role": "pod", "api_server": "https://[x"}, "api_server: must be an http or https URL without query, not 'https://[x'"),
    ({"role": "pod", "api_server": "https://u:p@x"}, "api_server: must not have a user or a password in it; use basic_auth"),
    ({"role": "pod", "api_server": "u@x"}, "api_server: must not have a user or a password in it; use basic_auth"),
    ({"role": "pod", "proxy_url": "socks5://x"}, "proxy_url: must be an http or https URL without query, not 'socks5://x'"),
    ({"role": "pod", "bearer_token": "a", "bearer_token_file": "b"}, "bearer_token_file: at most one of bearer_token and bearer"),
    ({"role": "pod", "authorization": {}, "bearer_token": "b"}, "bearer_token: at most one of authorization and bearer_token may"),
    ({"role": "pod", "authorization": {"type": "Basic"}}, 'authorization.type: must not be "basic"'),
    ({"role": "pod", "authorization": {"credentials": "a", "credentials_file": "b"}}, "authorization.credentials_file: at most one of"),
    ({"role": "pod", "basic_auth": {"username": "u"}, "bearer_token": "t"}, "bearer_token: at most one of basic_auth and bearer_token may"),
    (
        {"role": "pod", "basic_auth": {}, "bearer_token_file": "t", "authorization": {}},
        "bearer_token_file: at most one of authorization, basic_auth and bearer_token_file may",
    ),
    ({"role": "pod", "basic_auth": {"password": "p"}}, "basic_auth.username: missing"),
    ({"role": "pod", "basic_auth": {"user": "p"}}, "basic_auth.user: unknown key"),
    ({"role": "pod", "tls_config": {"ca": "not a pem"}}, "tls_config.ca: must be PEM, with its BEGIN and END lines; the name"),
    ({"role": "pod", "tls_config": {"ca": "-----BEGIN CERTIFICATE-----\nMII"}}, "tls_config.ca: must be PEM"),
    ({"role": "pod", "tls_config": {"cert": "x", "key": PEM_KEY}}, "tls_config.cert: must be PEM"),
    ({"role": "pod", "tls_config": {"cert": PEM, "key": PEM}}, "tls_config.key: must be PEM"),
    ({"role": "pod", "tls_config": {"ca": "x", "ca_file": "y"}}, "tls_config.ca_file: at most one of ca and ca_file"),
    ({"role": "pod", "tls_config": {"cert_file": "y"}}, "tls_config.key_file: missing beside a cert"),
    ({"role": "pod", "tls_config": {"key": "y"}}, "tls_config.cert_file: missing beside a key"),
    ({"role": "pod", "tls_config": {"server_name": "a\0b"}}, "tls_config.server_name: 'a\\x00b' is no name of a host"),
    ({"role": "pod", "tls_config": {"server_name": "a..b"}}, "tls_config.server_name: 'a..b' is no name of a host"),
    ({"role": "pod", "tls_config": {"min_version": "SSL3"}}, "tls_config.min_version: must be one of"),
    ({"role": "pod", "headers": ["nonsense"]}, 'headers[0]: must be of the form "Name: value"'),
    ({"role": "pod", "headers": ["A: b", "B: c\r\nD: e"]}, "headers[1]: must have no line ends"),
    ({"role": "pod", "bearer_token": "a\nb"}, "bearer_token: must have no line ends and no other control characters in it"),
    ({"role": "pod", "authorization": {"credentials": "a\nb"}}, "authorization.credentials: must have no line ends"),
    ({"role": "pod", "authorization": {"credentials": "\ud800"}}, "authorization.credentials: must have no line ends"),
    ({"role": "pod", "authorization": {"type": "a\x7fb"}}, "authorization.type: must have no line ends"),
    ({"role": "pod", "basic_auth": {"username": "a\0"}}, "basic_auth.username: must have no line ends"),
    ({"role": "pod", "basic_auth": {"username": "a", "password": "b\n"}}, "basic_auth.password: must have no line ends"),
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
    file.write_text("role: pod\nnamespaces: {names: [[1]]}")
    with pytest.raises(ConfigError, match=r"sd\.yml: namespaces\.names\[0\]: must be a string"):
        load_sd_config(file)
    file.write_text("")
    with pytest.raises(ConfigError, match=r"sd\.yml: must be a mapping, not nothing"):
        load_sd_config(file)
    file.write_text("role: 2020-13-45")
    with pytest.raises(ConfigError, match=r"sd\.yml: role: must be one of .*, not '2020-13-45'"):
        load_sd_config(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("role: pod\nlist_limit: 1\nrole: node", "role: given twice, on lines 1 and 3"),
        ("role: pod\nselectors:\n- {role: pod, label: a}\n- role: pod\n  'role': x", "selectors[1].role: given twice, on lines 4 and 5"),
        ("{role: pod, role: pod}", "role: given twice, on lines 1 and 1"),
    ],
)
def test_a_key_that_is_given_twice_is_a_mistake(text: str, message: str, tmp_path: Path) -> None:
    """The lines are told; what one would win is never guessed."""
    (tmp_path / "sd.yml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_sd_config(tmp_path / "sd.yml")
    assert str(caught.value) == f"{tmp_path}/sd.yml: {message}"


def test_a_merged_key_may_be_given_again(tmp_path: Path) -> None:
    """That is what `<<` is for; a mapping that stands in two places is not given twice either."""
    (tmp_path / "sd.yml").write_text("role: pod\nselectors:\n- &a {role: pod, label: x}\n- {<<: *a, label: y}\n- *a")
    assert [selector.label for selector in load_sd_config(tmp_path / "sd.yml").selectors] == ["x", "y", "x"]


def test_a_list_within_itself_is_a_mistake_and_no_endless_search(tmp_path: Path) -> None:
    """YAML can say that."""
    (tmp_path / "sd.yml").write_text("role: &a [*a]")
    with pytest.raises(ConfigError, match="role: must be a string, not a list"):
        load_sd_config(tmp_path / "sd.yml")


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
        tls_config=TLSConfig(cert=PEM, key=PEM_KEY.replace("MII", "SECRET")),
        headers=("Authorization: SECRET",),
    )
    assert "SECRET" not in repr((config, BasicAuth("u", password="SECRET")))


@pytest.mark.parametrize(
    "mapping",
    [
        {"api_server": "https://u:SECRET@host"},
        {"api_server": "u:SECRET@host:99999"},
        {"api_server": "ftp://u:SECRET@host"},
        {"api_server": "https://u:a/SECRET@host"},
        {"api_server": "https://u:a?SECRET@[host"},
        {"api_server": "https:/u:a\nSECRET@host"},
        {"api_server": "https://host?token=SECRET"},
        {"proxy_url": "socks5://u:SECRET@host"},
        {"bearer_token": "SECRET\n"},
        {"headers": ["A: SECRET\n"]},
        {"headers": ["SECRET"]},
        {"basic_auth": {"username": "u", "password": "SECRET\n"}},
        {"tls_config": {"cert": PEM, "key": "SECRET"}},
    ],
)
def test_no_mistake_shows_a_secret(mapping: dict[str, Any]) -> None:
    """Messages end in logs."""
    with pytest.raises(ConfigError) as caught:
        KubernetesSDConfig.from_dict({"role": "pod", **mapping})
    assert "SECRET" not in str(caught.value)


def test_what_looks_odd_and_is_right() -> None:
    """A proxy may want a password, and headers may have tabs; PEM may have text around it."""
    KubernetesSDConfig("pod", proxy_url="http://u:p@proxy:1", headers=("A: b\tc",), tls_config=TLSConfig(ca=f"# of the cluster\n{PEM}"))
