"""Which connections stay open: the longest idle one of the address that has the most gives way."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from karmada_pyscheduler.http_server.connections import OpenConnection, OpenConnections, counted_as, sender_of

PROXY = "203.0.113.1"


class Door:
    """OpenConnections that are opened one second after the other."""

    def __init__(self, most: int = 8) -> None:
        self.now = 0.0
        self.closed: list[str] = []
        self.connections = OpenConnections(most, lambda: self.now, proxies=(ip_network(f"{PROXY}/32"),))

    def open(self, name: str, address: str = "") -> OpenConnection | None:
        self.now += 1.0
        return self.connections.admit(address or f"192.0.2.{name[0]}", lambda: self.closed.append(name))

    def busy(self, name: str, address: str = "") -> OpenConnection:
        found = self.open(name, address)
        assert found is not None
        self.connections.mark(found, busy=True)
        return found


def test_one_address_has_half_and_its_own_longest_idle_connection_gives_way() -> None:
    door = Door()
    for number in range(6):
        assert door.open(f"1{number}") is not None
    assert door.closed == ["10", "11"]
    assert len(door.connections) == 4
    assert door.open("20") is not None
    assert door.closed == ["10", "11"]


def test_when_all_are_taken_the_address_with_the_most_loses_its_longest_idle_one() -> None:
    door = Door()
    for name in ("30", "10", "11", "12", "20", "21", "22", "23"):
        door.open(name)
    assert door.open("40") is not None
    assert door.closed == ["20"]  # the oldest of all is the only one of its address


def test_what_is_answered_stays_and_is_idle_only_since_its_answer() -> None:
    door = Door()
    first, second = door.busy("10"), door.busy("11")
    for name in ("12", "13", "14"):
        door.open(name)
    assert door.closed == ["12"]
    door.now += 1.0
    door.connections.mark(first, busy=False)
    door.open("15")
    door.open("16")
    assert door.closed == ["12", "13", "14"]
    door.open("17")
    assert door.closed == ["12", "13", "14", "10"]
    assert second.is_busy


def test_while_nothing_is_idle_a_new_connection_is_not_let_in() -> None:
    door = Door()
    held = [door.busy(f"{address}{number}") for address in (1, 2) for number in range(4)]
    assert door.open("30") is None
    assert door.open("18") is None
    door.connections.remove(held[0])
    door.connections.remove(held[0])
    assert len(door.connections) == 7
    assert door.open("19") is not None
    assert door.closed == []


def test_a_proxy_may_have_all() -> None:
    door = Door()
    assert all(door.open(f"1{number}", PROXY) for number in range(8))
    assert door.closed == []
    assert door.open("20") is not None
    assert door.closed == ["10"]


def test_connections_are_idle_for_a_time_unless_they_are_answered() -> None:
    door = Door()
    first, second = door.open("10"), door.open("20")
    door.busy("30")
    assert door.connections.idle_for(3.0) == []
    door.now += 1.0
    assert door.connections.idle_for(3.0) == [first]
    door.now += 1.0
    assert door.connections.idle_for(3.0) == [first, second]


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("192.0.2.1", "198.51.100.1", "192.0.2.1"),
        (PROXY, "", PROXY),
        (PROXY, "198.51.100.1", "198.51.100.1"),
        (PROXY, "198.51.100.1, 198.51.100.2", "198.51.100.2"),
        (PROXY, "198.51.100.1,", PROXY),
        (PROXY, "unknown", PROXY),
        (PROXY, "198.51.100.1:8080", "198.51.100.1"),
        (PROXY, "2001:DB8::1", "2001:db8::1"),
        (PROXY, "[2001:db8::1]:443", "2001:db8::1"),
        (f"::ffff:{PROXY}", "198.51.100.1", "198.51.100.1"),
        ("::ffff:192.0.2.1", "198.51.100.1", "192.0.2.1"),
        ("", "198.51.100.1", ""),
    ],
)
def test_the_last_entry_of_a_named_proxy_says_where_a_request_comes_from(
    peer: str, forwarded: str, expected: str
) -> None:
    assert sender_of(peer, forwarded, (ip_network(f"{PROXY}/32"),)) == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("", ""),
    ],
)
def test_addresses_of_one_ipv6_network_count_as_one(address: str, expected: str) -> None:
    assert counted_as(address).partition("%")[0] == expected
