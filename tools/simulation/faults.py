"""What faults do to requests and watches, and how often they did."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import orjson

from karmada_pyscheduler.client.http_connection import Response
from tools.simulation.plan import Fault

Body = Callable[[bytes], bytes]


@dataclass(slots=True)
class Fate:
    """What happens to one request.

    Attributes:
        delay: Seconds that it takes in addition.
        instead: The response, or the error of the connection, that is sent instead of the right one.
        is_silent: Whether no response arrives at all.
        is_carried_out: Whether it takes effect nevertheless.
        change: Changes the body of the right response.
    """

    delay: float = 0.0
    instead: Response | OSError | None = None
    is_silent: bool = False
    is_carried_out: bool = True
    change: Body | None = None


def status(code: int, reason: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a Status as an API server sends it."""
    body = {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": f"injected: {reason}", "reason": reason, "code": code,
    }  # fmt: skip
    return Response(code, {"content-type": "application/json", **(headers or {})}, orjson.dumps(body))


_NESTED: Final = b'{"a":' * 1100 + b"1" + b"}" * 1100
_FOREIGN: Final[Mapping[str, Response]] = {
    "page not found": Response(404, {"content-type": "text/plain"}, b"404 page not found\n"),
    "html": Response(200, {"content-type": "text/html"}, b"<html><body>It works!</body></html>"),
    "empty": Response(200, {"content-type": "application/json"}, b""),
    "object": Response(200, {"content-type": "application/json"}, b"{}"),
    "null": Response(200, {"content-type": "application/json"}, b"null"),
    "nested": Response(200, {"content-type": "application/json"}, _NESTED),
    "bad gateway": Response(502, {"content-type": "text/html"}, b"<html>502 Bad Gateway</html>"),
}
FOREIGN: Final = tuple(_FOREIGN)
"""The values of the fault ``foreign``: what proxies and load balancers answer."""


def _items(keep: Callable[[int], bool]) -> Body:
    """Return a change that leaves out items of a list."""

    def change(body: bytes) -> bytes:
        found = orjson.loads(body)
        if isinstance(found.get("items"), list):
            found["items"] = [each for index, each in enumerate(found["items"]) if keep(index)]
        return orjson.dumps(found)

    return change


_REFUSALS: Final = {
    "conflict": (409, "Conflict"), "unavailable": (503, "ServiceUnavailable"), "forbidden": (403, "Forbidden"),
    "unauthorized": (401, "Unauthorized"), "not_found": (404, "NotFound"),
}  # fmt: skip


