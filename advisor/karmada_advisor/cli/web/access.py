"""Who may read the page, from the flags: anyone who reaches a loopback address, or the holders of tokens.

And who has read what: the audit log, one line of JSON for each request. A file system, or a reader of the log, that hangs or
fails costs lines and no answers; later lines say how many so far.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from karmada_advisor.cli.flags.web import DEFAULT_AUDIENCE
from karmada_advisor.cli.questions import control_plane_of, source_of
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.web.metrics import WebMetrics
from karmada_pyscheduler.http_server.certificate import CertificateError, ServerCertificate
from karmada_pyscheduler.http_server.messages import AnsweredRequest
from karmada_pyscheduler.http_server.request_guard import Access
from karmada_pyscheduler.records.log_file import LogFile
from karmada_scheduler.config import validation
from karmada_scheduler.records.record import timestamp

if TYPE_CHECKING:  # files do not need the client
    from karmada_advisor.web.authorization import Authorization
    from karmada_advisor.web.sessions import Sessions
    from karmada_pyscheduler.client.connection import Connection

_MAX_VALUE: Final = 253
"""Characters of a value of a path; names of Kubernetes are not longer."""


class AuditLog:
    """A log of requests; ``with`` writes it."""

    def __init__(
        self,
        path: Path,
        *,
        descriptor: int | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Append to a file.

        Args:
            path: See ``LogFile``.
            descriptor: See ``LogFile``.
            now: Returns seconds since 1970.
        """
        self._now = now
        self._dropped = 0
        self._lock = threading.Lock()
        self._file = LogFile(
            path, name="audit log", descriptor=descriptor, on_lost=self._lost, on_error=lambda: None
        )

    def __enter__(self) -> Self:
        self._file.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, answered: AnsweredRequest) -> None:
        """Note a request. It never waits for the file."""
        line: dict[str, Any] = {
            "time": timestamp(self._now()),
            "address": answered.address,
            "user": answered.user,
            "method": answered.method,
            "route": answered.route,
            **{name: value[:_MAX_VALUE] for name, value in answered.path.items()},
            "status": answered.status,
            "milliseconds": round(answered.seconds * 1000),
        }
        if self._dropped:
            line["dropped"] = self._dropped
        self._file.write(json.dumps(line).encode() + b"\n")

    def _lost(self, lines: int) -> None:
        with self._lock:
            self._dropped += lines


@contextmanager
def audited(target: str | None) -> Iterator[Callable[[AnsweredRequest], None]]:
    """Yield what notes each request in the file of ``--audit-log``; only its owner may read it.

    Raises:
        NoAnswerError: The file cannot be opened.
    """
    if target is None:
        yield lambda _: None
        return
    if target == "-":
        log = AuditLog(Path("/dev/stdout"), descriptor=1)
    else:
        path = Path(target)
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
        except OSError as error:
            raise NoAnswerError(f"--audit-log: {target}: {error.strerror}") from error
        log = AuditLog(path)
    with log:
        yield log.add


