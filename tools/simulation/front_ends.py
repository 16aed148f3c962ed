"""API servers in front of the same etcd, whose watch caches are behind by some time."""

from __future__ import annotations

from functools import partial

from karmada_pyscheduler.client.http_connection import Response
from tools.apiserver_model import ApiServerModel, FrontEnd, OnLine, Request, Watch, Write
from tools.simulation.simulation import Simulation


class FrontEnds:
    """The API servers of a run. Each client talks to one of them.

    Attributes:
        late: How many writes a cache has got late.
        older: How many watches began at a server that had not seen the version that they began at.
    """

    def __init__(self, simulation: Simulation, model: ApiServerModel, number: int) -> None:
        """Begin without lag, and all clients at the first one. With the number 0, watches are those of etcd itself."""
        self._simulation = simulation
        self._model = model
        self._servers = [FrontEnd(model) for _ in range(number)]
        self._lags = [0.0] * number
        self._served: dict[int, int] = {}
        self.late = 0
        self.older = 0
        if number:
            model.observers.append(self._on_write)

    def lag(self, server: int, seconds: float) -> bool:
        """Let the caches of a server be behind by some seconds from now on; return whether there is such a server."""
        if server >= len(self._servers):
            return False
        self._lags[server] = seconds
        if not seconds:
            self._servers[server].advance_to(self._model.revision)
        return True

    def move(self, client: int, server: int) -> bool:
        """Let a client talk to another server; return whether that changes anything."""
        if server >= len(self._servers) or self._served.get(client, 0) == server:
            return False
        self._served[client] = server
        return True

    def handle(self, client: int, request: Request) -> Response:
        """Process a request that is not a watch."""
        if not self._servers:
            return self._model.handle(request)
        return self._server(client).handle(request)

    def watch(self, client: int, request: Request, on_line: OnLine) -> Watch | Response:
        """Open a watch."""
        if not self._servers:
            return self._model.watch(request, on_line)
        server = self._server(client)
        found = server.watch(request, on_line)
        if isinstance(found, Watch) and int(request.query.get("resourceVersion") or 0) > server.revision(
            found.kind.name
        ):
            self.older += 1
        return found

    def _server(self, client: int) -> FrontEnd:
        return self._servers[self._served.get(client, 0)]

    def _on_write(self, write: Write) -> None:
        for index, lag in enumerate(self._lags):
            self.late += bool(lag)
            self._simulation.after(lag, partial(self._servers[index].advance_to, write.revision))
