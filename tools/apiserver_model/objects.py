"""What an API server makes of an object before it stores it.

All functions return new objects; the old ones are shared, not changed.

Source: k8s.io/apiserver 0.35.3 pkg/registry/rest and pkg/registry/generic/registry/store.go, and the strategies that
``kinds`` names. Not modelled: ``managedFields``, schemas (validation, defaults, pruning), and dry runs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import orjson

from tools.apiserver_model import messages
from tools.apiserver_model.kinds import Key, Kind, Object

_EMPTY_IS_ABSENT: Final = ("labels", "annotations", "finalizers", "ownerReferences")
_SUFFIX: Final = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of generated names."""


def time_text(moment: datetime) -> str:
    """Return a time as ``metadata`` has it, in whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; unlike ``==``, 1, 1.0 and true are not."""
    if one is other:
        return True
    if one != other:
        return False
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(other, option=orjson.OPT_SORT_KEYS)


def generated_name(prefix: str, number: int) -> str:
    """Return a name for ``generateName``; the number makes it unique."""
    letters = ""
    for _ in range(5):
        number, place = divmod(number, len(_SUFFIX))
        letters = _SUFFIX[place] + letters
    return prefix + letters


def checked_body(kind: Kind, body: Any, namespace: str, name: str) -> Object:
    """Return the body of a POST or PUT with its metadata complete; refuses one that is another object.

    Args:
        kind: The kind of the path.
        body: The decoded body.
        namespace: Of the path.
        name: Of the path; "" for POST.
    """
    if not isinstance(body, dict):
        raise messages.bad_request("the body of the request is not an object")
    api_version, named = body.get("apiVersion") or kind.api_version, body.get("kind") or kind.name
    if (api_version, named) != (kind.api_version, kind.name):
        raise messages.bad_request(
            f"the object provided is unrecognized: {named} in version {api_version} does not match the expected {kind.name}"
        )
    metadata = {**(body.get("metadata") or {})}
    if not kind.namespaced:
        metadata.pop("namespace", None)
    elif not metadata.get("namespace"):
        metadata["namespace"] = namespace
    check_identity(kind, metadata, (namespace, name))
    return {"apiVersion": kind.api_version, "kind": kind.name, **body, "metadata": metadata}


def check_identity(kind: Kind, metadata: Object, key: Key) -> None:
    """Refuse metadata of another object than that of the path; the key of a collection has no name."""
    namespace, name = key
    given = metadata.get("name") or ""
    if name and not given:
        problem = "was undeterminable: name must be provided"
        raise messages.bad_request(f"the name of the object ({name} based on URL) {problem}")
    if name and given != name:
        problem = f"does not match the name on the URL ({name})"
        raise messages.bad_request(f"the name of the object ({given}) {problem}")
    if kind.namespaced and (metadata.get("namespace") or namespace) != namespace:
        problem = "does not match the namespace sent on the request"
        raise messages.bad_request(f"the namespace of the provided object {problem}")


def created(kind: Kind, body: Object, *, uid: str, moment: datetime) -> Object:
    """Return an object as it is created; ``body`` has its name."""
    metadata = _tidy(body["metadata"])
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        metadata.pop(name, None)
    metadata["uid"] = uid
    metadata["creationTimestamp"] = time_text(moment)
    if kind.generation != "none":
        metadata["generation"] = 1
    found = {**body, "metadata": metadata}
    if kind.has_status and kind.name != "CustomResourceDefinition":
        found.pop("status", None)
    if kind.name == "Namespace":
        found["spec"] = {"finalizers": ["kubernetes"]}
        found["status"] = {"phase": "Active"}
        metadata.setdefault("labels", {})
        metadata["labels"] = {**metadata["labels"], "kubernetes.io/metadata.name": metadata["name"]}
    return found


def updated(kind: Kind, old: Object, new: Object, *, is_status: bool) -> Object:
    """Return an object as it is after an update of the object, or of its status.

    The caller has compared the resourceVersions. ``metadata.resourceVersion`` of the result is that of ``old``.
    """
    before = old["metadata"]
    metadata = _tidy(new["metadata"])
    if not (is_status and kind.status_writes == "status"):
        _check_metadata(kind, before, metadata)
    _keep("namespace", before, metadata)
    for name in ("uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp"):
        _keep(name, before, metadata)
    if "deletionGracePeriodSeconds" in before:
        _keep("deletionGracePeriodSeconds", before, metadata)
    found = {**new, "metadata": metadata}
    if is_status:
        return _with_status(kind, old, found)
    if kind.has_status:
        _keep("status", old, found)
    if kind.generation != "none" and not same(_counted(kind, old), _counted(kind, found)):
        metadata["generation"] = before.get("generation", 0) + 1
    return found


def _with_status(kind: Kind, old: Object, new: Object) -> Object:
    if kind.status_writes == "everything":
        return new
    if kind.status_writes == "status":
        found = dict(old)
    else:
        found = {**new, "metadata": {**new["metadata"]}}
        _keep("labels", old["metadata"], found["metadata"])
        _keep("spec", old, found)
    _keep("status", new, found)
    return found


def _keep(name: str, source: Object, target: Object) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _counted(kind: Kind, found: Object) -> Any:
    """Return the part of an object whose changes the generation counts."""
    if kind.generation == "spec":
        return found.get("spec")
    if kind.generation == "annotations":
        return found.get("spec"), found["metadata"].get("annotations")
    ignored = ("apiVersion", "kind", "metadata", "status" if kind.has_status else "")
    return {name: value for name, value in found.items() if name not in ignored}


def _check_metadata(kind: Kind, before: Object, metadata: Object) -> None:
    name = before["name"]
    uid = metadata.get("uid")
    if uid and uid != before.get("uid"):
        raise messages.invalid(kind, name, "metadata.uid", "field is immutable", value=uid)
    if "deletionTimestamp" in before:
        known = before.get("finalizers") or ()
        added = [each for each in metadata.get("finalizers") or () if each not in known]
        if added:
            shown = ", ".join(orjson.dumps(each).decode() for each in added)
            problem = "no new finalizers can be added if the object is being deleted"
            detail = f"{problem}, found new finalizers []string{{{shown}}}"
            raise messages.invalid(kind, name, "metadata.finalizers", detail, code="Forbidden")


def _tidy(metadata: Object) -> Object:
    """Return a copy without nulls and empty maps and lists, which a server does not store."""
    return {
        name: value
        for name, value in metadata.items()
        if value is not None and name != "managedFields" and not (name in _EMPTY_IS_ABSENT and not value)
    }


def marked_deleting(kind: Kind, found: Object, moment: datetime) -> Object:
    """Return an object that waits for its finalizers; ``found`` itself if it does already."""
    metadata = found["metadata"]
    if "deletionTimestamp" in metadata:
        return found
    metadata = {**metadata, "deletionTimestamp": time_text(moment)}
    if kind.name != "Namespace":
        metadata["deletionGracePeriodSeconds"] = 0
    if metadata.get("generation"):
        metadata["generation"] += 1
    return {**found, "metadata": metadata}


def is_finished(found: Object) -> bool:
    """Return whether an object that is being deleted has lost its last finalizer."""
    metadata = found["metadata"]
    return "deletionTimestamp" in metadata and not metadata.get("finalizers")


def name_of(key: Key) -> str:
    """Return a key for messages of the model."""
    return f"{key[0]}/{key[1]}" if key[0] else key[1]
