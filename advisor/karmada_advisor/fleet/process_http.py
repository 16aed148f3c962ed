"""The HTTP client of a running scheduler: where it answers, and one request within bounds of time and size."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from functools import lru_cache
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.source import RunningScheduler
from karmada_scheduler import json_body
from karmada_scheduler.structs import Struct

_TIMEOUT_SECONDS: Final = 5.0
_TOTAL_SECONDS: Final = 10.0
_MAX_BYTES: Final = 16 * 2**20
_PART_BYTES: Final = 2**16
_MAX_UNANSWERED: Final = 16
_unanswered: Final = threading.BoundedSemaphore(_MAX_UNANSWERED)
_REDIRECTED: Final = 300


class ProcessAddress(Struct, frozen=True):
    """Where a process answers.

    Attributes:
        url: For example ``http://localhost:10353``. Its host is named in requests, and a certificate is checked against it.
        ip: The address to connect to, one of several behind the host; "" for any.
        token: A bearer token; "" for none.
        tls: The context of ``https``; None for the authorities of the system.
    """

    url: str
    ip: str = ""
    token: str = ""
    tls: ssl.SSLContext | None = None

    def __str__(self) -> str:
        return f"{self.url} at {self.ip}" if self.ip else self.url

    def __repr__(self) -> str:
        return f"<ProcessAddress {self}>"  # without the token


def address_of(process: RunningScheduler) -> ProcessAddress:
    """Return where a process answers, with the token as its file is now.

    Raises:
        NoAnswerError: The URL or a file cannot be used.
    """
    url, name = process.url, process.server_name
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:  # the port is no number
        host = port = None
    if parts.scheme not in {"http", "https"} or not host:
        raise NoAnswerError(f"--from: expected a URL like http://localhost:10353, got {url!r}")
    if parts.scheme == "http":
        for flag in ("token_file", "ca_file", "server_name"):
            if getattr(process, flag):
                raise NoAnswerError(f"--from-{flag.replace('_', '-')} is for https, and --from is {url}")
        return ProcessAddress(url)
    file, token = process.token_file, ""
    if file is not None:
        try:
            token = file.read_text("ascii").strip()
        except (OSError, ValueError) as error:
            raise NoAnswerError(f"--from-token-file: {file} cannot be read: {error}") from error
        if not token or not token.isprintable() or " " in token:
            raise NoAnswerError(f"--from-token-file: {file} has no token")
    tls = tls_of(process.ca_file, "--from-ca-file")
    if not name:
        return ProcessAddress(url, token=token, tls=tls)
    named = parts._replace(netloc=f"{name}:{port}" if port else name).geturl()
    return ProcessAddress(named, ip=host, token=token, tls=tls)


@lru_cache(maxsize=4)
def tls_of(authority: Path | None, flag: str) -> ssl.SSLContext:
    """Return a context with the certificates of a file as it was at first, or with those of the system.

    Raises:
        NoAnswerError: The file has none.
    """
    try:
        return ssl.create_default_context(cafile=authority)
    except OSError as error:  # an SSLError is one
        raise NoAnswerError(f"{flag}: {authority} has no certificates in PEM: {error}") from error


def get(process: ProcessAddress, path: str) -> tuple[int, Mapping[str, Any]]:
    """Return status and content of a response; OSError or ValueError without a complete one in time."""
    if not _unanswered.acquire(blocking=False):
        raise OSError(f"{_MAX_UNANSWERED} requests before this one have no answer yet")
    result: Future[tuple[int, bytes]] = Future()
    # A thread, because a server that sends a byte now and then never exceeds the timeout of a socket.
    threading.Thread(
        target=_request, args=(process, path, result, _unanswered), name="ask the scheduler", daemon=True
    ).start()
    try:
        status, body = result.result(_TOTAL_SECONDS)
    except TimeoutError:
        raise OSError(f"no complete answer within {_TOTAL_SECONDS:g} s") from None
    if _REDIRECTED <= status < _REDIRECTED + 100:
        raise ValueError(f"it redirects (status {status}); name the scheduler itself")
    found = json_body.decode(body)
    if not isinstance(found, dict):
        raise ValueError("the response is no JSON object")  # noqa: TRY004 (as other content that is not JSON)
    return status, found


def _request(
    process: ProcessAddress, path: str, result: Future[tuple[int, bytes]], unanswered: threading.Semaphore
) -> None:
    try:
        result.set_result(_response(process, path))
    except (OSError, ValueError) as error:
        result.set_exception(error)
    except (HTTPException, OverflowError) as error:
        result.set_exception(ValueError(f"it speaks no HTTP ({type(error).__name__})"))
    finally:
        unanswered.release()


def _connection(process: ProcessAddress) -> HTTPConnection:
    """Return a connection; of one to an address of several, the certificate has to be for the name."""
    parts = urlsplit(process.url)
    host = parts.hostname or ""
    if parts.scheme == "http":
        return HTTPConnection(host, parts.port, timeout=_TIMEOUT_SECONDS)
    tls = process.tls or ssl.create_default_context()
    connection = HTTPSConnection(host, parts.port, timeout=_TIMEOUT_SECONDS, context=tls)
    plain = socket.create_connection((process.ip or host, connection.port), _TIMEOUT_SECONDS)
    connection.sock = tls.wrap_socket(plain, server_hostname=host)
    return connection


def _response(process: ProcessAddress, path: str) -> tuple[int, bytes]:
    began = time.monotonic()
    connection = _connection(process)
    headers = {"Accept": "application/json"}
    if process.token:
        headers["Authorization"] = f"Bearer {process.token}"
    try:
        connection.request("GET", f"{urlsplit(process.url).path.rstrip('/')}{path}", headers=headers)
        with connection.getresponse() as response:
            body = bytearray()
            while part := response.read1(_PART_BYTES):
                body += part
                if len(body) > _MAX_BYTES:
                    raise ValueError(f"the response has more than {_MAX_BYTES // 2**20} MiB")
                if time.monotonic() - began > _TOTAL_SECONDS:
                    raise OSError(f"no complete answer within {_TOTAL_SECONDS:g} s")
            if response.length:
                raise ValueError("the response ends before it is complete")
            return response.status, bytes(body)
    finally:
        connection.close()
