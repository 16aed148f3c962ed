"""What ``kubectl apply`` stores of a manifest: the result of its merge with the stored object, on either side.

Source: k8s.io/apimachinery v0.35.3 pkg/util/jsonmergepatch (client), sigs.k8s.io/structured-merge-diff v6.3.2 (server), and
kubectl 1.32, which takes the fields of its client side over to the server side.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from karmada_advisor.state.stored import mapping, mappings, part
from karmada_advisor.whatif.plan.objects import Manifest, patched
from karmada_scheduler.api.workload import LAST_APPLIED_ANNOTATION

SERVER: Final = "server"
_OF_KUBECTL: Final = "kubectl-client-side-apply"
_TEXTS: Final = ("labels", "annotations")


class ApplyResult(NamedTuple):
    """An object after an apply.

    Attributes:
        content: All but its status, and of its metadata the labels and annotations.
        conflicts: ``manager: field`` of what a server-side apply refuses without --force-conflicts, with which it is made.
    """

    content: dict[str, Any]
    conflicts: tuple[str, ...] = ()


def applied(old: Manifest, manifest: Manifest, side: str) -> ApplyResult:
    """Return an object after the apply of a manifest.

    Of an object that no API server has stored, or without the managers of its fields, the manifest is taken to have been
    applied before: fields that it leaves out are removed.

    Args:
        old: The stored object.
        manifest: As somebody writes it, without defaults; null is no value.
        side: ``SERVER``, or any other for the client's.
    """
    live, wanted = _content(old), _content(manifest)
    wanted["metadata"]["annotations"].pop(LAST_APPLIED_ANNOTATION, None)
    all_but_texts = {**live, "metadata": {}}
    managers = part(old, "metadata").get("managedFields")
    listed = [each for each in mappings(managers) if "fieldsV1" in each and not each.get("subresource")]
    if side != SERVER:
        is_stored = "resourceVersion" in part(old, "metadata") and (managers is None or listed)
        last = _last_applied(live)
        return ApplyResult(_client_side(live, last or ({} if is_stored else all_but_texts), wanted))
    if not listed:
        return ApplyResult(_server_side(live, _fields(all_but_texts), {}, wanted))
    others = [each for each in listed if each.get("operation") != "Apply"]
    rest = [each for each in others if each.get("manager") != _OF_KUBECTL]
    mine = [each for each in listed if each not in rest]
    conflicts = (
        f"{each.get('manager')}: {path}"
        for each in others
        for path in _conflicts(live, part(each, "fieldsV1"), wanted)
    )
    return ApplyResult(_server_side(live, _union(mine), _union(rest), wanted), tuple(conflicts))


def _content(manifest: Manifest) -> dict[str, Any]:
    content = {name: value for name, value in manifest.items() if name != "status"}
    texts = {name: {**part(manifest, "metadata", name)} for name in _TEXTS}
    return {**content, "metadata": texts}


def _last_applied(live: Manifest) -> Manifest:
    with suppress(ValueError, RecursionError):
        return mapping(json.loads(str(part(live, "metadata", "annotations").get(LAST_APPLIED_ANNOTATION))))
    return {}


def _client_side(live: Manifest, last: Manifest, wanted: Manifest) -> dict[str, Any]:
    """Return fields after a merge patch of what differs: null removes, and so does leaving out what was applied."""
    found = {name: value for name, value in live.items() if name in wanted or name not in last}
    for name, value in wanted.items():
        if isinstance(value, Mapping):
            found[name] = _client_side(mapping(live.get(name)), mapping(last.get(name)), value)
        elif value is not None:
            found[name] = value
        elif last.get(name, "") is not None:
            found.pop(name, None)
    return found


def _server_side(live: Manifest, mine: Manifest, theirs: Manifest, wanted: Manifest) -> dict[str, Any]:
    """Return fields after an apply of their manager.

    What it leaves out is removed if nobody else has it. A struct that it sets to null loses its fields likewise, and stays.

    Args:
        live: As they are.
        mine: The fields of the manager, as ``fieldsV1`` has them: ``{}`` for one that is replaced as a whole.
        theirs: Those of others.
        wanted: The manifest.
    """
    found: dict[str, Any] = {}
    for name in dict.fromkeys([*live, *wanted]):
        value, wants = live.get(name), wanted.get(name)
        own, others = mine.get(f"f:{name}"), theirs.get(f"f:{name}")
        is_struct = isinstance(value, Mapping) and not (value and {} in (own, others))
        if isinstance(wants, Mapping) and (is_struct or value is None):
            found[name] = _server_side(mapping(value), mapping(own), mapping(others), wants)
        elif wants is not None:
            found[name] = wants
        elif is_struct:
            left = _server_side(mapping(value), mapping(own), mapping(others), {})
            if left or name in wanted or own is None:
                found[name] = left
        elif name in live and name not in wanted and (own is None or others is not None):
            found[name] = value
    return found


def _fields(value: Manifest) -> dict[str, Any]:
    """Return all fields in the form of ``fieldsV1``."""
    return {f"f:{name}": _fields(each) if isinstance(each, Mapping) else {} for name, each in value.items()}


def _union(managers: Iterable[Manifest]) -> Manifest:
    found: Manifest = {}
    for each in managers:
        found = patched(found, part(each, "fieldsV1"))
    return found


def _conflicts(live: Manifest, theirs: Manifest, wanted: Manifest, path: str = "") -> Iterator[str]:
    """Yield the fields of another manager for which the manifest has another value."""
    for name, wants in wanted.items():
        others, where = theirs.get(f"f:{name}"), f"{path}.{name}" if path else name
        if others and isinstance(wants, Mapping):
            yield from _conflicts(mapping(live.get(name)), others, wants, where)
        elif others is not None and not (others and wants is None) and wants != live.get(name):
            yield where
