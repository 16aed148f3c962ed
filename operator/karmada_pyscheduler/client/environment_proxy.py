"""The proxy that the environment names for an API server, by the rules of Go, which kubectl and karmada-scheduler follow.

urllib, requests and aiohttp have other rules: none knows CIDRs, ports and loopback addresses as Go does.

Source: golang.org/x/net v0.49.0 http/httpproxy proxy.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Final
from urllib.parse import urlsplit

from karmada_pyscheduler.http_server.connections import address_of

_PORTS: Final = {"http": 80, "https": 443}
_HOST_AND_PORT: Final = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*):(?P<port>[^:]*)")


def proxy_of(server: str, environment: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy for a server, None without one.

    Args:
        server: The URL of the API server.
        environment: ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY``, or the same in small letters.
    """
    url = urlsplit(server)
    if url.scheme not in _PORTS:
        return None
    proxy = _value(environment, f"{url.scheme.upper()}_PROXY")
    host, port = (url.hostname or "").lower(), url.port or _PORTS[url.scheme]
    if not proxy or _is_excepted(host, port, _value(environment, "NO_PROXY")):
        return None
    return proxy if urlsplit(proxy).netloc else f"http://{proxy}"


def _value(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.lower()) or ""


def _is_excepted(host: str, port: int, listed: str) -> bool:
    """Return whether a host is reached without the proxy: the machine itself, and what ``NO_PROXY`` lists."""
    address = address_of(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = (entry.strip().lower() for entry in listed.split(","))
    return any(_matches(entry, host, address, port) for entry in entries if entry)


def _matches(entry: str, host: str, address: IPv4Address | IPv6Address | None, port: int) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return address is not None and address in ip_network(entry, strict=False)
        except ValueError:
            return False
    name = entry
    if (with_port := _HOST_AND_PORT.fullmatch(entry)) is not None:
        name = with_port["host"].strip("[]")
        if with_port["port"] not in ("", str(port)):
            return False
    if (listed := address_of(name)) is not None:
        return listed == address
    name = name.removeprefix("*") if name.startswith("*.") else name
    return host.endswith(name if name.startswith(".") else f".{name}") or host == name
