"""The plan repeats itself and has every kind of fault; the proxy forwards, delays, holds and cuts."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import pytest

from tools.live.fault_plan import KINDS, faults_for, missing_kinds
from tools.live.faults import Injector
from tools.live.proxy import Network, Proxy


def test_the_faults_of_a_seed_are_always_the_same() -> None:
    assert faults_for(3, 30) == faults_for(3, 30)
    assert faults_for(3, 30) != faults_for(4, 30)


def test_a_run_of_half_an_hour_has_every_kind_several_times() -> None:
    counted = Counter(fault.kind for fault in faults_for(1, 30))
    assert not missing_kinds(counted)
    assert min(counted.values()) >= 3


def test_faults_end_within_the_run() -> None:
    assert all(fault.at + fault.seconds <= 600 for fault in faults_for(1, 10))


def test_every_kind_that_is_not_about_a_process_has_a_function() -> None:
    others = {kind for kind in KINDS if kind.partition(" ")[0] not in ("kill", "stop")}
    assert others == set(Injector._others)


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that answers with what it gets."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with closing(connection):
                try:
                    while data := connection.recv(100):
                        connection.sendall(data)
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(echo: int) -> Iterator[Proxy]:
    network = Network()
    yield network.proxy_to(echo)
    network.close()


@pytest.fixture
def connection(proxy: Proxy) -> Iterator[socket.socket]:
    with closing(socket.create_connection(("127.0.0.1", proxy.port), timeout=10)) as found:
        found.sendall(b"first")
        assert found.recv(100) == b"first"
        yield found


def test_a_slow_network_delays_in_both_directions(proxy: Proxy, connection: socket.socket) -> None:
    proxy.slow(0.1)
    started = time.monotonic()
    connection.sendall(b"x")
    assert connection.recv(100) == b"x"
    assert time.monotonic() - started >= 0.2


def test_a_held_network_delivers_everything_when_it_is_released(
    proxy: Proxy, connection: socket.socket
) -> None:
    proxy.hold()
    connection.sendall(b"x")
    connection.settimeout(0.2)
    with pytest.raises(TimeoutError):
        connection.recv(100)
    proxy.release()
    connection.settimeout(10)
    assert connection.recv(100) == b"x"


def test_a_cut_resets_connections_and_new_ones_work(proxy: Proxy, connection: socket.socket) -> None:
    assert proxy.cut() == 1
    with pytest.raises(ConnectionResetError):
        connection.recv(100)
    with closing(socket.create_connection(("127.0.0.1", proxy.port), timeout=10)) as again:
        again.sendall(b"x")
        assert again.recv(100) == b"x"
