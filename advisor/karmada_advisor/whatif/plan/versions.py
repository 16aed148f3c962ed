"""Two versions of an object: what ``kubectl apply`` stores of a manifest, on either side, and what differs, field by field.

Source: k8s.io/apimachinery v0.35.3 pkg/util/jsonmergepatch (client), sigs.k8s.io/structured-merge-diff v6.3.2 (server), and
kubectl 1.32, which takes the fields of its client side over to the server side.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from karmada_advisor.state.stored import mapping, mappings, part, text_of
from karmada_advisor.whatif.plan.objects import FieldChange, Manifest, patched
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.policy import ID_LABELS
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
    listed = [entry for entry in mappings(managers) if "fieldsV1" in entry and not entry.get("subresource")]
    if side != SERVER:
        is_stored = "resourceVersion" in part(old, "metadata") and (managers is None or listed)
        last = _last_applied(live)
        return ApplyResult(_client_side(live, last or ({} if is_stored else all_but_texts), wanted))
    if not listed:
        return ApplyResult(_server_side(live, _fields(all_but_texts), {}, wanted))
    others = [entry for entry in listed if entry.get("operation") != "Apply"]
    rest = [entry for entry in others if entry.get("manager") != _OF_KUBECTL]
    mine = [entry for entry in listed if entry not in rest]
    conflicts = (
        f"{entry.get('manager')}: {path}"
        for entry in others
        for path in _conflicts(live, part(entry, "fieldsV1"), wanted)
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
    for manager in managers:
        found = patched(found, part(manager, "fieldsV1"))
    return found


def _conflicts(live: Manifest, theirs: Manifest, wanted: Manifest, path: str = "") -> Iterator[str]:
    """Yield the fields of another manager for which the manifest has another value."""
    for name, wants in wanted.items():
        others, where = theirs.get(f"f:{name}"), f"{path}.{name}" if path else name
        if others and isinstance(wants, Mapping):
            yield from _conflicts(mapping(live.get(name)), others, wants, where)
        elif others is not None and not (others and wants is None) and wants != live.get(name):
            yield where


_NAMED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "spreadConstraints": ("spreadByField", "spreadByLabel"),
    "conditions": ("type",),
    "apiEnablements": ("groupVersion",),
    **dict.fromkeys(("clusterAffinities", "overflowAffinities"), ("affinityName",)),
    **dict.fromkeys(("matchExpressions", "clusterTolerations", "tolerations", "taints"), ("key",)),
    **dict.fromkeys(("clusters", "components", "containers", "initContainers", "volumes", "env"), ("name",)),
}
"""By the name of a list, the fields of which the first that is set names an item."""

_LEAST_ALIKE: Final = 0.3
"""The share of equal fields from which two items without a name are versions of one."""


def changed_fields(old: Manifest, new: Manifest) -> list[FieldChange]:
    """Return what differs in two versions of an object, as far as placements depend on it.

    That is the spec, labels except those of policies, and the status of a Cluster.
    """
    kind = text_of(old, "kind")
    paths: list[tuple[str, ...]] = [("spec",)] if kind in ID_LABELS else [("spec",), ("metadata", "labels")]
    if kind == CLUSTER:
        paths.append(("status",))
    return [each for path in paths for each in _of_values(".".join(path), part(old, *path), part(new, *path))]


def _of_values(path: str, old: Any, new: Any) -> Iterator[FieldChange]:
    """Yield the differences of two values; None is an absent one."""
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            yield from _of_values(_inner(path, str(key)), old.get(key), new.get(key))
    elif _is_list(old) and _is_list(new):
        yield from _of_lists(path, list(old or ()), list(new or ()))
    else:
        yield FieldChange(path, old, new)


def _inner(path: str, key: str) -> str:
    """Return the path of a field; a key with dots, as labels have it, stands in brackets."""
    return f"{path}[{key}]" if "." in key or "/" in key else f"{path}.{key}"


def _is_list(value: Any) -> bool:
    return value is None or (isinstance(value, Sequence) and not isinstance(value, str))


def _of_lists(path: str, old: list[Any], new: list[Any]) -> Iterator[FieldChange]:
    """Yield the differences of two lists: items that changed, were added or removed, or another order."""
    if not all(isinstance(value, Mapping) for value in (*old, *new)):
        yield from (FieldChange(path, value, None) for value in _without(old, new))
        yield from (FieldChange(path, None, value) for value in _without(new, old))
    else:
        names = _names(path.rpartition(".")[2], old, new)
        for one, other in _paired(old, new, names):
            index = other if other is not None else one
            assert index is not None
            item = (new if other is not None else old)[index]
            yield from _of_values(
                f"{path}[{_name_of(item, names) or index}]",
                None if one is None else old[one],
                None if other is None else new[other],
            )
    if old != new and not _without(old, new) and not _without(new, old):
        yield FieldChange(path, _order(path, old), _order(path, new))


def _without(items: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """Return the items that others do not have, each as often as it is missing."""
    left = list(others)
    found = []
    for value in items:
        if value in left:
            left.remove(value)
        else:
            found.append(value)
    return found


def _order(path: str, items: list[Any]) -> list[Any]:
    """Return a list by the names of its items, to show that only their order differs."""
    names = _names(path.rpartition(".")[2], items, items)
    return [_name_of(value, names) or value for value in items]


def _names(field: str, *lists: list[Any]) -> tuple[str, ...]:
    """Return the fields that name the items of a list; empty if they do not name each of them alone."""
    names = _NAMED_BY.get(field, ())
    for items in lists:
        found = [_name_of(value, names) for value in items]
        if "" in found or len(set(found)) < len(found):
            return ()
    return names


def _name_of(item: Any, names: Iterable[str]) -> str:
    if not isinstance(item, Mapping):
        return ""
    return next((str(item[name]) for name in names if item.get(name)), "")


def _paired(
    old: list[Any], new: list[Any], names: tuple[str, ...]
) -> Iterator[tuple[int | None, int | None]]:
    """Yield the items of two lists as pairs, by their indexes; None where one of them does not have it.

    Pairs are equal items, those with one name, then the most alike ones.
    """
    left, right = list(range(len(old))), list(range(len(new)))
    pairs: dict[int, int] = {}

    def pair(one: int, other: int) -> None:
        pairs[other] = one
        left.remove(one)
        right.remove(other)

    for other in [*right]:
        found = [one for one in left if old[one] == new[other]]
        if found:
            pair(found[0], other)
    for other in [*right]:
        if names:
            found = [one for one in left if _name_of(old[one], names) == _name_of(new[other], names)]
        else:
            found = sorted(left, key=lambda one: (-_alike(old[one], new[other]), abs(one - other)))
            found = found if found and _alike(old[found[0]], new[other]) >= _LEAST_ALIKE else []
        if found:
            pair(found[0], other)
    yield from ((one, None) for one in left)
    yield from ((pairs.get(other), other) for other in range(len(new)))


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Return the share of the fields of two objects that are equal."""
    names = {*one, *other}
    return sum(one.get(name) == other.get(name) for name in names) / len(names) if names else 1.0
