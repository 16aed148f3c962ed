"""Which connections of a listener are open, and whose they are: the longest idle one gives way to a new one.

One address has half of them at most, so that it cannot keep others out. A connection is idle while no request of it is
answered: also while the other side has not finished its handshake, the head of a request, or its body.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from karmada_scheduler.structs import Struct

Network = IPv4Network | IPv6Network

SHARE: Final = 0.5
"""The part of a bound of all that one address gets at most."""
_PREFIX: Final = 64
"""Bits of an IPv6 address that its network has; a machine takes as many addresses of it as it likes."""


def is_of(networks: Sequence[Network], address: str) -> bool:
    """Return whether an address is in one of some networks."""
    found = address_of(address)
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
    found = address_of(address)
    if isinstance(found, IPv6Address):
        return str(ip_network((found, _PREFIX), strict=False))
    return _text(address)


def _text(address: str, otherwise: str = "") -> str:
    """Return an address as it is usually written."""
    found = address_of(address)
    return otherwise if found is None else str(found)


def address_of(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address, also where IPv6 writes one of IPv4; None for other texts."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found


def _without_port(entry: str) -> str:
    """Return the address of an entry; some proxies add a port: ``192.0.2.1:80``, ``[2001:db8::1]:80``."""
    if entry.startswith("["):
        return entry[1:].partition("]")[0]
    return entry.partition(":")[0] if entry.count(":") == 1 else entry


class OpenConnection(Struct, eq=False):
    """A connection.

    Attributes:
        address: Of the other side, as it is counted.
        close: Closes it at once.
        since: When it was opened, or its last request was answered.
        unsent: Returns the bytes that the other side has not taken.
        is_busy: Whether a request is answered.
    """

    address: str
    close: Callable[[], object]
    since: float
    unsent: Callable[[], int] = lambda: 0
    is_busy: bool = False


class OpenConnections:
    """The connections of one listener."""

    def __init__(self, most: int, clock: Callable[[], float], *, proxies: Sequence[Network] = ()) -> None:
        """Have ``most`` at most; ``clock`` returns seconds. An address of ``proxies`` may have all: it stands for many."""
        self._most = most
        self._clock = clock
        self._proxies = proxies
        self._open: dict[OpenConnection, None] = {}
        self._of_address: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return how many are open."""
        return len(self._open)

    def admit(self, address: str, close: Callable[[], object]) -> OpenConnection | None:
        """Return a new connection; None if it cannot be, because nothing that is open is idle."""
        counted = counted_as(address)
        is_one = not is_of(self._proxies, address)
        if is_one and self._of_address[counted] >= self._most * SHARE:
            has_place = self.give_way(each for each in self._open if each.address == counted)
        else:
            has_place = len(self._open) < self._most or self.give_way()
        if not has_place:
            return None
        found = OpenConnection(counted, close, self._clock())
        self._open[found] = None
        self._of_address[counted] += 1
        return found

    def give_way(self, among: Iterable[OpenConnection] | None = None) -> bool:
        """Close the longest idle connection of the address that has the most; return whether there was one."""
        listed = self._open if among is None else among
        idle = [connection for connection in listed if not connection.is_busy]
        if not idle:
            return False
        found = min(idle, key=lambda connection: (-self._of_address[connection.address], connection.since))
        self.remove(found)
        found.close()
        return True

    def remove(self, connection: OpenConnection) -> None:
        """Forget a connection that has ended."""
        if connection in self._open:
            del self._open[connection]
            self._of_address[connection.address] -= 1
            if not self._of_address[connection.address]:
                del self._of_address[connection.address]

    def mark(self, connection: OpenConnection, *, busy: bool) -> None:
        """Note that a request of a connection is answered from now on, or no more."""
        connection.is_busy = busy
        connection.since = self._clock()

    def idle_for(self, seconds: float) -> list[OpenConnection]:
        """Return those that have been idle for a time."""
        before = self._clock() - seconds
        return [each for each in self._open if not each.is_busy and each.since <= before]
