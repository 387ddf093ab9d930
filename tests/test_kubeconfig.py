"""Kubeconfig files: which server, whom it is to trust, and what proves who asks."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import orjson
import pytest

from fastdisco.auth import Connection, Trust, resolve
from fastdisco.config import Authorization, BasicAuth, KubernetesSDConfig, Namespaces, TLSConfig
from fastdisco.configuration import changed, compare, load_configuration
from fastdisco.errors import ConfigError
from fastdisco.kubeconfig import with_kubeconfig
from fastdisco.synthetic import SyntheticProcess
from tests.test_cli import run

TLS = Path(__file__).parent / "data" / "tls"


def written(folder: Path, cluster: dict[str, Any], user: dict[str, Any] | None = None, **more: Any) -> Path:
    file = folder / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"} | cluster}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "ignored", "extensions": []}}],
        "current-context": "x",
    }
    file.write_bytes(orjson.dumps(document | more))  # JSON is YAML
    return file


def connection(file: Path) -> Connection:
    return resolve(KubernetesSDConfig("pod", kubeconfig_file=str(file)), environ={})


def test_the_current_context_leads_to_a_server_and_a_user(tmp_path: Path) -> None:
    """Names of files start at the kubeconfig."""
    file = written(
        tmp_path,
        {"certificate-authority": "ca.crt", "tls-server-name": "kubernetes", "proxy-url": "http://127.0.0.1:3128"},
        {"client-certificate": "/etc/client.crt", "client-key": "keys/client.key", "tokenFile": "token", "token": "older"},
    )
    assert connection(file) == Connection(
        "https://127.0.0.1:6443",
        "http://127.0.0.1:3128",
        Authorization(credentials_file=str(tmp_path / "token")),
        None,
        TLSConfig(
            ca_file=str(tmp_path / "ca.crt"),
            cert_file="/etc/client.crt",
            key_file=str(tmp_path / "keys" / "client.key"),
            server_name="kubernetes",
        ),
    )


@pytest.mark.parametrize(
    ("user", "authorization", "basic_auth"),
    [
        ({"token": "t"}, Authorization(credentials="t"), None),
        ({"username": "me", "password": "p"}, None, BasicAuth("me", password="p")),
        ({}, None, None),
    ],
)
def test_what_proves_who_asks(
    user: dict[str, str], authorization: Authorization | None, basic_auth: BasicAuth | None, tmp_path: Path
) -> None:
    """A token, a name and a password, or nothing."""
    found = connection(written(tmp_path, {}, user))
    assert (found.authorization, found.basic_auth) == (authorization, basic_auth)


async def test_certificates_may_be_in_the_file_itself(tmp_path: Path) -> None:
    """In base64; they come before those in files."""
    cert, key, ca = ((TLS / name).read_bytes() for name in ("client.pem", "client.key", "ca.pem"))
    file = written(
        tmp_path,
        {"certificate-authority-data": base64.b64encode(ca).decode(), "certificate-authority": "nowhere"},
        {"client-certificate-data": base64.b64encode(cert).decode(), "client-key-data": base64.b64encode(key).decode()},
    )
    found = connection(file).tls_config
    assert (found.ca, found.cert, found.key, found.ca_file) == (ca.decode(), cert.decode(), key.decode(), "")
    await Trust(found).context()


def test_another_context_may_be_asked_for(tmp_path: Path) -> None:
    """All else of the discovery stays; without TLS there is no tls_config."""
    file = written(
        tmp_path,
        {},
        contexts=[{"name": "x", "context": {"cluster": "c"}}, {"name": "y", "context": {"cluster": "d"}}],
        clusters=[{"name": "c", "cluster": {"server": "https://c:1"}}, {"name": "d", "cluster": {"server": "http://d:1"}}],
    )
    config = KubernetesSDConfig("node", namespaces=Namespaces(("a",)), headers=("A: b",), kubeconfig_file=str(file))
    assert with_kubeconfig(config, context="y") == KubernetesSDConfig(
        "node", "http://d:1", namespaces=Namespaces(("a",)), headers=("A: b",)
    )
    assert with_kubeconfig(config).api_server == "https://c:1"


@pytest.mark.parametrize(
    ("cluster", "user", "more", "message"),
    [
        ({}, {"exec": {"command": "aws"}}, {}, "users[0].user.exec: not supported; use a token, "),
        ({}, {"auth-provider": {"name": "gcp"}}, {}, "users[0].user.auth-provider: not supported"),
        ({}, {"as": "root"}, {}, "users[0].user.as: not supported"),
        ({"server": ""}, {}, {}, "clusters[0].cluster.server: missing"),
        ({"certificate-authority-data": "?"}, {}, {}, "clusters[0].cluster.certificate-authority-data: must be PEM in base64"),
        ({}, {"client-certificate": "a"}, {}, "users[0].user.key_file: missing beside a cert"),
        ({}, {}, {"current-context": ""}, "current-context: missing"),
        ({}, {}, {"current-context": "z"}, "contexts: none is called 'z'"),
        ({}, {}, {"users": []}, "users: none is called 'u'"),
        ({}, {}, {"clusters": [5]}, "clusters[0]: must be a mapping, not an integer"),
        ({}, {}, {"contexts": [{"name": "x"}]}, "contexts[0].context.cluster: missing"),
    ],
)
def test_a_mistake_is_told_with_file_and_place(
    cluster: dict[str, Any], user: dict[str, Any], more: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """As far as it concerns the context that is asked for."""
    file = written(tmp_path, cluster, user, **more)
    with pytest.raises(ConfigError) as caught:
        connection(file)
    assert str(caught.value).startswith(f"kubeconfig_file: {file}: {message}")


def test_what_a_kubeconfig_says_is_not_said_twice() -> None:
    """Which of the two counts would be anybody's guess."""
    with pytest.raises(ConfigError, match=r"^api_server: not allowed beside kubeconfig_file"):
        KubernetesSDConfig("pod", "https://127.0.0.1:1", kubeconfig_file="x")


