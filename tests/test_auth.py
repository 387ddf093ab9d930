"""Credentials and trust: where they come from, and that they follow their files."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
from pathlib import Path

import pytest

from fastdisco.auth import Connection, Credentials, Trust, make_tls_context, own_namespace, resolve
from fastdisco.config import Authorization, BasicAuth, KubernetesSDConfig, TLSConfig
from fastdisco.errors import ConfigError, NetworkError

TLS = Path(__file__).parent / "data" / "tls"
IN_CLUSTER = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.mark.parametrize(
    ("written", "tls_config", "url"),
    [
        ("https://10.0.0.1:6443/", None, "https://10.0.0.1:6443"),
        ("https://rancher/k8s/clusters/c1/", None, "https://rancher/k8s/clusters/c1"),
        ("10.0.0.1:8080", None, "http://10.0.0.1:8080"),
        ("10.0.0.1:6443", TLSConfig(server_name="x"), "https://10.0.0.1:6443"),
    ],
)
def test_the_address_of_the_server(written: str, tls_config: TLSConfig | None, url: str) -> None:
    """Without a scheme, TLS is used if there is a tls_config; a prefix is kept."""
    assert resolve(KubernetesSDConfig("pod", api_server=written, tls_config=tls_config)).api_server == url


@pytest.mark.parametrize(
    ("host", "url"), [("10.96.0.1", "https://10.96.0.1:443"), ("fd00::1", "https://[fd00::1]:443"), ("[fd00::1]", "https://[fd00::1]:443")]
)
def test_inside_a_pod_everything_is_given(host: str, url: str, tmp_path: Path) -> None:
    """Address, token and CA, also by IPv6."""
    connection = resolve(KubernetesSDConfig("pod"), environ=IN_CLUSTER | {"KUBERNETES_SERVICE_HOST": host}, service_account=tmp_path)
    assert connection == Connection(
        url, authorization=Authorization(credentials_file=f"{tmp_path}/token"), tls_config=TLSConfig(ca_file=f"{tmp_path}/ca.crt")
    )


def test_what_the_configuration_says_wins_inside_a_pod() -> None:
    """Own credentials and own trust replace what the pod is given, each by itself."""
    config = KubernetesSDConfig("pod", basic_auth=BasicAuth("u"), tls_config=TLSConfig(insecure_skip_verify=True))
    connection = resolve(config, environ=IN_CLUSTER)
    assert (connection.authorization, connection.basic_auth, connection.tls_config) == (None, config.basic_auth, config.tls_config)
    named = resolve(KubernetesSDConfig("pod", tls_config=TLSConfig(server_name="k")), environ=IN_CLUSTER).tls_config
    assert named.server_name == "k"
    assert named.ca_file.endswith("ca.crt")


def test_outside_of_a_pod_an_address_is_needed() -> None:
    """The message says what is missing."""
    with pytest.raises(ConfigError, match="api_server: missing"):
        resolve(KubernetesSDConfig("pod"), environ={})


def test_own_namespace_is_read_and_stripped(tmp_path: Path) -> None:
    """From the file that every pod has; its absence is a mistake in the configuration."""
    with pytest.raises(ConfigError, match=r"namespaces\.own_namespace: cannot read"):
        own_namespace(service_account=tmp_path)
    (tmp_path / "namespace").write_text(" web\n")
    assert own_namespace(service_account=tmp_path) == "web"
    (tmp_path / "namespace").write_text("\n")
    with pytest.raises(ConfigError, match="is empty"):
        own_namespace(service_account=tmp_path)


def test_equal_configurations_have_equal_connections() -> None:
    """Only then can jobs share a session."""
    configs = [KubernetesSDConfig(role, api_server="https://x", authorization=Authorization(credentials="t")) for role in ("pod", "node")]
    assert len({resolve(config) for config in configs}) == 1


def test_headers_of_each_sort(tmp_path: Path) -> None:
    """Tokens, passwords, and headers of one's own."""
    (tmp_path / "password").write_text("p:ß\n")

    def headers(**options: object) -> dict[str, str]:
        return Credentials(Connection("https://x", **options)).headers()  # type: ignore[arg-type]

    assert headers() == {}
    assert headers(authorization=Authorization(credentials="t")) == {"Authorization": "Bearer t"}
    assert headers(authorization=Authorization("Custom", "t")) == {"Authorization": "Custom t"}
    basic = headers(basic_auth=BasicAuth("u", password_file=str(tmp_path / "password")))["Authorization"]
    assert base64.b64decode(basic.removeprefix("Basic ")).decode() == "u:p:ß"
    assert headers(headers=("X-A: b:c ", "Authorization: no"), authorization=Authorization(credentials="t")) == {
        "X-A": "b:c", "Authorization": "Bearer t",
    }  # fmt: skip


