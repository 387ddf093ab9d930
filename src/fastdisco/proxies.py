"""Which proxy leads to an API server: one that is named, one of the environment, or none, as Go's programs decide it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


def proxy_of_environment(url: str, environ: Mapping[str, str]) -> str:
    """The proxy for a URL, or empty; names in capitals come first."""
    found = {name: environ.get(name.upper()) or environ.get(name, "") for name in ("http_proxy", "https_proxy", "no_proxy")}
    proxy = found[f"{urlsplit(url).scheme}_proxy"]
    if not proxy or bypasses(url, found["no_proxy"]):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def bypasses(url: str, no_proxy: str) -> bool:
    """Whether a URL is reached without a proxy: this machine always is, and what a list of hosts, `.suffixes`, addresses, networks in
    CIDR, each perhaps with `:PORT`, or `*` has in it."""
    parts = urlsplit(url)
    host, port = (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme, 0)
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(entry.strip().lower(), host, port, address) for entry in no_proxy.split(","))


def _matches(entry: str, host: str, port: int, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
    if entry == "*":
        return True
    try:
        network = ipaddress.ip_network(entry, strict=False) if "/" in entry else None
    except ValueError:
        return False
    if network is not None:
        return address is not None and address in network
    if _address(entry) is None:  # else its colons are no port
        name, colon, wanted = entry.rpartition(":")
        if colon and wanted.isdigit():
            if int(wanted) != port:
                return False
            entry = name
    entry = entry.removeprefix("[").removesuffix("]")
    if (listed := _address(entry)) is not None:
        return listed == address
    suffix = entry.removeprefix("*")
    return bool(suffix) and (host == suffix or host.endswith(suffix if suffix.startswith(".") else f".{suffix}"))


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
