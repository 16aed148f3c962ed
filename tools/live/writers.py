"""Who wrote each stored version of a binding, and when a request was sent."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field

from tools.live.records import Records, Request

_DELIVERY_SECONDS = 1.5
"""How long after the end of a delay the API server may take to read what had been held."""

_SLOW_SECONDS = 3.0
"""How long a slow network delays a request at most: the connection, the handshake, the request."""


@dataclass(slots=True)
class Writers:
    """The writers of stored versions, as the audit log has them.

    Attributes:
        requests: The request behind each version, by key and resourceVersion.
        late: Versions whose request was answered with an error and took effect all the same.
        unknown: Accepted requests without a stored version; the watch has a gap, or the judge is wrong.
    """

    requests: dict[tuple[str, int], Request] = field(default_factory=dict)
    late: Counter[str] = field(default_factory=Counter)
    unknown: list[Request] = field(default_factory=list)


def writers_of(records: Records) -> Writers:
    """Return who wrote the stored versions of bindings."""
    found = Writers()
    unanswered: dict[tuple[str, int], Request] = {}
    for request in records.requests:
        if not request.resource.startswith("resourcebindings") or request.verb not in ("patch", "update"):
            continue
        version, named = request.stored_version, request.named_version
        if version and version != named:
            if records.bindings.version(request.key, version) is None:
                found.unknown.append(request)
            else:
                found.requests.setdefault((request.key, version), request)
        elif not version and named and (request.code >= 500 or request.code == 0):
            unanswered.setdefault((request.key, named), request)
    for (key, named), request in unanswered.items():
        states = records.bindings.states.get(key, [])
        for before, after in itertools.pairwise(states):
            if before.revision == named and (key, after.revision) not in found.requests:
                found.requests[key, after.revision] = request
                found.late[request.user] += 1
    return found


class Delays:
    """When requests reached the API server later than they were sent, because of a fault."""

    def __init__(self, records: Records) -> None:
        self._users = records.facts["users"]
        self._held: list[tuple[str, float, float]] = []
        self._slow: list[tuple[str, float, float]] = []
        begun: dict[tuple[str, str], float] = {}
        for line in records.faults:
            kind, target = line["fault"], line.get("target", "")
            if line.get("phase") == "begin":
                begun[kind, target] = line["at"]
            elif line.get("phase") == "end":
                interval = (begun.pop((kind, target)), line["at"])
                if kind == "stop apiserver":
                    self._held.append(("", *interval))
                elif kind == "held network":
                    self._held.append((target, *interval))
                elif kind == "slow network":
                    self._slow.append((target, *interval))

    def sent(self, request: Request) -> float:
        """Return the earliest moment at which a request can have been sent."""
        earliest, process = request.received, self._users[request.user]
        for target, begin, end in self._slow:
            if target == process and begin <= request.received <= end + _SLOW_SECONDS:
                earliest = min(earliest, request.received - _SLOW_SECONDS)
        for target, begin, end in self._held:
            if target in ("", process) and begin <= request.received <= end + _DELIVERY_SECONDS:
                earliest = min(earliest, begin)
        return earliest
