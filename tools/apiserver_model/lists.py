"""Lists: pages that are consistent at the revision of the first one, and continue tokens.

Source: k8s.io/apiserver 0.35.3 pkg/storage/continue.go, and "Resource versions" in Kubernetes' API concepts.
"""

from __future__ import annotations

import base64
import binascii
import bisect
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import orjson

from karmada_pyscheduler.client.http_connection import Response
from tools.apiserver_model import messages
from tools.apiserver_model.kinds import Kind, Target
from tools.apiserver_model.raw_objects import metadata_only
from tools.apiserver_model.requests import Request
from tools.apiserver_model.store import Collection, State, ordered, position

_NEWEST = -1
"""The revision in the token of an expired list: the list goes on in the newest state."""


class Page(NamedTuple):
    """A page of a list.

    Attributes:
        kind: Of the objects.
        revision: The list's resourceVersion.
        items: The objects.
        token: To continue with, "" at the end.
        remaining: The number of objects that follow.
    """

    kind: Kind
    revision: int
    items: Sequence[bytes]
    token: str = ""
    remaining: int = 0


def page(collection: Collection, revision: int, target: Target, request: Request) -> Page:
    """Return the page that a request asks for.

    Args:
        collection: The collection.
        revision: The newest revision.
        target: The path.
        request: Its ``limit``, ``continue``, ``resourceVersion`` and ``resourceVersionMatch`` are used.
    """
    query = request.query
    refuse_selectors(request, kind=target.kind.name)
    limit = _number(query.get("limit") or "0", "limit")
    if selector := query.get("fieldSelector"):
        found = whole(target, revision, collection.objects)
        return found._replace(items=[each for each in found.items if _is_selected(each, selector)])
    if token := query.get("continue"):
        return _continued(collection, revision, target, token, limit)
    asked = query.get("resourceVersion") or ""
    if asked == "0":
        return whole(target, revision, collection.objects)
    wanted = version_number(asked or "0", of_list=True)
    if wanted > revision:
        raise messages.too_large_version(wanted, revision)
    if not asked or not is_exact(request):
        return _cut(collection, revision, target, "", limit)
    if wanted < collection.oldest:
        raise messages.expired_list()
    return _cut(collection, wanted, target, "", limit)


def is_exact(request: Request) -> bool:
    """Return whether a list with a resourceVersion other than 0 has to be of that one, not of a newer one."""
    match = request.query.get("resourceVersionMatch")
    return match == "Exact" or (not match and bool(request.query.get("limit")))


def whole(target: Target, revision: int, state: State) -> Page:
    """Return a list of a state in one page, whatever its limit, as a watch cache does."""
    keys = ordered(key for key in state if not target.namespace or key[0] == target.namespace)
    return Page(target.kind, revision, [state[key] for key in keys])


def _continued(collection: Collection, revision: int, target: Target, token: str, limit: int) -> Page:
    at, start = _token_parts(token)
    if at == _NEWEST:
        at = revision
    elif at > revision:
        raise messages.too_large_version(at, revision)
    elif at < collection.oldest:
        raise messages.expired_token(_token(_NEWEST, start))
    return _cut(collection, at, target, start, limit)


def _cut(collection: Collection, at: int, target: Target, start: str, limit: int) -> Page:
    state = collection.at(at)
    keys = collection.order() if state is collection.objects else ordered(state)
    if target.namespace:
        keys = [key for key in keys if key[0] == target.namespace]
    if start:
        keys = keys[bisect.bisect_left(keys, start, key=position) :]
    if not limit or len(keys) <= limit:
        return Page(collection.kind, at, [state[key] for key in keys])
    shown, remaining = keys[:limit], len(keys) - limit
    token = _token(at, position(shown[-1]) + "\0")
    return Page(collection.kind, at, [state[key] for key in shown], token, remaining)


def _token(revision: int, start: str) -> str:
    text = orjson.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start})
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def _token_parts(token: str) -> tuple[int, str]:
    try:
        found = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(found["rv"]), str(found["start"])
    except (binascii.Error, orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise messages.bad_request("continue key is not valid: incorrect encoding") from None


def _number(text: str, name: str) -> int:
    if not text.isdecimal():
        raise messages.bad_request(f"Invalid value: {text!r}: {name} has to be a number")
    return int(text)


def version_number(text: str, *, of_list: bool = False) -> int:
    """Return a resourceVersion of a query; refuses what is not a number."""
    if text.isdecimal():
        return int(text)
    problem = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
    if of_list:
        raise messages.bad_request(f"invalid resource version: {problem}")
    raise messages.refusal(500, "", problem)


def check_version(request: Request, target: Target, revision: int) -> None:
    """Refuse a read at a revision that is not there yet, or at a text that is none."""
    # kube-apiserver has no watch cache of Events, and reads one as it reads lists.
    of_list = not target.name or target.kind.name == "Event"
    asked = version_number(request.query.get("resourceVersion") or "0", of_list=of_list)
    if asked > revision:
        raise messages.too_large_version(asked, revision)


def _is_selected(event: bytes, selector: str) -> bool:
    """Return whether an Event has the values of a field selector; those of a list are in one page here."""
    found = orjson.loads(event)
    values = {
        "source": (found.get("source") or {}).get("component") or found.get("reportingComponent") or "",
        "involvedObject.uid": (found.get("involvedObject") or {}).get("uid") or "",
        "type": found.get("type") or "",
    }
    terms = [each.partition("=") for each in selector.split(",")]
    return all(name in values and values[name] == value for name, _, value in terms)


def refuse_selectors(request: Request, *, kind: str = "") -> None:
    """Refuse selectors that the model does not have, so that nobody takes all objects for the selected ones.

    Lists of Events have field selectors.
    """
    for name in ("labelSelector", "fieldSelector"):
        if request.query.get(name) and (kind, name) != ("Event", "fieldSelector"):
            raise messages.refusal(501, "NotImplemented", f"the model of the API server has no {name}")


def response(found: Page, *, as_metadata: bool) -> Response:
    """Return a page as JSON, or its metadata as a PartialObjectMetadataList."""
    kind = found.kind
    api_version, name = (
        ("meta.k8s.io/v1", "PartialObjectMetadataList")
        if as_metadata
        else (kind.api_version, f"{kind.name}List")
    )
    metadata: dict[str, str | int] = {"resourceVersion": str(found.revision)}
    if found.token:
        metadata |= {"continue": found.token, "remainingItemCount": found.remaining}
    head = orjson.dumps({"kind": name, "apiVersion": api_version, "metadata": metadata})
    items = map(metadata_only, found.items) if as_metadata else _without_type(kind, found.items)
    return messages.ok(head[:-1] + b',"items":[' + b",".join(items) + b"]}")


def _without_type(kind: Kind, items: Iterable[bytes]) -> Iterable[bytes]:
    """Return items as lists have them: only those of custom resources have ``apiVersion`` and ``kind``."""
    if kind.is_custom:
        return items
    prefix = orjson.dumps({"apiVersion": kind.api_version, "kind": kind.name})[:-1] + b","
    return (b"{" + item.removeprefix(prefix) if item.startswith(prefix) else item for item in items)