def _apply(fault: Fault, fate: Fate, draw: Random) -> None:
    match fault.kind:
        case "lost_before":
            fate.is_carried_out = False
            fate.instead = ConnectionResetError("injected: lost before it was sent")
        case "lost_after":
            fate.instead = ConnectionResetError("injected: the response was lost")
        case "silent":
            fate.is_silent, fate.is_carried_out = True, draw.random() < 0.5
        case "slow":
            fate.delay += float(fault.value) * draw.uniform(0.5, 1.5)
        case "throttled":
            headers = {} if fault.value is None else {"retry-after": str(fault.value)}
            fate.instead, fate.is_carried_out = status(429, "TooManyRequests", headers), False
        case "internal_error":
            fate.instead, fate.is_carried_out = status(500, "InternalError"), draw.random() < 0.5
        case "foreign":
            fate.instead, fate.is_carried_out = _FOREIGN[fault.value], False
        case "torn":
            fate.change = lambda body: body[: len(body) // 2]
        case "empty_list":
            fate.change = _items(lambda _: False)
        case "partial_list":
            kept = draw.randrange(2)
            fate.change = _items(lambda index: index % 2 == kept)
        case refusal:
            fate.instead, fate.is_carried_out = status(*_REFUSALS[refusal]), False


REQUEST_FAULTS: Final = {
    "lost_before": 0.03, "lost_after": 0.03, "silent": 0.01, "slow": 0.1, "conflict": 0.1, "throttled": 0.05,
    "unavailable": 0.05, "internal_error": 0.03, "forbidden": 0.02, "unauthorized": 0.02, "foreign": 0.01,
    "torn": 0.01, "not_found": 0.02, "empty_list": 0.1, "partial_list": 0.2,
}  # fmt: skip
"""Faults of a request, with the share of requests that each applies to when it lasts for a whole run. A ``slow``
request takes ``value`` seconds; ``throttled`` has it as Retry-After."""

WATCH_FAULTS: Final = {
    "watch_stalled": 0.01, "watch_cut": 0.02, "watch_repeated": 0.05, "watch_expired": 0.02, "watch_garbage": 0.03,
    "watch_late": 0.1,
}  # fmt: skip
"""Faults of the lines of a watch, with the share of lines."""


class Faults:
    """The faults of a plan.

    Attributes:
        hits: How often each kind of fault has applied, by kind of fault and kind of request.
    """

    def __init__(self, faults: Iterable[Fault], *, seed: str) -> None:
        """Draw shares from ``seed``, the process, the kind of request and its number, so that no draw moves another."""
        self._faults: list[tuple[Fault, re.Pattern[str]]] = []
        self._seed = seed
        self._numbers: Counter[tuple[int, str]] = Counter()
        self.hits: Counter[tuple[str, str]] = Counter()
        for each in faults:
            self.add(each)

    def had_wrong_list(self, resource: str) -> bool:
        """Return whether a list of a resource has lacked objects: ``clusters``."""
        return any(self.hits[kind, f"LIST {resource}"] for kind in ("partial_list", "empty_list"))

    def add(self, fault: Fault) -> None:
        """Add a fault."""
        self._faults.append((fault, re.compile(fault.requests)))

    def fate(self, process: int, kind: str, now: float) -> Fate:
        """Return what happens to a request that is sent now."""
        fate = Fate()
        for fault, draw in self.drawn(
            _REQUEST_KINDS, process, kind, now, fits=lambda each: self._fits(each, kind)
        ):
            _apply(fault, fate, draw)
        return fate

    def line(self, process: int, kind: str, now: float) -> list[Fault]:
        """Return the faults that apply to a line of a watch that is sent now."""
        return [fault for fault, _ in self.drawn(_WATCH_KINDS, process, kind, now)]

    def drawn(
        self,
        kinds: frozenset[str],
        process: int,
        kind: str,
        now: float,
        *,
        fits: Callable[[Fault], bool] = lambda _: True,
    ) -> list[tuple[Fault, Random]]:
        """Return the faults of some kinds that apply to one event now, each with what its details are drawn from.

        ``kind`` is that of the event. A fault that does not fit the event is not counted.
        """
        self._numbers[process, kind] += 1
        found = []
        for index, (fault, pattern) in enumerate(self._faults):
            if fault.kind in kinds and self._applies(fault, pattern, process, kind, now):
                draw = Random(f"{self._seed}:{index}:{process}:{kind}:{self._numbers[process, kind]}")
                if draw.random() < fault.share and fits(fault):
                    self.hits[fault.kind, kind] += 1
                    found.append((fault, draw))
        return found

    def active(self, kind: str, process: int, event: str, now: float) -> float | None:
        """Return when the last fault of a kind ends that lasts now, None if none does; it is counted."""
        ends = [
            fault.end
            for fault, pattern in self._faults
            if fault.kind == kind and self._applies(fault, pattern, process, event, now)
        ]
        if ends:
            self.hits[kind, event] += 1
        return max(ends, default=None)

    def next_start(self, kind: str, process: int, event: str, now: float) -> float | None:
        """Return when a fault of a kind begins next, None if none does."""
        starts = [
            fault.start
            for fault, pattern in self._faults
            if fault.kind == kind
            and fault.start > now
            and fault.process in (None, process)
            and pattern.search(event) is not None
        ]
        return min(starts, default=None)

    @staticmethod
    def _applies(fault: Fault, pattern: re.Pattern[str], process: int, kind: str, now: float) -> bool:
        return (
            fault.start <= now < fault.end
            and fault.process in (None, process)
            and pattern.search(kind) is not None
        )

    @staticmethod
    def _fits(fault: Fault, kind: str) -> bool:
        """Return whether a fault makes sense for a kind of request."""
        verb = kind.partition(" ")[0]
        match fault.kind:
            case "conflict":
                return verb in ("PATCH", "PUT")
            case "not_found":
                return verb == "GET" and "bindings" in kind
            case "empty_list" | "partial_list":
                return verb == "LIST"
            case "torn":
                return verb in ("GET", "LIST", "PATCH")
        return True


_REQUEST_KINDS: Final = frozenset(REQUEST_FAULTS)
_WATCH_KINDS: Final = frozenset(WATCH_FAULTS)


def kind_of(method: str, path: str, query: Mapping[str, str]) -> str:
    """Return the kind of a request: its verb, and the resource with its subresource, such as ``PATCH clusters/status``."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if len(rest) >= 3 and rest[0] == "namespaces":
        rest = rest[2:]
    if not rest:
        return f"{method} discovery"
    verb = method
    if method == "GET" and len(rest) == 1:
        verb = "WATCH" if query.get("watch") == "true" else "LIST"
    return f"{verb} {'/'.join((rest[0], *rest[2:]))}"


def value_of(fault: Fault, otherwise: Any) -> Any:
    """Return the parameter of a fault, or a default."""
    return otherwise if fault.value is None else fault.value
