"""Sends the same requests to two API servers, and compares the responses.

The servers give other uids, times and resourceVersions. ``comparable`` replaces them by what has to be equal: a uid by
the order of its first occurrence, a time by its presence, the version of an object by its rank among all versions of the
run, and the version of a list by the number of objects' versions that are not newer. Causes that a real server reports
twice count once.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tools.apiserver_model.kinds import Object
from tools.apiserver_model.merge_patch import merged

VERSION_OF: Final = "$version:"
UID_OF: Final = "$uid:"
CONTINUE_OF: Final = "$continue:"
"""Texts in a step that stand for a field of the response to an earlier one: ``$version:3``."""

OBJECT_OF: Final = "$object"
"""``{"$object": 3, "patch": {...}}`` in a step stands for the object of an earlier response with changes, and
``{}`` with changes if that was not an object."""

_TIMES: Final = ("creationTimestamp", "deletionTimestamp")
_LOOSE: Final = frozenset({"Deployment", "Service", "Cluster", "Event", "Namespace"})
"""Kinds with defaults and fields that the model does not know: it may store less than a real server."""

_NUMBERS: Final = re.compile(r"\b\d+\b")
_KEY: Final = re.compile(r"Key: \S+,")
_GO_TYPE: Final = re.compile(r" \(\*[\w.]+\)")
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|uid-\d+")


@dataclass(frozen=True, slots=True)
class Step:
    """A request whose texts may refer to earlier responses."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    content_type: str = "application/json"
    accept: str = "application/json"


@dataclass(frozen=True, slots=True)
class DecodedResponse:
    """A response: its status and its body, decoded if it is JSON."""

    code: int
    body: Any


Send = Callable[[Step], DecodedResponse]
"""Sends a step without references."""


def play(steps: Sequence[Step], send: Send) -> list[DecodedResponse]:
    """Send steps in order and return the responses."""
    responses: list[DecodedResponse] = []
    for step in steps:
        resolved = Step(
            step.method,
            step.path,
            _resolved(step.query, responses),
            _resolved(step.body, responses),
            step.content_type,
            step.accept,
        )
        responses.append(send(resolved))
    return responses


def _resolved(value: Any, responses: Sequence[DecodedResponse]) -> Any:
    if isinstance(value, Mapping):
        if OBJECT_OF in value:
            base = responses[value[OBJECT_OF]].body
            is_object = isinstance(base, dict) and base.get("kind") != "Status"
            found = merged(base if is_object else {}, _resolved(value["patch"], responses))
            # Older managedFields than the stored ones are a change, which the model does not have.
            return merged(found, {"metadata": {"managedFields": None}})
        return {name: _resolved(each, responses) for name, each in value.items()}
    if isinstance(value, list):
        return [_resolved(each, responses) for each in value]
    for prefix, name in ((VERSION_OF, "resourceVersion"), (UID_OF, "uid"), (CONTINUE_OF, "continue")):
        if isinstance(value, str) and value.startswith(prefix):
            body = responses[int(value.removeprefix(prefix))].body
            metadata = body.get("metadata") if isinstance(body, dict) else None
            return (metadata or {}).get(name, "")
    return value


