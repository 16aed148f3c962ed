"""Finds the replica of the scheduler that leads, for its records, and asks it with a token of an account of its own.

The names of a headless Service are the addresses of all replicas. Each says by ``/v1/state`` whether it leads, and the Lease says
which one has the right to. The token is for the records only, so it is worth nothing at the API server.
"""

from __future__ import annotations

import argparse
import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.process import read_state
from karmada_advisor.fleet.process_answers import ProcessState
from karmada_advisor.fleet.process_http import ProcessAddress, tls_of
from karmada_advisor.state.stored import value_at
from karmada_pyscheduler.client.connection import ApiConnection
from karmada_pyscheduler.client.paths import path_of
from karmada_pyscheduler.records.endpoints import AUDIENCE
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.records.record import process_name
from karmada_scheduler.structs import IdentityStruct, field

KEPT_SECONDS: Final = 2.0
"""How long a leader, or that there is none, is taken for known."""

_SECONDS: Final = 3.0
"""How long a request to the API server may take."""
_TOKEN_SECONDS: Final = 600
"""How long a token is valid; it is renewed after half of that."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
ReadState = Callable[[ProcessAddress], ProcessState]


async def addresses_of(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=1)  # SOCK_STREAM
    return list(dict.fromkeys(str(address[4][0]) for address in found))


class LeaderRecords(IdentityStruct):
    """Where the leader of a scheduler answers.

    Attributes:
        connection: To the Karmada API server, as somebody who may get the Lease and create tokens of the account.
        urls: ``https://NAME:PORT``; behind each address of the name is a replica.
        lease: Namespace and name.
        account: Namespace and name of a ServiceAccount that may read records.
        tls: The context of the connections; it checks the names of the URLs.
        resolve: Returns the addresses of a name.
        read: Returns the state of a replica; called in a thread of its own.
        clock: In seconds, never running backwards.
        now: The time of day in seconds since 1970.
    """

    connection: ApiConnection
    urls: Sequence[str]
    lease: tuple[str, str]
    account: tuple[str, str]
    tls: ssl.SSLContext
    resolve: Resolve = addresses_of
    read: ReadState = read_state
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    _token: str = ""
    _renew_at: float = 0.0
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _found: ProcessAddress | NoAnswerError | None = None
    _until: float = 0.0

    async def address(self) -> ProcessAddress:
        """Return where the leader answers.

        Raises:
            NoAnswerError: No replica leads, or that is not known.
        """
        async with self._asking:
            if self._found is None or self.clock() >= self._until:
                try:
                    self._found = await self._find()
                except NoAnswerError as problem:
                    self._found = problem
                self._until = self.clock() + KEPT_SECONDS
            if isinstance(self._found, NoAnswerError):
                raise NoAnswerError(str(self._found))
            return self._found

    async def _find(self) -> ProcessAddress:
        try:
            holder = await self._holder()
            replicas = await self._replicas(await self._fresh_token())
        except (ApiError, OSError) as problem:
            raise NoAnswerError(f"the scheduler's leader is not known: {problem}") from problem
        if not replicas:
            raise NoAnswerError(
                f"the scheduler's leader is not known: no replica behind {', '.join(self.urls)}"
            )
        said = []
        for answer in asyncio.as_completed([asyncio.to_thread(self._asked, address) for address in replicas]):
            replica, state = await answer
            if state.is_leading and state.name == process_name(holder):
                return replica
            said.append(
                state.problem or f"{replica}: {state.name or 'a process without a name'} does not lead"
            )
        raise NoAnswerError(
            f"no replica leads; the Lease names {holder or 'nobody'} ({'; '.join(sorted(said))})"
        )

    def _asked(self, replica: ProcessAddress) -> tuple[ProcessAddress, ProcessState]:
        """Return a replica with its state, or with why that is not known."""
        try:
            return replica, self.read(replica)
        except NoAnswerError as problem:
            return replica, ProcessState(problem=str(problem))

    async def _holder(self) -> str:
        """Return the identity in the Lease, which begins with the name of a process. Raises ApiError."""
        namespace, name = self.lease
        path = path_of("coordination.k8s.io/v1", "leases", name, namespace=namespace)
        found = await self.connection.request("GET", path, timeout=_SECONDS)
        return str(value_at(found, "spec", "holderIdentity") or "")

    async def _replicas(self, token: str) -> list[ProcessAddress]:
        """Return the addresses of all replicas. Raises OSError."""
        found = []
        for url in self.urls:
            parts = urlsplit(url)
            addresses = await self.resolve(parts.hostname or "", parts.port or 443)
            found += [ProcessAddress(url, ip=address, token=token, tls=self.tls) for address in addresses]
        return found

    async def _fresh_token(self) -> str:
        """Return a token of the account for records. Raises ApiError."""
        if self.now() < self._renew_at:
            return self._token
        namespace, name = self.account
        began = self.now()
        found = await self.connection.request(
            "POST",
            path_of("v1", "serviceaccounts", name, namespace=namespace, subresource="token"),
            body={
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"audiences": [AUDIENCE], "expirationSeconds": _TOKEN_SECONDS},
            },
            timeout=_SECONDS,
        )
        token = value_at(found, "status", "token")
        if not isinstance(token, str):
            raise ApiError(f"no token of the ServiceAccount {namespace}/{name}: the response has none")
        self._token, self._renew_at = token, began + _TOKEN_SECONDS / 2
        return self._token


def leader_records(arguments: argparse.Namespace, connection: ApiConnection) -> LeaderRecords:
    """Return what finds the leader by the flags.

    Raises:
        NoAnswerError: The flags cannot be used.
    """
    if arguments.process:
        raise NoAnswerError("--records and --from both name the scheduler: use one of them")
    for url in arguments.records:
        try:
            parts = urlsplit(url)
            is_usable = parts.scheme == "https" and parts.hostname and (parts.port or True)
        except ValueError:  # the port is no number
            is_usable = False
        if not is_usable:
            raise NoAnswerError(f"--records: expected https://NAME:PORT, got {url!r}")
    for flag, given in (
        ("--records-lease", arguments.records_lease),
        ("--records-account", arguments.records_account),
    ):
        if given is None:
            raise NoAnswerError(f"--records needs {flag}")
    return LeaderRecords(
        connection,
        arguments.records,
        lease=arguments.records_lease,
        account=arguments.records_account,
        tls=tls_of(arguments.records_ca_file, "--records-ca-file"),
    )
