"""Asks a running scheduler for its record of a binding (``--explain-bind-address``, usually through a port-forward)."""

from __future__ import annotations

import argparse
import socket
import ssl
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from karmada_advisor.explain.inputs import ProcessView
from karmada_advisor.sources.objects import NoAnswerError
from karmada_advisor.sources.process_answers import record_of, state_of, view_of
from karmada_advisor.sources.process_rules import ProcessConfiguration, names_rules, use
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.client import json_body
from karmada_scheduler.config.decision_rules import RULES
from karmada_scheduler.structs import Struct

_TIMEOUT_SECONDS: Final = 5.0
_TOTAL_SECONDS: Final = 10.0
_MAX_BYTES: Final = 16 * 2**20
_PART_BYTES: Final = 2**16
_MAX_UNANSWERED: Final = 16
_unanswered: Final = threading.BoundedSemaphore(_MAX_UNANSWERED)
_OK: Final = 200
_REDIRECTED: Final = 300
_NOT_FOUND: Final = 404
_UNAUTHORIZED: Final = frozenset({401, 403})
_REFUSED: Final = frozenset({401, 403, 421, 429, 503})


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


def address_of(arguments: argparse.Namespace) -> ProcessAddress:
    """Return where the process of ``--from`` answers, with the token as its file is now.

    Raises:
        NoAnswerError: The URL or a file cannot be used.
    """
    url, name = str(arguments.process), str(arguments.from_server_name)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:  # the port is no number
        host = port = None
    if parts.scheme not in {"http", "https"} or not host:
        raise NoAnswerError(f"--from: expected a URL like http://localhost:10353, got {url!r}")
    if parts.scheme == "http":
        for flag in ("token_file", "ca_file", "server_name"):
            if getattr(arguments, f"from_{flag}"):
                raise NoAnswerError(f"--from-{flag.replace('_', '-')} is for https, and --from is {url}")
        return ProcessAddress(url)
    file, token = arguments.from_token_file, ""
    if file is not None:
        try:
            token = file.read_text("ascii").strip()
        except (OSError, ValueError) as error:
            raise NoAnswerError(f"--from-token-file: {file} cannot be read: {error}") from error
        if not token or not token.isprintable() or " " in token:
            raise NoAnswerError(f"--from-token-file: {file} has no token")
    tls = tls_of(arguments.from_ca_file, "--from-ca-file")
    if not name:
        return ProcessAddress(url, token=token, tls=tls)
    named = parts._replace(netloc=f"{name}:{port}" if port else name).geturl()
    return ProcessAddress(named, ip=host, token=token, tls=tls)


def tls_of(authority: Path | None, flag: str) -> ssl.SSLContext:
    """Return a context with the certificates of a file, or with those of the system. Raises NoAnswerError: it has none."""
    try:
        return ssl.create_default_context(cafile=authority)
    except OSError as error:  # an SSLError is one
        raise NoAnswerError(f"{flag}: {authority} has no certificates in PEM: {error}") from error


def read_process(url: ProcessAddress | str, key: BindingKey) -> ProcessView:
    """Return what a process says about a binding; a process that cannot be reached is a problem, not an error.

    Raises:
        NoAnswerError: The URL is not one of a process.
    """
    path = "/".join(quote(part, safe="") for part in (key.namespace, key.name) if part)
    try:
        status, found = _get(url, f"/v1/decisions/{path}")
        return view_of(found, has_record=status != _NOT_FOUND)
    except (OSError, ValueError) as problem:
        return ProcessView(problem=f"{url} cannot be read: {problem}")


def read_configuration(url: ProcessAddress | str) -> ProcessConfiguration:
    """Return the configuration of a process.

    Raises:
        NoAnswerError: The URL is not one of a process, or the token is not one for it.
    """
    try:
        status, found = _get(url, "/v1/state")
    except (OSError, ValueError):
        status, found = _OK, {}
    _check(url, status, found, _UNAUTHORIZED)
    return ProcessConfiguration.of(str(url), found)


def _check(
    url: ProcessAddress | str, status: int, found: Mapping[str, Any], refused: Collection[int]
) -> None:
    if status in refused:
        raise NoAnswerError(f"{url}: {_message(found) or f'it has answered with status {status}'}")


def use_rules(arguments: argparse.Namespace) -> ProcessConfiguration:
    """Let a command with ``--from`` decide by the rules of the process.

    Raises:
        NoAnswerError: The URL is not one of a process, or a flag contradicts it.
    """
    found = read_configuration(address_of(arguments))
    arguments.feature_gates = gates_of(arguments.process, found.gates, arguments.feature_gates)
    arguments.decisions_of = decisions_of(found, arguments.decisions_of)
    use(arguments, found, is_named=names_rules(arguments))
    return found