class Run:
    """The responses and watch events of one server, in comparable form."""

    def __init__(
        self, responses: Sequence[DecodedResponse], events: Sequence[Object], *, prefix: str
    ) -> None:
        """Take the responses to all steps and the events of watches.

        Args:
            responses: The responses.
            events: What watches of all kinds showed.
            prefix: Of the names of cluster-scoped objects of this run; other ones are left out of lists.
        """
        self._prefix = prefix
        self._uids: dict[str, str] = {}
        self._versions: list[int] = []
        found: set[int] = set()
        for body in (*(each.body for each in responses), *(event["object"] for event in events)):
            self._collect(body, found)
        self._versions = sorted(found)
        self.responses = [(each.code, self._comparable(each.body)) for each in responses]
        self.events = [(event["type"], self._comparable(event["object"])) for event in events]

    def _collect(self, body: Any, found: set[int]) -> None:
        if not isinstance(body, dict) or body.get("kind") == "Status":
            return
        for item in self._own(body["items"] or ()) if "items" in body else [body]:
            version = (item.get("metadata") or {}).get("resourceVersion")
            if version:
                found.add(int(version))

    def _own(self, items: Sequence[Object]) -> list[Object]:
        """Return the objects of a list that are of this run."""
        return [
            item
            for item in items
            if item["metadata"].get("namespace") or item["metadata"]["name"].startswith(self._prefix)
        ]

    def _comparable(self, body: Any) -> Any:
        if not isinstance(body, dict):
            return body
        if body.get("kind") == "Status":
            return self._status(body)
        if "items" in body:
            return self._list(body)
        return self._object(body)

    def _status(self, body: Object) -> Object:
        details = dict(body.get("details") or {})
        if "uid" in details:
            details["uid"] = self._uid(details["uid"])
        causes = {self._text(cause["message"]): cause for cause in details.get("causes") or ()}
        details["causes"] = [{**cause, "message": message} for message, cause in causes.items()]
        return {
            "status": body.get("status"),
            "reason": body.get("reason"),
            "code": body.get("code"),
            "message": self._text(body.get("message") or ""),
            "details": details,
            "continues": bool((body.get("metadata") or {}).get("continue")),
        }

    def _text(self, message: str) -> str:
        message = _UID.sub(lambda found: self._uid(found.group()), message)
        return _NUMBERS.sub("N", _GO_TYPE.sub("", _KEY.sub("Key,", message)))

    def _list(self, body: Object) -> Object:
        metadata = body["metadata"]
        version = int(metadata["resourceVersion"])
        return {
            **body,
            "metadata": {
                "resourceVersion": f"after {bisect.bisect_right(self._versions, version)}",
                "continue": bool(metadata.get("continue")),
                "remainingItemCount": metadata.get("remainingItemCount", 0),
            },
            "items": [self._object(item) for item in self._own(body["items"] or ())],
        }

    def _object(self, body: Object) -> Object:
        metadata = dict(body.get("metadata") or {})
        metadata.pop("managedFields", None)
        if "resourceVersion" in metadata:
            version = int(metadata["resourceVersion"])
            metadata["resourceVersion"] = bisect.bisect_left(self._versions, version)
        if "uid" in metadata:
            metadata["uid"] = self._uid(metadata["uid"])
        if metadata.get("generateName"):
            metadata["name"] = re.sub(r"[a-z0-9]{5}$", "*****", metadata.get("name", ""))
        for name in _TIMES:
            if metadata.get(name):
                metadata[name] = "a time"
        return {**body, "metadata": metadata}

    def _uid(self, uid: str) -> str:
        if not _UID.fullmatch(uid):
            return uid
        return self._uids.setdefault(uid, f"uid {len(self._uids)}")


def differences(real: Any, modelled: Any, *, where: str = "") -> list[str]:
    """Return where a response of the model differs from the real one, a line each."""
    if isinstance(real, dict) and isinstance(modelled, dict):
        is_loose = real.get("kind") in _LOOSE or str(real.get("kind")).removesuffix("List") in _LOOSE
        return _of_objects(real, modelled, where, is_loose=is_loose)
    if isinstance(real, list | tuple) and isinstance(modelled, list | tuple) and len(real) == len(modelled):
        found = []
        for index, (one, other) in enumerate(zip(real, modelled, strict=True)):
            found += differences(one, other, where=f"{where}[{index}]")
        return found
    return [] if real == modelled else [f"{where}: {real!r}, in the model {modelled!r}"]


def _of_objects(real: Object, modelled: Object, where: str, *, is_loose: bool) -> list[str]:
    found = []
    for name in real.keys() | modelled.keys():
        place = f"{where}.{name}"
        if name not in modelled and is_loose:
            continue
        if name not in real or name not in modelled:
            held = real if name in real else modelled
            found.append(f"{place}: only {'real' if held is real else 'in the model'}: {held[name]!r}")
        elif (
            is_loose
            and name != "metadata"
            and isinstance(real[name], dict)
            and isinstance(modelled[name], dict)
        ):
            found += _of_objects(real[name], modelled[name], place, is_loose=True)
        elif is_loose and isinstance(real[name], list) and isinstance(modelled[name], list):
            found += _of_lists(real[name], modelled[name], place)
        else:
            found += differences(real[name], modelled[name], where=place)
    return found


def _of_lists(real: Sequence[Any], modelled: Sequence[Any], where: str) -> list[str]:
    if len(real) != len(modelled):
        return [f"{where}: {real!r}, in the model {modelled!r}"]
    found = []
    for index, (one, other) in enumerate(zip(real, modelled, strict=True)):
        place = f"{where}[{index}]"
        if isinstance(one, dict) and isinstance(other, dict):
            found += _of_objects(one, other, place, is_loose=True)
        else:
            found += differences(one, other, where=place)
    return found


def _shown(response: tuple[int, Any]) -> str:
    code, body = response
    return f"{code} {body.get('message', '') if isinstance(body, dict) else body}"


def compared(real: Run, modelled: Run, steps: Sequence[Step]) -> list[str]:
    """Return all differences between two runs of the same steps, a line each."""
    found = []
    pairs = zip(steps, real.responses, modelled.responses, strict=True)
    for index, (step, one, other) in enumerate(pairs):
        where = f"step {index} ({step.method} {step.path})"
        if one[0] != other[0]:
            found.append(f"{where}: {_shown(one)}, in the model {_shown(other)}")
        else:
            found += differences(one[1], other[1], where=where)
    if len(real.events) != len(modelled.events):
        found.append(f"{len(real.events)} events, in the model {len(modelled.events)}")
    for index, (one, other) in enumerate(zip(real.events, modelled.events, strict=False)):
        found += differences(list(one), list(other), where=f"event {index}")
    return found
