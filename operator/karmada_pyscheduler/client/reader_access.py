"""Who may read what is served on an address that others than this machine reach: whom an API server lets.

A reader needs a bearer token of somebody who may ``get`` a path that is none of a resource (``nonResourceURLs`` of a
ClusterRole). Who may read gets all that is served.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.reviews import (
    KARMADA,
    Reviewer,
    Reviews,
    ReviewUnavailableError,
    TokenRefusedError,
    TooManyRefusedError,
    User,
)
from karmada_pyscheduler.http_server.listener import ServerCertificate
from karmada_pyscheduler.http_server.request_guard import Access, RequestRefusal, bearer_token
from karmada_scheduler.structs import IdentityStruct

log = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 5


class ReaderAccess(IdentityStruct):
    """The certificate of a server, and the reviews of its readers. All of it runs in the event loop of the server.

    Attributes:
        certificate: Of the server.
        connect: Opens a connection to the API server that nothing else uses.
        what: What is served, for texts.
        path: What a reader may ``get``.
        audiences: A token is for one of these; empty for the API server's own.
        reviewer: Which API server it is.
    """

    certificate: ServerCertificate
    connect: Callable[[], Awaitable[Connection]]
    what: str
    path: str
    audiences: Sequence[str] = ()
    reviewer: Reviewer = KARMADA
    _connection: Connection | None = None
    _reviews: Reviews | None = None
    _refreshing: asyncio.Task[None] | None = None
    _logged: str = ""

    def access(self, hosts: frozenset[str] | None) -> Access:
        """Return this as the access of a server with these names."""
        return Access(hosts, authorize=self.reader, open=self.open, close=self.close)

    async def open(self) -> None:
        """Read credentials, and follow changes of the certificate; nothing is sent yet.

        Raises:
            ConnectionConfigError: There are no usable credentials.
        """
        self._connection = await self.connect()
        self._reviews = Reviews(self._connection, audiences=self.audiences, reviewer=self.reviewer)
        self._refreshing = asyncio.create_task(
            self.certificate.keep_fresh(), name=f"certificate of {self.what}"
        )

    async def close(self) -> None:
        """Undo ``open``."""
        if self._refreshing is not None:
            self._refreshing.cancel()
        if self._connection is not None:
            await self._connection.close()

    async def reader(self, headers: Mapping[str, str], address: str) -> User | RequestRefusal:
        """Return who sends a request from an address, or why it is not answered."""
        assert self._reviews is not None  # open before the server
        token = bearer_token(headers)
        if not token:
            issuer = f"of {self.reviewer.name}"
            if self.audiences:
                issuer = f"for the audience {' or '.join(self.audiences)}"
            return _unauthenticated(f"a reader of {self.what} needs a bearer token {issuer}")
        try:
            user = await self._reviews.user_of(token, address)
            is_allowed = await self._reviews.may_get(user, self.path)
        except TokenRefusedError as error:
            return _unauthenticated(str(error))
        except TooManyRefusedError as error:
            return RequestRefusal(429, str(error), {"Retry-After": str(_RETRY_SECONDS)})
        except ReviewUnavailableError as error:
            self._log_once(str(error))
            text = f"nobody knows at the moment whether you may read {self.what}: {error}"
            return RequestRefusal(503, text, {"Retry-After": str(_RETRY_SECONDS)})
        self._logged = ""
        if is_allowed:
            return user
        return RequestRefusal(403, f"{user.name} may not get {self.path} at {self.reviewer.name}")

    def _log_once(self, problem: str) -> None:
        """Log why readers get no answer, as they may show the status alone."""
        if problem != self._logged:
            log.warning("Nobody can read %s: %s", self.what, problem)
        self._logged = problem


def _unauthenticated(problem: str) -> RequestRefusal:
    return RequestRefusal(401, problem, {"WWW-Authenticate": "Bearer"})
