"""Asks a running scheduler for its record of a binding (``--explain-bind-address``, usually through a port-forward)."""

from __future__ import annotations

import argparse
import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlsplit

from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.cli.sources.objects import NoAnswerError
from karmada_scheduler.cli.sources.process_rules import ProcessConfiguration, use
from karmada_scheduler.explain.process_view import ProcessView

_TIMEOUT_SECONDS: Final = 5.0
_MAX_BYTES: Final = 64 * 2**20
_OK: Final = 200
_NOT_FOUND: Final = 404


def read_process(url: str, key: BindingKey) -> ProcessView:
    """Return what a process says about a binding; a process that cannot be reached is a problem, not an error.

    Raises:
        NoAnswerError: The URL is not one of a process.
    """
    path = "/".join(quote(part, safe="") for part in (key.namespace, key.name) if part)
    try:
        status, found = _get(url, f"/v1/decisions/{path}")
    except (OSError, ValueError) as problem:
        return ProcessView(problem=f"{url} cannot be read: {problem}")
    queue = found.get("queue") or {}
    error = found.get("error") or {}
    record = found.get("record") if status != _NOT_FOUND else None
    return ProcessView(
        record=record if isinstance(record, Mapping) else None,
        queue_state=str(queue.get("state") or ""),
        due_in=queue.get("dueInSeconds"),
        before=queue.get("before"),
        waited=queue.get("waitedSeconds"),
        priority=queue.get("priority"),
        proposal=queue.get("proposal"),
        process=str(found.get("process") or ""),
        problem=str(error.get("message") or ""),
    )


def read_configuration(url: str) -> ProcessConfiguration:
    """Return the configuration of a process.

    Raises:
        NoAnswerError: The URL is not one of a process.
    """
    try:
        _, found = _get(url, "/v1/state")
    except (OSError, ValueError):
        found = {}
    return ProcessConfiguration.of(url, found)


def use_rules(arguments: argparse.Namespace) -> ProcessConfiguration:
    """Let a command with ``--from`` decide by the rules of the process.

    Raises:
        NoAnswerError: The URL is not one of a process, or a flag contradicts it.
    """
    found = read_configuration(arguments.process)
    use(arguments, found, gates_of(arguments.process, found.gates, arguments.feature_gates))
    return found


def read_state(url: str) -> Mapping[str, Any]:
    """Return the state of a process: its queue, its configuration, whether it leads.

    Raises:
        NoAnswerError: It cannot be read.
    """
    return _read(url, "/v1/state")[1]


def read_decisions(url: str, limit: int) -> Sequence[Mapping[str, Any]]:
    """Return the last records of a process, the oldest first.

    Raises:
        NoAnswerError: It cannot be read, or it does not lead.
    """
    status, found = _read(url, f"/v1/decisions?limit={limit}")
    items = found.get("items")
    if status != _OK or not isinstance(items, list):
        error = found.get("error") or {}
        raise NoAnswerError(str(error.get("message") or f"{url} has answered with status {status}"))
    return [each for each in items if isinstance(each, Mapping)]


def _read(url: str, path: str) -> tuple[int, Mapping[str, Any]]:
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


def _get(url: str, path: str) -> tuple[int, Mapping[str, Any]]:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise NoAnswerError(f"--from: expected a URL like http://localhost:10353, got {url!r}")
    request = urllib.request.Request(f"{url.rstrip('/')}{path}", headers={"Accept": "application/json"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310 (the scheme is checked)
            status, body = response.status, response.read(_MAX_BYTES)
    except urllib.error.HTTPError as refused:
        status, body = refused.code, refused.read(_MAX_BYTES)
    found = json.loads(body)
    if not isinstance(found, dict):
        raise ValueError("the response is no JSON object")  # noqa: TRY004 (as other content that is not JSON)
    return status, found
