"""Who may read records on an address that others than this machine reach: whom the Karmada API server lets.

A reader needs a bearer token for ``AUDIENCE``, of somebody who may ``get`` the path ``PATH`` of the Karmada API server. That path is
not served; it stands for the records in rules of a ClusterRole (``nonResourceURLs``). Who may read gets all records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from karmada_scheduler.client.connection import Connection
from karmada_scheduler.client.reviews import Reviews, ReviewUnavailableError, TokenRefusedError, User
from karmada_scheduler.http_server.certificate import ServerCertificate
from karmada_scheduler.http_server.request_guard import RequestRefusal, bearer_token

AUDIENCE: Final = "karmada-pyscheduler-records"
"""A token for it reads records and nothing else: the API server refuses it."""
PATH: Final = "/karmada-pyscheduler/records"

_RETRY_SECONDS: Final = 5


class RecordsAccess:
    """The certificate of the records, and the reviews of their readers. All of it runs in the event loop of the server."""

    def __init__(self, certificate: ServerCertificate, connect: Callable[[], Awaitable[Connection]]) -> None:
        """Prepare; ``connect`` opens a connection to the Karmada API server that nothing else uses."""
        self._certificate = certificate
        self.tls: Final = certificate.context
        self._connect = connect
        self._connection: Connection | None = None
        self._reviews: Reviews | None = None
        self._refreshing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect, and follow changes of the certificate."""
        self._connection = await self._connect()
        self._reviews = Reviews(self._connection, audiences=[AUDIENCE])
        self._refreshing = asyncio.create_task(self._certificate.keep_fresh(), name="certificate of records")

    async def close(self) -> None:
        """Undo ``open``."""
        if self._refreshing is not None:
            self._refreshing.cancel()
        if self._connection is not None:
            await self._connection.close()

    async def reader(self, headers: Mapping[str, str]) -> User | RequestRefusal:
        """Return who sends a request, or why it is not answered."""
        assert self._reviews is not None  # open before the server
        token = bearer_token(headers)
        if not token:
            return _unauthenticated(f"a reader of records needs a bearer token for the audience {AUDIENCE}")
        try:
            user = await self._reviews.user_of(token)
            if await self._reviews.may_get(user, PATH):
                return user
        except TokenRefusedError as error:
            return _unauthenticated(str(error))
        except ReviewUnavailableError as error:
            text = f"nobody knows at the moment whether you may read records: {error}"
            return RequestRefusal(503, text, {"Retry-After": str(_RETRY_SECONDS)})
        return RequestRefusal(403, f"{user.name} may not get {PATH} at the Karmada API server")


def _unauthenticated(problem: str) -> RequestRefusal:
    return RequestRefusal(401, problem, {"WWW-Authenticate": "Bearer"})