class Clock:
    """A clock that stands still."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def from_file(file: Path, clock: Clock) -> Credentials:
    return Credentials(Connection("https://x", authorization=Authorization(credentials_file=str(file))), clock)


def test_a_token_is_read_again_when_its_file_changes(tmp_path: Path) -> None:
    """Also by the swap of a symbolic link, as the kubelet does it."""
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(f"T{name}\n")
    (tmp_path / "..data").symlink_to("1")
    (tmp_path / "token").symlink_to("..data/token")
    credentials = from_file(tmp_path / "token", Clock())
    assert credentials.headers() == {"Authorization": "Bearer T1"}
    (tmp_path / "next").symlink_to("2")
    (tmp_path / "next").rename(tmp_path / "..data")
    assert credentials.headers() == {"Authorization": "Bearer T2"}


def test_a_token_is_read_again_after_a_minute_and_when_refused(tmp_path: Path) -> None:
    """Where the times of files cannot be trusted."""
    file, clock = tmp_path / "token", Clock()
    file.write_text("T1")
    stamp = file.stat().st_mtime_ns
    credentials = from_file(file, clock)
    credentials.headers()

    def replace(token: str) -> None:
        file.write_text(token)
        os.utime(file, ns=(stamp, stamp))

    replace("T2")
    assert credentials.headers() == {"Authorization": "Bearer T1"}
    clock.now = 60.0
    assert credentials.headers() == {"Authorization": "Bearer T2"}
    replace("T3")
    assert credentials.refused()
    assert credentials.headers() == {"Authorization": "Bearer T3"}


def test_a_token_that_cannot_be_read_any_more_is_kept(tmp_path: Path) -> None:
    """A file that is missing or empty for a moment is no reason to forget; one that never was is an error."""
    file = tmp_path / "token"
    credentials = from_file(file, Clock())
    with pytest.raises(NetworkError, match="cannot read") as caught:
        credentials.headers()
    assert caught.value.kind == "credentials"
    file.write_text("T1")
    assert credentials.headers() == {"Authorization": "Bearer T1"}
    file.write_text("")
    assert credentials.headers() == {"Authorization": "Bearer T1"}
    file.unlink()
    assert credentials.headers() == {"Authorization": "Bearer T1"}
    file.write_text("T2")
    assert credentials.headers() == {"Authorization": "Bearer T2"}


def test_a_token_that_no_header_can_carry_is_told_and_not_sent(tmp_path: Path) -> None:
    """The message names the file and not what is in it; a good token of before is kept; whitespace around it is none of it."""
    file = tmp_path / "token"
    file.write_text("SECRET\nSECRET")
    credentials = from_file(file, Clock())
    with pytest.raises(NetworkError) as caught:
        credentials.headers()
    assert caught.value.kind == "credentials"
    assert str(caught.value) == f"cannot read {file}: it has line ends or other control characters in it"
    file.write_text(" T1\r\n")
    assert credentials.headers() == {"Authorization": "Bearer T1"}
    file.write_text("T2\0T2")
    assert credentials.headers() == {"Authorization": "Bearer T1"}


@pytest.mark.parametrize("name", ["username", "password"])
def test_a_user_name_or_password_in_a_file_is_held_to_the_same(name: str, tmp_path: Path) -> None:
    """Two lines are none of either."""
    (tmp_path / "file").write_text("a\nb")
    file = str(tmp_path / "file")
    basic = BasicAuth(username_file=file) if name == "username" else BasicAuth("u", password_file=file)
    with pytest.raises(NetworkError, match=f"cannot read {tmp_path}/file: it has line ends") as caught:
        Credentials(Connection("https://x", basic_auth=basic)).headers()
    assert caught.value.kind == "credentials"


def test_without_credentials_a_refusal_is_final() -> None:
    """There is nothing to try again with."""
    assert not Credentials(Connection("https://x")).refused()


def test_the_context_is_strict_about_what_matters() -> None:
    """Chain and host name are checked; only what many clusters' authorities lack is not asked for."""
    context = make_tls_context(TLSConfig(ca_file=str(TLS / "ca.pem")))
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert make_tls_context(TLSConfig(min_version="TLS13")).minimum_version == ssl.TLSVersion.TLSv1_3
    assert make_tls_context(TLSConfig(max_version="TLS12")).maximum_version == ssl.TLSVersion.TLSv1_2
    assert make_tls_context(TLSConfig(insecure_skip_verify=True)).verify_mode == ssl.CERT_NONE


@pytest.mark.parametrize("sort", ["files", "text", "mixed"])
def test_client_certificates_as_files_and_as_text(sort: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL wants files; none are left behind."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    cert, key = TLS / "client.pem", TLS / "client.key"
    make_tls_context(
        {
            "files": TLSConfig(cert_file=str(cert), key_file=str(key)),
            "text": TLSConfig(cert=cert.read_text(), key=key.read_text()),
            "mixed": TLSConfig(cert_file=str(cert), key=key.read_text()),
        }[sort]
    )
    assert list(tmp_path.iterdir()) == []


async def test_trust_follows_its_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A new CA makes a new context; a half-written one leaves the old one, is logged once and tried again."""
    file = tmp_path / "ca.crt"
    trust = Trust(TLSConfig(ca_file=str(file)))
    with pytest.raises(NetworkError, match="cannot use the TLS files"):
        await trust.context()
    file.write_bytes((TLS / "ca.pem").read_bytes())
    first = await trust.context()
    assert await trust.context() is first
    file.write_text("-----BEGIN CERTIFICATE-----\nMII")
    assert await trust.context() is await trust.context() is first
    assert sum("cannot use the TLS files" in message for message in caplog.messages) == 1
    file.write_bytes((TLS / "ca2.pem").read_bytes())
    second, again = await asyncio.gather(trust.context(), trust.context())
    assert second is again is not first
