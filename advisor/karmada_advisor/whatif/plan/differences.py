"""What differs between two versions of an object, field by field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from karmada_advisor.state.stored import part, text_of
from karmada_advisor.whatif.plan.objects import FieldChange, Manifest
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.policy import ID_LABELS

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
    if not all(isinstance(each, Mapping) for each in (*old, *new)):
        yield from (FieldChange(path, each, None) for each in _without(old, new))
        yield from (FieldChange(path, None, each) for each in _without(new, old))
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
    for each in items:
        if each in left:
            left.remove(each)
        else:
            found.append(each)
    return found


def _order(path: str, items: list[Any]) -> list[Any]:
    """Return a list by the names of its items, to show that only their order differs."""
    names = _names(path.rpartition(".")[2], items, items)
    return [_name_of(each, names) or each for each in items]


def _names(field: str, *lists: list[Any]) -> tuple[str, ...]:
    """Return the fields that name the items of a list; empty if they do not name each of them alone."""
    names = _NAMED_BY.get(field, ())
    for items in lists:
        found = [_name_of(each, names) for each in items]
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
