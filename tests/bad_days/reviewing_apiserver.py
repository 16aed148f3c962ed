"""An API server that knows whose token it is and what its holder may read, and clients of several addresses."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from aiohttp import web

from tests.fake_apiserver import FakeApiServer

AUDIENCE: Final = "karmada-pyscheduler-web"
OPERATOR: Final = "operator"
DEVELOPER: Final = "developer"
STRANGER_ADDRESS: Final = "127.0.0.2"
"""An address of this machine that is not that of the tests' other clients."""


class ReviewingApiServer(FakeApiServer):
    """An API server on which the operator may do everything, and others what is in the namespace default.

    Attributes:
        reviewed: The tokens of the TokenReviews. The token of somebody is ``token-of-NAME``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reviewed: list[str] = []

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        kind = request.path.rpartition("/")[2]
        if kind not in {"tokenreviews", "subjectaccessreviews"}:
            return await super()._handle(request)
        spec = orjson.loads(await request.read())["spec"]
        status = self._token_review(spec) if kind == "tokenreviews" else _access_review(spec)
        return web.json_response({"status": status})

    def _token_review(self, spec: dict[str, Any]) -> dict[str, Any]:
        self.reviewed.append(spec["token"])
        before, _, name = spec["token"].partition("token-of-")
        if before or not name:
            return {"authenticated": False}
        return {
            "authenticated": True,
            "audiences": spec.get("audiences", []),
            "user": {"username": name},
        }


def _access_review(spec: dict[str, Any]) -> dict[str, Any]:
    attributes = spec.get("resourceAttributes", {})
    return {"allowed": spec["user"] == OPERATOR or attributes.get("namespace") == "default"}


def bearer(name: str) -> dict[str, str]:
    """Return the header of the holder of a token; of nobody whom the API server knows if it does not know the name."""
    return {"Authorization": f"Bearer token-of-{name}"}


class Client:
    """A client with an address of its own."""

    def __init__(self, port: int, address: str = "127.0.0.1", *, tls: ssl.SSLContext | None = None) -> None:
        self._port, self._address, self._tls = port, address, tls

    def ask(
        self, path: str, headers: Mapping[str, str] | None = None, *, form: dict[str, str] | None = None
    ) -> int:
        """Send a GET, or a form, on a connection of its own; return the status, 0 if the connection is closed."""
        with contextlib.closing(self.connection()) as connection:
            given = {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
            body = urlencode(form) if form else None
            try:
                connection.request("POST" if form else "GET", path, body, {**given, **(headers or {})})
                return connection.getresponse().status
            except (http.client.RemoteDisconnected, ConnectionError):
                return 0

    def connection(self) -> http.client.HTTPConnection:
        """Return a connection that is opened with its first request."""
        source = (self._address, 0)
        if self._tls is None:
            return http.client.HTTPConnection("127.0.0.1", self._port, timeout=30, source_address=source)
        return http.client.HTTPSConnection(
            "localhost", self._port, timeout=30, source_address=source, context=self._tls
        )

    @contextlib.contextmanager
    def idle(self, number: int) -> Iterator[list[socket.socket]]:
        """Hold connections on which nothing is sent."""
        with contextlib.ExitStack() as stack:
            yield [
                stack.enter_context(
                    socket.create_connection(("127.0.0.1", self._port), 10, source_address=(self._address, 0))
                )
                for _ in range(number)
            ]
