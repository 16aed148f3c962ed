"""Reads the records of a run."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the audit log.

    Attributes:
        audit_id: Its ``auditID``, to find it.
        received: When the API server received it, in seconds since 1970.
        done: When the API server had answered it.
        user: Who sent it.
        verb: As in the audit log: get, list, watch, create, update, patch, delete.
        resource: The plural, with the subresource after a slash.
        key: Namespace and name, with a slash between them.
        code: The status of the response.
        body: What was sent; None if the audit policy does not record it.
        response: What was answered; None if the audit policy does not record it.
    """

    audit_id: str
    received: float
    done: float
    user: str
    verb: str
    resource: str
    key: str
    code: int
    body: Object | None = None
    response: Object | None = None

    @property
    def named_version(self) -> int:
        """The resourceVersion that the body names, 0 if it names none."""
        return _version(self.body)

    @property
    def stored_version(self) -> int:
        """The resourceVersion of the response, 0 if nothing was accepted."""
        return _version(self.response) if 200 <= self.code < 300 else 0


@dataclass(frozen=True, slots=True)
class State:
    """One stored version of an object.

    Attributes:
        revision: Its resourceVersion.
        at: When it was recorded, in seconds since 1970.
        raw: The object as JSON; None if it was deleted.
    """

    revision: int
    at: float
    raw: bytes | None

    @property
    def value(self) -> Object | None:
        """The object; None if it was deleted."""
        return None if self.raw is None else orjson.loads(self.raw)


@dataclass(slots=True)
class History:
    """The stored versions of all objects of a kind.

    Attributes:
        states: The versions by key, oldest first.
        gaps: How many objects had changed when a watch was lost and all of them were listed again, so that versions in
            between may be missing.
    """

    states: dict[str, list[State]] = field(default_factory=dict)
    gaps: int = 0

    def add(self, key: str, state: State) -> None:
        """Add a version, unless it is known."""
        known = self.states.setdefault(key, [])
        if not known or known[-1].revision < state.revision:
            known.append(state)

    def add_list(self, listed: dict[str, State], revision: int, at: float) -> None:
        """Add all objects as they were stored at a revision, the first ones or after a watch was lost."""
        if self.states:
            alive = {
                key: states[-1].revision for key, states in self.states.items() if states[-1].raw is not None
            }
            found = {key: state.revision for key, state in listed.items()}
            self.gaps += len(dict(alive.items() ^ found.items()))
            for key in alive.keys() - found.keys():
                self.add(key, State(revision, at, None))
        for key, state in listed.items():
            self.add(key, state)

    def before(self, key: str, revision: int) -> State | None:
        """Return the version before a revision."""
        known = self.states.get(key, [])
        index = bisect_right(known, revision - 1, key=lambda state: state.revision)
        return known[index - 1] if index else None

    def version(self, key: str, revision: int) -> State | None:
        """Return the version with exactly this revision."""
        found = self.before(key, revision + 1)
        return found if found is not None and found.revision == revision else None

    def at(self, time: float) -> dict[str, State]:
        """Return the objects that were stored at a time."""
        found = {}
        for key, states in self.states.items():
            index = bisect_right(states, time, key=lambda state: state.at)
            if index and states[index - 1].raw is not None:
                found[key] = states[index - 1]
        return found


@dataclass(slots=True)
class Records:
    """All records of a run.

    Attributes:
        facts: Names; see ``LivePlane.facts``.
        marks: Times by name: begin, faults end, settled, end.
        requests: The audit log, in the order of receipt.
        bindings: The stored bindings, by namespace and name.
        clusters: The stored clusters.
        leases: The stored Leases of karmada-system.
        faults: The lines of the injector.
        processes: The lines of the keeper.
        final: The state at the end, as the API server and the processes report it.
    """

    facts: Object
    marks: dict[str, float]
    requests: list[Request]
    bindings: History
    clusters: History
    leases: History
    faults: list[Object]
    processes: list[Object]
    final: Object


def read(folder: Path) -> Records:
    """Read the records of a folder."""
    records = folder / "records"
    logs = sorted((folder / "plane" / "logs").glob("audit*.log"))
    requests = sorted(
        (request for log in logs for request in read_audit(log)), key=lambda request: request.received
    )
    return Records(
        facts=orjson.loads((records / "facts.json").read_bytes()),
        marks={each["mark"]: each["at"] for each in _lines(records / "marks.jsonl")},
        requests=requests,
        bindings=_history(records / "bindings.jsonl"),
        clusters=_history(records / "clusters.jsonl"),
        leases=_history(records / "leases.jsonl"),
        faults=list(_lines(records / "faults.jsonl")),
        processes=list(_lines(records / "processes.jsonl")),
        final=orjson.loads((records / "final.json").read_bytes()),
    )


def read_audit(log: Path) -> Iterator[Request]:
    """Read a file of the audit log; a line that was cut off by the end of the API server is left out."""
    for line in _lines(log):
        if line.get("stage") not in ("ResponseComplete", "Panic"):
            continue
        about = line.get("objectRef") or {}
        resource, sub = about.get("resource", ""), about.get("subresource")
        yield Request(
            audit_id=line["auditID"],
            received=_seconds(line["requestReceivedTimestamp"]),
            done=_seconds(line["stageTimestamp"]),
            user=line["user"].get("username", ""),
            verb=line["verb"],
            resource=f"{resource}/{sub}" if sub else resource,
            key=_key(about),
            code=(line.get("responseStatus") or {}).get("code", 0),
            body=line.get("requestObject"),
            response=_slim(line.get("responseObject")),
        )


def _slim(response: Object | None) -> Object | None:
    """Keep of a response what is judged; all of it would not fit into memory."""
    if response is None or "spec" not in response:
        return None
    metadata, spec = response["metadata"], response["spec"]
    kept = {key: spec[key] for key in ("schedulerName", "holderIdentity") if key in spec}
    return {"metadata": {"resourceVersion": metadata.get("resourceVersion")}, "spec": kept}


def _history(path: Path) -> History:
    history, listed, listed_at = History(), dict[str, State](), 0
    for line in _lines(path):
        if "gap" in line:
            listed, listed_at = {}, line["gap"]
            continue
        key, state = _stored(line)
        if state.revision <= listed_at:
            listed[key] = state
            continue
        if listed_at:
            history.add_list(listed, listed_at, line["at"])
            listed_at = 0
        history.add(key, state)
    if listed_at:
        history.add_list(listed, listed_at, max((state.at for state in listed.values()), default=0.0))
    return history


def _stored(line: Object) -> tuple[str, State]:
    *_, namespace, name = line["key"].split("/")
    key = name if namespace == "clusters" else f"{namespace}/{name}"
    value = line["value"]
    if value is not None:
        # etcd's values have no version; API servers fill it in.
        value["metadata"]["resourceVersion"] = str(line["revision"])
    return key, State(line["revision"], line["at"], None if value is None else orjson.dumps(value))


def _lines(path: Path) -> Iterator[Object]:
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                yield orjson.loads(line)
            except orjson.JSONDecodeError:
                continue


def _key(about: Object) -> str:
    return "/".join(part for part in (about.get("namespace", ""), about.get("name", "")) if part)


def _version(body: Object | None) -> int:
    text = ((body or {}).get("metadata") or {}).get("resourceVersion")
    return int(text) if isinstance(text, str) and text.isdigit() else 0


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
