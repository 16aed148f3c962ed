"""Whose request it is, by addresses: that of the connection, or what a named proxy says."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Network = IPv4Network | IPv6Network

SHARE: Final = 0.5
"""The part of a bound of all that one address gets at most."""
_PREFIX: Final = 64
"""Bits of an IPv6 address that its network has; a machine takes as many addresses of it as it likes."""


def is_of(networks: Sequence[Network], address: str) -> bool:
    """Return whether an address is in one of some networks."""
    found = _parsed(address)
    return found is not None and any(found in network for network in networks)


def sender_of(peer: str, forwarded: str, proxies: Sequence[Network]) -> str:
    """Return the address of who sends a request.

    Args:
        peer: The address of the connection.
        forwarded: The header ``X-Forwarded-For``. The proxy has added its last entry: the address that connected to it. The rest
            is what it was sent, which anybody can write.
        proxies: Those whose header counts.
    """
    if not is_of(proxies, peer):
        return _text(peer)
    return _text(_without_port(forwarded.rpartition(",")[2].strip()), _text(peer))


def counted_as(address: str) -> str:
    """Return what is counted as one address: of an IPv6 address the network of 64 bits."""
    found = _parsed(address)
    return (
        str(ip_network((found, _PREFIX), strict=False)) if isinstance(found, IPv6Address) else _text(address)
    )


def _text(address: str, otherwise: str = "") -> str:
    """Return an address as it is usually written."""
    found = _parsed(address)
    return otherwise if found is None else str(found)


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def _without_port(entry: str) -> str:
    """Return the address of an entry; some proxies add a port: ``192.0.2.1:80``, ``[2001:db8::1]:80``."""
    if entry.startswith("["):
        return entry[1:].partition("]")[0]
    return entry.partition(":")[0] if entry.count(":") == 1 else entry
