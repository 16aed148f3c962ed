"""Who may read the page, from the flags: anyone who reaches a loopback address, or the holders of tokens.

And who has read what: the audit log, one line of JSON for each request. A file system, or a reader of the log, that hangs or
fails costs lines and no answers; later lines say how many so far.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

from karmada_advisor.cli.flags.web import DEFAULT_AUDIENCE
from karmada_advisor.cli.questions import source_of
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.web.authorization import PATH, Authorization, NamespaceHints
from karmada_advisor.web.metrics import WebMetrics
from karmada_advisor.web.sessions import SessionKeysError, Sessions
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.identity import validity_of_certificate
from karmada_pyscheduler.client.karmada import list_pages
from karmada_pyscheduler.client.reviews import Reviews
from karmada_pyscheduler.http_server.listener import CertificateError, ServerCertificate
from karmada_pyscheduler.http_server.request_guard import AnsweredRequest
from karmada_pyscheduler.records.log_file import LogFile
from karmada_scheduler.config import validation
from karmada_scheduler.records.record import timestamp
from karmada_scheduler.structs import IdentityStruct, field

_MAX_VALUE: Final = 253
"""Characters of a value of a path; names of Kubernetes are not longer."""


class AuditLog(IdentityStruct):
    """A log of requests; ``with`` writes it.

    Attributes:
        path: See ``LogFile``.
        descriptor: See ``LogFile``.
        now: Returns seconds since 1970.
    """

    path: Path
    descriptor: int | None = None
    now: Callable[[], float] = time.time
    _dropped: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._file = LogFile(
            self.path, "audit log", self._lost, on_error=lambda: None, descriptor=self.descriptor
        )

    def __enter__(self) -> Self:
        self._file.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, answered: AnsweredRequest) -> None:
        """Note a request. It never waits for the file."""
        line: dict[str, Any] = {
            "time": timestamp(self.now()),
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


def certificate_of(arguments: argparse.Namespace, metrics: WebMetrics) -> ServerCertificate | None:
    """Return the certificate of the page, whose end is a metric; None for HTTP.

    Raises:
        NoAnswerError: It cannot be used.
    """
    if not arguments.tls_cert_file:
        return None
    try:
        found = ServerCertificate(arguments.tls_cert_file, arguments.tls_key_file)
    except CertificateError as error:
        raise NoAnswerError(str(error)) from error
    metrics.expose_certificate(partial(end_of, found))
    return found


def authorization_of(
    arguments: argparse.Namespace, metrics: WebMetrics, connection: Connection | None
) -> Authorization | None:
    """Return who lets readers in by tokens, over a connection; None without ``--auth=token``.

    Raises:
        NoAnswerError: The keys of sessions cannot be used.
    """
    if connection is None or arguments.auth == "none":
        return None
    audiences, keys, sessions = arguments.audience or [DEFAULT_AUDIENCE], arguments.session_keys_file, None
    if keys:
        try:
            sessions = Sessions(keys, seconds=int(arguments.session), on_refused=metrics.session_refused)
        except SessionKeysError as error:
            raise NoAnswerError(f"--session-keys-file: {error}") from error
    reviews = Reviews(
        connection, audiences=audiences, kept_seconds=arguments.auth_cache, on_review=metrics.reviewed
    )
    hints = NamespaceHints(partial(list_pages, connection, PATH))
    return Authorization(reviews, hints, audience=audiences[0], sessions=sessions)


def end_of(certificate: ServerCertificate) -> float:
    """Return when the certificate of a server ends, in seconds since 1970; not a number if it cannot be read."""
    _, ends_at = validity_of_certificate(certificate.chain)
    return math.nan if ends_at is None else ends_at


def check_flags(arguments: argparse.Namespace) -> None:
    """Check who may read the page. Raises NoAnswerError: Flags do not fit together."""
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
