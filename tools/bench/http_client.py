"""CPU time per request of ``client.http`` and of aiohttp, for the requests that a placed binding takes.

    python -m tools.bench.http_client --requests 1500 --delay-ms 0 5 10

The server is a process of its own on the loopback interface, so its work is not counted. It requires a client
certificate, as kube-apiserver does, and answers each request with the same object. Both clients send the same bytes
over connections that stay open: ``client.http.HttpConnections``, and ``client.sessions.ProxiedConnections`` without a
proxy, which is what the scheduler would use without ``client.http``. They take turns in one process, so that a busy
machine slows both down. The result is the median of the rounds.

A server that answers at once underestimates both: then several answers arrive in each turn of the event loop, and the
caches of the CPU stay warm. kube-apiserver takes some milliseconds for a write, so each response wakes up the process.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import ssl
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, Protocol

import orjson
import uvloop

from karmada_advisor.cli.output import table
from karmada_scheduler.client.http import HttpConnections
from karmada_scheduler.client.http_connection import Response
from karmada_scheduler.client.identity import Identity, Pem, TLSMaterial
from karmada_scheduler.client.sessions import ProxiedConnections
from tools.bench import recorded_fleet
from tools.bench.recording import Sizes
from tools.controlplane.pki import Authority

AGENT: Final = "bench"
HEADERS: Final = {"Accept": "application/json"}


class Client(Protocol):
    """A client of one server."""

    async def request(
        self, method: str, path: str, *, headers: dict[str, str], body: bytes = b"", timeout: float
    ) -> Response: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the benchmark."""

    method: str
    path: str
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured.

    Attributes:
        own_micros: CPU time per request of ``client.http``, in microseconds.
        aiohttp_micros: CPU time per request of aiohttp, in microseconds.
    """

    own_micros: float
    aiohttp_micros: float

    @property
    def saved_micros(self) -> float:
        """CPU time per request that ``client.http`` saves."""
        return self.aiohttp_micros - self.own_micros

    @property
    def saved_share(self) -> float:
        """The same as a share of aiohttp's CPU time, from 0 to 1."""
        return self.saved_micros / self.aiohttp_micros


class _Server(asyncio.Protocol):
    """Answers every request with the same object after some seconds."""

    def __init__(self, answer: bytes, delay: float) -> None:
        self._answer = answer
        self._delay = delay
        self._received = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end].lower()
            length = int(head.partition(b"content-length:")[2].split(None, 1)[0])
            if len(self._received) < end + 4 + length:
                return
            self._received = self._received[end + 4 + length :]
            asyncio.get_running_loop().call_later(self._delay, self._transport.write, self._answer)


def _binding() -> dict[str, Any]:
    return next(iter(recorded_fleet.bindings("ResourceBinding", Sizes(bindings=1, clusters=50))))


def _serve(certificate: str, key: str, authority: str, delay: float, ready: Connection) -> None:
    """Serve in this process until it is terminated; sends the port when it listens."""

    async def serve() -> None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority)
        tls.load_cert_chain(certificate, key)
        tls.verify_mode = ssl.CERT_REQUIRED
        body = orjson.dumps(_binding())
        head = (
            f"HTTP/1.1 200 OK\r\nAudit-Id: 8a4d3c1e-0000-4000-8000-000000000000\r\nCache-Control: no-cache, private\r\n"
            f"Content-Type: application/json\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        answer = head.encode() + body
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Server(answer, delay), "127.0.0.1", 0, ssl=tls)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(serve())


def requests_of_a_binding() -> list[Request]:
    """Return the four requests of a placed binding: result, status, and two Events."""
    path = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/work-1-deployment"
    patch = "application/merge-patch+json"
    clusters = [{"name": f"member-{number:04}", "replicas": 3} for number in range(5)]
    result = {
        "metadata": {
            "resourceVersion": "10000000",
            "annotations": {"policy.karmada.io/applied-placement": "x" * 600},
        },
        "spec": {"clusters": clusters},
    }
    condition = {"type": "Scheduled", "status": "True", "reason": "Success", "message": "x" * 60}
    status = {"metadata": {"resourceVersion": "10000001"}, "status": {"conditions": [condition]}}
    event = {"kind": "Event", "metadata": {"name": "x" * 40}, "message": "x" * 200, "reason": "x" * 30}
    events = "/api/v1/namespaces/default/events"
    return [
        Request("PATCH", path, patch, orjson.dumps(result)),
        Request("PATCH", f"{path}/status", patch, orjson.dumps(status)),
        Request("POST", events, "application/json", orjson.dumps(event)),
        Request("POST", events, "application/json", orjson.dumps(event)),
    ]