def read_state(url: ProcessAddress | str) -> Mapping[str, Any]:
    """Return the state of a process: its queue, its configuration, whether it leads.

    Raises:
        NoAnswerError: It cannot be read.
    """
    try:
        status, found = _read(url, "/v1/state")
        _check(url, status, found, _REFUSED)
        return state_of(found)
    except ManifestError as problem:
        raise NoAnswerError(f"{url} cannot be read: {problem}") from problem


def read_decisions(url: ProcessAddress | str, limit: int) -> Sequence[Mapping[str, Any]]:
    """Return the last records of a process, the oldest first.

    Raises:
        NoAnswerError: It cannot be read, or it does not lead.
    """
    status, found = _read(url, f"/v1/decisions?limit={limit}")
    items = found.get("items")
    if status != _OK or not isinstance(items, list):
        raise NoAnswerError(_message(found) or f"{url} has answered with status {status}")
    return [record for each in items[-limit:] if (record := _record(each)) is not None]


def _message(found: Mapping[str, Any]) -> str:
    """Return why a process refuses an answer; "" if it does not say so."""
    error = found.get("error")
    return str(error.get("message") or "") if isinstance(error, dict) else ""


def _record(found: object) -> Mapping[str, Any] | None:
    """Return a record; None for what is none, such as one of another version of the scheduler."""
    try:
        return record_of(found) if isinstance(found, dict) else None
    except ManifestError:
        return None


def _read(url: ProcessAddress | str, path: str) -> tuple[int, Mapping[str, Any]]:
    try:
        return _get(url, path)
    except (OSError, ValueError) as problem:
        raise NoAnswerError(f"{url} cannot be read: {problem}") from problem


def gates_of(url: str, of_process: Mapping[str, bool], given: Sequence[str]) -> list[str]:
    """Return the feature gates of a process as ``--feature-gates`` has them.

    Args:
        url: Of the process.
        of_process: Its gates.
        given: The gates on the command line.

    Raises:
        NoAnswerError: The command line contradicts the process.
    """
    if not of_process:
        return list(given)
    named = dict(each.partition("=")[::2] for text in given for each in text.split(",") if each)
    for name, value in named.items():
        if name in of_process and of_process[name] != (value == "true"):
            is_on = "on" if of_process[name] else "off"
            raise NoAnswerError(f"--feature-gates: {name}={value}, but it is {is_on} in the process at {url}")
    return [
        *given,
        *(f"{name}={str(value).lower()}" for name, value in of_process.items() if name not in named),
    ]


def decisions_of(found: ProcessConfiguration, given: str | None) -> str | None:
    """Return whose decisions a process makes, as ``--decisions-of`` has it; None if neither it nor the flag says so.

    Args:
        found: The configuration of the process.
        given: The value on the command line.

    Raises:
        NoAnswerError: The command line contradicts the process, or its version is unknown here.
    """
    known = found.decisions_of
    if known and known not in RULES:
        raise NoAnswerError(
            f"--from: the process at {found.url} makes the decisions of {known}, known here are {', '.join(RULES)}; "
            "use the command of its version"
        )
    if known and given and known != given:
        raise NoAnswerError(f"--decisions-of={given}, but it is {known} in the process at {found.url}")
    return known or given


def _get(url: ProcessAddress | str, path: str) -> tuple[int, Mapping[str, Any]]:
    """Return status and content of a response; OSError or ValueError without a complete one in time."""
    process = ProcessAddress(url) if isinstance(url, str) else url
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


class _ConnectionTo(HTTPSConnection):
    """A connection to one address of a name, whose certificate has to be for the name."""

    def __init__(self, ip: str, host: str, port: int | None, context: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=_TIMEOUT_SECONDS, context=context)
        self._ip = ip
        self._tls = context

    def connect(self) -> None:
        plain = socket.create_connection((self._ip or self.host, self.port), _TIMEOUT_SECONDS)
        self.sock = self._tls.wrap_socket(plain, server_hostname=self.host)


def _connection(process: ProcessAddress) -> HTTPConnection:
    parts = urlsplit(process.url)
    host = parts.hostname or ""
    if parts.scheme == "http":
        return HTTPConnection(host, parts.port, timeout=_TIMEOUT_SECONDS)
    return _ConnectionTo(process.ip, host, parts.port, process.tls or ssl.create_default_context())


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
