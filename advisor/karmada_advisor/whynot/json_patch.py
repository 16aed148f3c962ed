"""Sets of edits as operations on objects (RFC 6902), in the order in which they are applied, and the objects after them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.framework.edits import Edit, ObjectRef, PatchAction, Path, found_at
from karmada_scheduler.structs import Struct

_ORDER: Final = {PatchAction.SET: 0, PatchAction.APPEND: 1, PatchAction.REMOVE: 2}


def compatible(one: Edit, other: Edit) -> bool:
    """Return whether two edits can be in one set: neither changes what the other one is based on."""
    (first, path), (second, other_path) = one.slot, other.slot
    if first != second:
        return True
    if path == other_path:
        return one.action is other.action is PatchAction.APPEND and one.identity != other.identity
    shorter, longer = sorted((path, other_path), key=len)
    return longer[: len(shorter)] != shorter


def ordered(edits: Iterable[Edit]) -> list[Edit]:
    """Return edits in the order in which they are applied."""

    def key(each: Edit) -> tuple[Any, ...]:
        indexes = tuple(-part if isinstance(part, int) else 0 for part in each.path)
        names = tuple(str(part) for part in each.path if not isinstance(part, int))
        return _ORDER[each.action], each.target, -len(each.path), names, indexes, each.identity

    return sorted(edits, key=key)


Operation = dict[str, Any]
"""One operation of RFC 6902: ``op``, ``path``, and ``value`` except for remove."""


def operation(change: Edit, manifest: Manifest) -> Operation | None:
    """Return the operation of an edit on an object; None if the object does not have what it removes."""
    if change.action is PatchAction.REMOVE:
        is_there = found_at(manifest, change.path, _MISSING) is not _MISSING
        return {"op": "remove", "path": pointer(change.path)} if is_there else None
    if change.action is PatchAction.APPEND:
        found = found_at(manifest, change.path)
        if isinstance(found, list):
            return {"op": "add", "path": f"{pointer(change.path)}/-", "value": change.value}
        return _set(manifest, change.path, [change.value])
    return _set(manifest, change.path, change.value)


def _set(manifest: Manifest, path: Path, value: Any) -> Operation | None:
    """Return the operation that sets a value; missing objects on the way to it are part of the value."""
    current: Any = manifest
    for depth, part in enumerate(path):
        if isinstance(part, int):
            if not isinstance(current, list) or part >= len(current):
                return None
            current = current[part]
        elif isinstance(current, dict) and current.get(part) is not None:
            current = current[part]
        elif isinstance(current, dict):
            for inner in reversed(path[depth + 1 :]):
                if isinstance(inner, int):
                    return None
                value = {inner: value}
            return {"op": "add", "path": pointer(path[: depth + 1]), "value": value}
        else:
            return None
    return {"op": "replace", "path": pointer(path), "value": value}


def pointer(path: Path) -> str:
    """Return a path as a JSON pointer (RFC 6901)."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


_MISSING: Final = object()


class Patched(Struct, frozen=True):
    """Objects after a set of edits.

    Attributes:
        manifests: The changed objects.
        operations: The operation of each edit, in the order in which they were applied.
    """

    manifests: Mapping[ObjectRef, Manifest]
    operations: Sequence[tuple[Edit, Operation]]


def patched(edits: Iterable[Edit], manifests: Mapping[ObjectRef, Manifest]) -> Patched | None:
    """Apply edits to objects; None if one of them cannot be applied.

    Args:
        edits: A set of compatible edits.
        manifests: The objects as they were read; they are not changed.
    """
    changed: dict[ObjectRef, Any] = {}
    operations = []
    for edit in ordered(edits):
        manifest = changed.get(edit.target)
        if manifest is None:
            if edit.target not in manifests:
                return None
            manifest = manifests[edit.target]
        found = operation(edit, manifest)
        if found is None:
            return None
        changed[edit.target] = _applied(found, manifest, list(_parts(found["path"])))
        operations.append((edit, found))
    return Patched(changed, operations)


def _applied(found: Operation, value: Any, parts: Sequence[str]) -> Any:
    """Return an object after an operation whose path exists; only what is on the path is copied."""
    changed: Any = list(value) if isinstance(value, list) else dict(value)
    part: Any = parts[0]
    if isinstance(changed, list) and part != "-":
        part = int(part)
    if len(parts) > 1:
        changed[part] = _applied(found, changed[part], parts[1:])
    elif found["op"] == "remove":
        del changed[part]
    elif part == "-":
        changed.append(found["value"])
    else:
        changed[part] = found["value"]
    return changed


def _parts(path: str) -> Iterator[str]:
    for part in path.split("/")[1:]:
        yield part.replace("~1", "/").replace("~0", "~")
