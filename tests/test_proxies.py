"""Which proxy leads to a server: as Go's net/http decides it, whose documentation the cases follow."""

from __future__ import annotations

import pytest

from fastdisco.auth import resolve
from fastdisco.config import KubernetesSDConfig
from fastdisco.errors import ConfigError
from fastdisco.proxies import bypasses, proxy_of_environment


@pytest.mark.parametrize(
    ("host", "no_proxy", "bypassed"),
    [
        ("10.96.0.1", "10.96.0.0/12,.svc", True),
        ("10.112.0.1", "10.96.0.0/12,.svc", False),
        ("10.96.0.1", "10.96.0.1", True),
        ("10.96.0.1", "10.96.0.1:443", True),
        ("10.96.0.1", "10.96.0.1:80", False),
        ("10.96.0.1:6443", "10.96.0.1:6443", True),
        ("[fd00::1]", "fd00::1", True),
        ("[fd00::1]:6443", "[fd00::1]:6443", True),
        ("[fd00::1]", "fd00::/8", True),
        ("example.com", "example.com", True),
        ("a.example.com", "example.com", True),
        ("A.Example.com", " EXAMPLE.com ", True),
        ("notexample.com", "example.com", False),
        ("example.com", ".example.com", False),
        ("a.example.com", ".example.com", True),
        ("a.example.com", "*.example.com", True),
        ("example.com", "*.example.com", False),
        ("a.example.com", "example.com:443", True),
        ("a.example.com", "example.com:80", False),
        ("anything", "*", True),
        ("anything", "", False),
        ("anything", ",,", False),
        ("anything", "not/a/network", False),
        ("localhost", "", True),
        ("127.3.2.1:80", "", True),
        ("[::1]", "", True),
    ],
)
def test_what_is_reached_without_a_proxy(host: str, no_proxy: str, bypassed: bool) -> None:
    """This machine, and what the list names."""
    assert bypasses(f"https://{host}", no_proxy) == bypassed


def test_the_proxy_of_the_environment() -> None:
    """By scheme; capitals come first; a bare host is an http proxy."""
    environ = {"HTTPS_PROXY": "proxy:3128", "https_proxy": "http://other", "http_proxy": "http://plain:1", "NO_PROXY": ".svc"}
    assert proxy_of_environment("https://k8s.example.com", environ) == "http://proxy:3128"
    assert proxy_of_environment("http://k8s.example.com", environ) == "http://plain:1"
    assert proxy_of_environment("https://kubernetes.default.svc", environ) == ""
    assert proxy_of_environment("https://k8s.example.com", {}) == ""


def test_a_configuration_names_a_proxy_exceptions_or_the_environment() -> None:
    """It is decided when the connection is made; the environment counts only where it is asked for."""
    environ = {"HTTPS_PROXY": "http://127.0.0.1:3128"}

    def proxy(server: str, **keys: object) -> str:
        return resolve(KubernetesSDConfig.from_dict({"role": "pod", "api_server": server, **keys}), environ=environ).proxy_url

    assert proxy("https://k8s.example.com") == ""
    assert proxy("https://k8s.example.com", proxy_from_environment=True) == "http://127.0.0.1:3128"
    assert proxy("https://k8s.example.com", proxy_url="http://127.0.0.1:1", no_proxy="other.com") == "http://127.0.0.1:1"
    assert proxy("https://k8s.example.com", proxy_url="http://127.0.0.1:1", no_proxy="example.com") == ""


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"no_proxy": "a"}, "no_proxy: means nothing without proxy_url"),
        ({"proxy_url": "http://a", "proxy_from_environment": True}, "proxy_from_environment: not allowed beside proxy_url"),
        ({"proxy_connect_header": {"a": ["b"]}}, "proxy_connect_header: not supported"),
    ],
)
def test_what_makes_no_sense_together_is_refused(keys: dict[str, object], message: str) -> None:
    """As Prometheus refuses it."""
    with pytest.raises(ConfigError, match=f"^{message}"):
        KubernetesSDConfig.from_dict({"role": "pod", **keys})