async def _cpu_seconds(client: Client, count: int, in_flight: int) -> float:
    """Return the CPU time of this process for so many requests."""
    kinds = requests_of_a_binding()
    numbers = iter(range(count))

    async def send() -> None:
        for number in numbers:
            request = kinds[number % len(kinds)]
            headers = {"Content-Type": request.content_type, **HEADERS}
            answer = await client.request(
                request.method, request.path, headers=headers, body=request.body, timeout=30.0
            )
            assert answer.status == 200

    before = time.process_time()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(in_flight):
            tasks.create_task(send())
    return time.process_time() - before


async def _measure(identity: Identity, count: int, rounds: int, in_flight: int) -> Result:
    own = HttpConnections(identity.server, tls=identity.tls, tls_name=identity.tls_name, agent=AGENT)
    clients: dict[str, Client] = {"own": own, "aiohttp": ProxiedConnections(identity, agent=AGENT)}
    micros: dict[str, list[float]] = {name: [] for name in clients}
    try:
        for client in clients.values():  # opens the connections
            await _cpu_seconds(client, 10 * in_flight, in_flight)
        for _ in range(rounds):
            for name, client in clients.items():
                micros[name].append(await _cpu_seconds(client, count, in_flight) / count * 1e6)
    finally:
        for client in clients.values():
            await client.close()
    medians = {name: statistics.median(values) for name, values in micros.items()}
    return Result(medians["own"], medians["aiohttp"])


def measure(*, count: int, rounds: int, in_flight: int, delay: float) -> Result:
    """Start the server, measure both clients in turns, and stop the server.

    Args:
        count: Requests per client and round.
        rounds: How often each client has its turn.
        in_flight: Requests under way at the same time.
        delay: Seconds after which the server answers.
    """
    processes = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="karmada-pyscheduler-") as folder:
        authority = Authority(Path(folder))
        server, user = authority.issue("127.0.0.1", server=True), authority.issue("scheduler")
        paths = (str(server.certificate), str(server.key), str(authority.certificate))
        receiving, sending = processes.Pipe(duplex=False)
        process = processes.Process(target=_serve, args=(*paths, delay, sending), daemon=True)
        process.start()
        try:
            if not receiving.poll(30.0):
                raise TimeoutError("the server of the benchmark did not start within 30 seconds")
            identity = _identity(f"https://127.0.0.1:{receiving.recv()}", authority, user)
            return uvloop.run(_measure(identity, count, rounds, in_flight))
        finally:
            process.terminate()
            process.join()


def _identity(server: str, authority: Authority, user: Any) -> Identity:
    material = TLSMaterial(
        authority=Pem("the benchmark's CA", authority.certificate.read_bytes()),
        certificate=Pem("the benchmark's user", user.certificate.read_bytes()),
        key=Pem("the benchmark's user", user.key.read_bytes()),
    )
    return Identity(
        server=server,
        authorization=None,
        tls=material.context(),
        tls_name=None,
        proxy_url=None,
        material=material.digest(),
        files=(),
        loaded_at=0.0,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--requests", type=int, default=1500, help="per client and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--in-flight", type=int, default=4, help="requests under way at the same time")
    parser.add_argument(
        "--delay-ms", type=float, nargs="+", default=[0.0, 5.0, 10.0], help="time until the server answers"
    )
    arguments = parser.parse_args(argv)
    rows = []
    for delay in arguments.delay_ms:
        result = measure(
            count=arguments.requests,
            rounds=arguments.rounds,
            in_flight=arguments.in_flight,
            delay=delay / 1e3,
        )
        saved = f"{result.saved_micros:.0f} ({result.saved_share:.0%})"
        rows.append((f"{delay:g}", f"{result.own_micros:.0f}", f"{result.aiohttp_micros:.0f}", saved))
    print("CPU time of the client's process per request, in microseconds:")
    print(table(("SERVER ANSWERS AFTER (ms)", "client.http", "aiohttp", "SAVED"), rows))


if __name__ == "__main__":
    main()