class PageAccess:
    """Certificate and rules of one page; ``async with`` on the event loop of its server."""

    def __init__(self, arguments: argparse.Namespace, metrics: WebMetrics) -> None:
        """Check the flags, and load the certificate; ``metrics`` count reviews and sessions.

        Raises:
            NoAnswerError: Flags do not fit together, or the certificate cannot be used.
        """
        _check(arguments)
        self._arguments = arguments
        self._metrics = metrics
        self._certificate: ServerCertificate | None = None
        if arguments.tls_cert_file:
            try:
                self._certificate = ServerCertificate(arguments.tls_cert_file, arguments.tls_key_file)
            except CertificateError as error:
                raise NoAnswerError(str(error)) from error
            metrics.expose_certificate(partial(end_of, self._certificate))
        self.tls = None if self._certificate is None else self._certificate.context
        self._stack = AsyncExitStack()
        self.connection = _OwnConnection(arguments, self._stack)
        """For reviews, and for what finds the scheduler's leader."""
        self.is_open = arguments.auth == "none"
        hosts = frozenset(name.lower() for name in arguments.allowed_host)
        authorization = None if self.is_open else self._authorization()
        self.sessions = authorization if arguments.session_keys_file else None
        self.access = Access(
            hosts,
            "--allowed-host",
            None if authorization is None else authorization.viewer,
            proxies=tuple(arguments.behind_proxy),
        )

    async def __aenter__(self) -> None:
        """Follow changes of the certificate."""
        if self._certificate is not None:
            task = asyncio.create_task(self._certificate.keep_fresh(), name="certificate")
            self._stack.callback(task.cancel)

    async def __aexit__(self, *_: object) -> None:
        """Close the connection."""
        await self._stack.aclose()

    def _authorization(self) -> Authorization:
        from karmada_advisor.web.authorization import Authorization
        from karmada_advisor.web.namespaces import NamespaceHints
        from karmada_pyscheduler.client.reviews import Reviews

        audiences = self._arguments.audience or [DEFAULT_AUDIENCE]
        reviews = Reviews(
            self.connection,
            audiences=audiences,
            kept_seconds=self._arguments.auth_cache,
            on_review=self._metrics.reviewed,
        )
        return Authorization(
            reviews,
            NamespaceHints(self.connection.role_bindings),
            audience=audiences[0],
            sessions=self._sessions(),
        )

    def _sessions(self) -> Sessions | None:
        """Return what seals sessions; None without keys. Raises NoAnswerError."""
        keys = self._arguments.session_keys_file
        if not keys:
            return None
        from karmada_advisor.web.sessions import SessionKeysError, Sessions

        try:
            seconds = int(self._arguments.session)
            return Sessions(keys, seconds=seconds, on_refused=self._metrics.session_refused)
        except SessionKeysError as error:
            raise NoAnswerError(f"--session-keys-file: {error}") from error


def end_of(certificate: ServerCertificate) -> float:
    """Return when the certificate of a server ends, in seconds since 1970; not a number if it cannot be read."""
    from karmada_pyscheduler.client.identity import validity_of_certificate

    _, ends_at = validity_of_certificate(certificate.chain)
    return math.nan if ends_at is None else ends_at


class _OwnConnection:
    """A connection of the page's server: a reading of the objects does not delay it. It is made for the first request."""

    def __init__(self, arguments: argparse.Namespace, stack: AsyncExitStack) -> None:
        self._arguments, self._stack = arguments, stack
        self._connection: Connection | None = None
        self._making = asyncio.Lock()

    async def request(self, method: str, path: str, *, body: Any = None, timeout: float) -> dict[str, Any]:
        """Send a request. Raises ApiError."""
        return await (await self._connected()).request(method, path, body=body, timeout=timeout)

    async def role_bindings(self) -> AsyncGenerator[tuple[list[dict[str, Any]], str], None]:
        """Yield all RoleBindings in pages. Raises ApiError."""
        from karmada_advisor.web.namespaces import PATH
        from karmada_pyscheduler.client.karmada import list_pages

        async with aclosing(list_pages(await self._connected(), PATH)) as pages:
            async for page in pages:
                yield page

    async def _connected(self) -> Connection:
        async with self._making:
            if self._connection is None:
                self._connection = await self._made()
            return self._connection

    async def _made(self) -> Connection:
        from karmada_pyscheduler.client.connect import connect
        from karmada_pyscheduler.client.identity import ConnectionConfigError
        from karmada_scheduler.api_error import ApiError

        plane = control_plane_of(self._arguments)
        try:
            found = await connect(kubeconfig=plane.kubeconfig, overrides=plane.overrides, master="")
        except ConnectionConfigError as error:
            raise ApiError(str(error)) from error
        self._stack.push_async_callback(found.close)
        return found


def _check(arguments: argparse.Namespace) -> None:
    is_local, has_tokens = True, arguments.auth == "token"
    try:
        validation.loopback_address(arguments.bind_address)
    except ValueError as error:
        is_local = False
        if not has_tokens:
            raise NoAnswerError(f"--bind-address: {error}, or use --auth=token") from error
    if bool(arguments.tls_cert_file) != bool(arguments.tls_key_file):
        raise NoAnswerError("--tls-cert-file and --tls-key-file belong together: name both")
    if not is_local and not arguments.tls_cert_file and not arguments.behind_proxy:
        raise NoAnswerError(
            "tokens would be sent in clear text: name --tls-cert-file and --tls-key-file, or the addresses of a proxy that "
            "ends TLS with --behind-proxy"
        )
    if arguments.session_keys_file and not has_tokens:
        raise NoAnswerError("--session-keys-file is for --auth=token: without it nobody signs in")
    if has_tokens and not source_of(arguments).is_control_plane:
        raise NoAnswerError("--auth=token needs a control plane, which says who may read; files do not")