def test_a_changed_kubeconfig_is_a_changed_configuration(tmp_path: Path) -> None:
    """Its checksum is among the others, and its job is to be replaced."""
    kubeconfig = written(tmp_path, {}, {"token": "a"})
    file = tmp_path / "scrape.yml"
    file.write_text("scrape_configs: [{job_name: a, kubernetes_sd_configs: [{role: pod, kubeconfig_file: kubeconfig}]}]")
    before = load_configuration(file, dialect="prometheus")
    assert kubeconfig in before.checksums
    assert before.jobs[0].kubernetes_sd_configs[0].api_server == "https://127.0.0.1:6443"
    written(tmp_path, {}, {"token": "b"})
    assert changed(before)
    assert compare(before, load_configuration(file, dialect="prometheus")).replaced == ("a",)


def test_a_relative_name_starts_where_the_peer_has_it_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prometheus: at the file that names it; vmagent: where it runs."""
    written(tmp_path, {})
    file = tmp_path / "scrape.yml"
    file.write_text("scrape_configs: [{job_name: a, kubernetes_sd_configs: [{role: pod, kubeconfig_file: kubeconfig}]}]")
    monkeypatch.chdir("/")
    assert load_configuration(file, dialect="prometheus").jobs
    with pytest.raises(ConfigError, match=r"kubernetes_sd_configs\[0\]\.kubeconfig_file: /kubeconfig: cannot be read: "):
        load_configuration(file, dialect="victoriametrics")
    monkeypatch.chdir(tmp_path)
    assert load_configuration(file, dialect="victoriametrics").jobs


def test_targets_are_found_by_a_kubeconfig(tmp_path: Path) -> None:
    """By flags, against a live server."""
    with SyntheticProcess(pods=5) as server:
        file = written(tmp_path, {"server": server.url})
        done = run("targets", "--role", "node", "--kubeconfig", str(file), "--context", "x")
        assert (done.returncode, done.stderr) == (0, "")
        assert orjson.loads(done.stdout)
    done = run("targets", "--role", "node", "--kubeconfig", str(file), "--context", "gone")
    assert done.returncode == 2
    assert f"argument --kubeconfig: {file}: contexts: none is called 'gone'" in done.stderr
    assert "--context: not allowed without argument --kubeconfig" in run("targets", "--role", "node", "--context", "x").stderr
