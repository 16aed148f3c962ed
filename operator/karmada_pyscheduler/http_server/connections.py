"""Which connections of a listener are open: the longest idle one gives way to a new one.

One address has half of them at most, so that it cannot keep others out. A connection is idle while no request of it is
answered: also while the other side has not finished its handshake, the head of a request, or its body.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from karmada_pyscheduler.http_server.addresses import SHARE, Network, counted_as, is_of


class OpenConnection:
    """A connection.

    Attributes:
        address: Of the other side, as it is counted.
        close: Closes it at once.
        unsent: Returns the bytes that the other side has not taken.
        since: When it was opened, or its last request was answered.
        is_busy: Whether a request is answered.
    """

    __slots__ = ("address", "close", "is_busy", "since", "unsent")

    def __init__(self, address: str, close: Callable[[], object], since: float) -> None:
        """Start idle."""
        self.address = address
        self.close = close
        self.unsent: Callable[[], int] = lambda: 0
        self.since = since
        self.is_busy = False


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
            has_place = self.give_way(
                connection for connection in self._open if connection.address == counted
            )
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
        idle = [
            connection for connection in (self._open if among is None else among) if not connection.is_busy
        ]
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
        return [
            connection for connection in self._open if not connection.is_busy and connection.since <= before
        ]
