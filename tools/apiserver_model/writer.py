"""The writes of requests: checks, webhooks, and what is stored in the end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import orjson

from karmada_pyscheduler.client.http_connection import Response
from tools.apiserver_model import messages, objects, raw_objects
from tools.apiserver_model.kinds import BY_NAME, Key, Kind, Object, Target
from tools.apiserver_model.merge_patch import merged
from tools.apiserver_model.messages import RefusedError
from tools.apiserver_model.requests import Request
from tools.apiserver_model.store import Author, Store

MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"

Admission = Callable[[str, str, Object | None, Object | None, str], Object | Response | None]
"""A webhook. It gets the name of the kind, the verb (``create``, ``update`` or ``delete``), the object before (None for a
creation), the object that would be stored (None for a deletion), and the user. It returns the object to store, a Response
that refuses the request, or None for no objection. It must not change its arguments."""

_NAMESPACE: Final = BY_NAME["Namespace"]


def decoded_body(request: Request) -> Any:
    """Return the body of a request; refuses what is not JSON."""
    try:
        return orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise messages.bad_request(f"the body of the request is not JSON: {error}") from None


class Writer:
    """Writes to a store.

    Attributes:
        admission: See ``ApiServerModel``.
        requires_namespaces: See ``ApiServerModel``.
    """

    def __init__(self, store: Store, now: Callable[[], datetime], new_uid: Callable[[], str]) -> None:
        """Write to a store, with times and uids from outside."""
        self.admission: list[Admission] = []
        self.requires_namespaces = False
        self._store = store
        self._now = now
        self._new_uid = new_uid
        self._generated_names = 0

    def create(self, request: Request, target: Target) -> Response:
        """Process a POST to a collection."""
        kind = target.kind
        body = objects.checked_body(kind, decoded_body(request), target.namespace, "")
        metadata = body["metadata"]
        name = metadata.get("name") or metadata.get("generateName") or "Unknown"
        self._check_namespace(kind, (target.namespace, name))
        if metadata.get("resourceVersion"):
            raise messages.refusal(500, "", "resourceVersion should not be set on objects to be created")
        if not metadata.get("name"):
            if not metadata.get("generateName"):
                detail = "name or generateName is required"
                raise messages.invalid(kind, "", "metadata.name", detail, code="Required value")
            self._generated_names += 1
            metadata["name"] = objects.generated_name(metadata["generateName"], self._generated_names)
        return messages.ok(self._add(request, kind, (target.namespace, metadata["name"]), body), 201)

    def replace(self, request: Request, target: Target) -> Response:
        """Process a PUT of an object or its status."""
        kind, key = target.kind, target.key
        body = objects.checked_body(kind, decoded_body(request), target.namespace, target.name)
        before = self._store.get(kind, key)
        if before is None:
            if not kind.creates_on_update or target.subresource:
                raise messages.not_found(kind, target.name)
            if uid := body["metadata"].get("uid"):
                raise messages.uid_conflict(kind, key, uid, "")
            return messages.ok(self._add(request, kind, key, body), 201)
        old = raw_objects.decoded(before)
        uid = body["metadata"].get("uid")
        if uid and uid != old["metadata"].get("uid"):
            raise messages.uid_conflict(kind, key, uid, old["metadata"].get("uid"))
        _check_version(kind, key[1], old, body["metadata"].get("resourceVersion"))
        new = objects.updated(kind, old, body, is_status=bool(target.subresource))
        new = self._admitted(kind, "update", old, new, request.user)
        author = Author(request.user, target.subresource, request)
        return messages.ok(self.store_update(kind, key, old, new, author))

    def patch(self, request: Request, target: Target) -> Response:
        """Process a PATCH of an object or its status."""
        _check_patch_type(target.kind, request.content_type)
        if self._store.get(target.kind, target.key) is None:
            raise messages.not_found(target.kind, target.name)
        author = Author(request.user, target.subresource, request)
        patch = decoded_body(request)
        return messages.ok(self.store_patch(target, patch, author, is_admitted=not self.admission))

    def delete(self, request: Request, target: Target) -> Response:
        """Process a DELETE of an object."""
        kind, key = target.kind, target.key
        before = self._store.get(kind, key)
        if before is None:
            raise messages.not_found(kind, target.name)
        options = decoded_body(request) if request.body else {}
        metadata = raw_objects.metadata_of(before)
        messages.check_preconditions(kind, key[1], options.get("preconditions") or {}, metadata)
        if self.admission:
            self._admitted(kind, "delete", raw_objects.decoded(before), None, request.user)
        left = self.store_deletion(kind, key, Author(request.user, "", request))
        if kind.returns_deleted or "deletionTimestamp" in raw_objects.metadata_of(left):
            return messages.ok(left)
        return messages.ok(orjson.dumps(messages.success(kind, key[1], metadata["uid"])))

    def _add(self, request: Request, kind: Kind, key: Key, body: Object) -> bytes:
        self._check_namespace(kind, key)
        there = self._store.get(kind, key)
        if there is not None:
            is_deleting = "deletionTimestamp" in raw_objects.metadata_of(there)
            raise messages.already_exists(kind, key[1], is_deleting=is_deleting)
        new = objects.created(kind, body, uid=self._new_uid(), moment=self._now())
        new = self._admitted(kind, "create", None, new, request.user)
        return self._store.put(kind, key, new, Author(request.user, "", request))

    def _check_namespace(self, kind: Kind, key: Key) -> None:
        if not kind.namespaced:
            return
        raw = self._store.get(_NAMESPACE, ("", key[0]))
        if raw is None:
            if self.requires_namespaces:
                raise messages.not_found(_NAMESPACE, key[0])
        elif "deletionTimestamp" in raw_objects.metadata_of(raw):
            raise messages.namespace_terminating(kind, key)

    def _admitted(self, kind: Kind, verb: str, before: Object | None, after: Object | None, user: str) -> Any:
        for hook in self.admission:
            reviewed = hook(kind.name, verb, before, after, user)
            if isinstance(reviewed, Response):
                raise RefusedError(reviewed)
            if reviewed is not None and after is not None:
                after = reviewed
        return after

    def store_patch(self, target: Target, patch: Any, author: Author, *, is_admitted: bool = True) -> bytes:
        """Merge a patch into a stored object and return the result; webhooks are called unless ``is_admitted``."""
        kind, key = target.kind, target.key
        if not isinstance(patch, dict):
            raise messages.bad_request("the patch is not an object")
        before = self._store.collection(kind).objects[key]
        old = raw_objects.readable(before)
        if old is None:
            after = raw_objects.patched(kind, key, before, patch, self._store.revision + 1)
            return self._store.put_encoded(kind, key, after, author)
        body = merged(old, patch)
        objects.check_identity(kind, body.get("metadata") or {}, key)
        _check_version(kind, key[1], old, body["metadata"].get("resourceVersion"))
        new = objects.updated(kind, old, body, is_status=bool(target.subresource))
        if not is_admitted:
            new = self._admitted(kind, "update", old, new, author.user)
        return self.store_update(kind, key, old, new, author)

    def store_update(self, kind: Kind, key: Key, old: Object, new: Object, author: Author) -> bytes:
        """Store a new state and return it.

        Nothing is stored if nothing changes. An object that is being deleted goes with its last finalizer.
        """
        if objects.is_finished(new):
            self.remove(kind, key, author)
            return orjson.dumps(new)
        if objects.same(old, new):
            return self._store.collection(kind).objects[key]
        return self._store.put(kind, key, new, author)

    def store_deletion(self, kind: Kind, key: Key, author: Author) -> bytes:
        """Delete an object and return its last state.

        One with finalizers waits for them, and a Namespace for its objects: they stay, with a ``deletionTimestamp``.
        """
        before = self._store.collection(kind).objects[key]
        if kind is not _NAMESPACE and not raw_objects.metadata_of(before).get("finalizers"):
            return self.remove(kind, key, author)
        old = raw_objects.decoded(before)
        new = objects.marked_deleting(kind, old, self._now())
        if kind is _NAMESPACE:
            new = {**new, "status": {**(new.get("status") or {}), "phase": "Terminating"}}
        return before if objects.same(old, new) else self._store.put(kind, key, new, author)

    def remove(self, kind: Kind, key: Key, author: Author) -> bytes:
        """Remove an object, finalizers or not, and return its last state."""
        before = self._store.collection(kind).objects[key]
        shown = raw_objects.with_version(before, self._store.revision + 1)
        return self._store.remove(kind, key, shown, author)

    def put(self, manifest: Object, author: Author) -> bytes:
        """Create or replace an object with its status and return it; see ``ApiServerModel.put``."""
        kind = BY_NAME[manifest["kind"]]
        metadata = manifest["metadata"]
        key = kind.key(metadata.get("namespace") or "", metadata["name"])
        body = objects.checked_body(kind, manifest, *key)
        before = self._store.get(kind, key)
        old = {"metadata": {}} if before is None else raw_objects.decoded(before)
        is_new = "uid" not in old["metadata"]  # so is one in the place of a text that is no object
        if is_new:
            new = objects.created(kind, body, uid=metadata.get("uid") or self._new_uid(), moment=self._now())
        else:
            body["metadata"].pop("uid", None)
            new = objects.updated(kind, old, body, is_status=False)
        if "status" in body:
            new["status"] = body["status"]
        if is_new:
            return self._store.put(kind, key, new, author)
        return self.store_update(kind, key, old, new, author)

    def put_raw(self, manifest: bytes, author: Author) -> None:
        """Create or replace an object by its text; see ``raw_objects.placed``."""
        kind, key, raw = raw_objects.placed(manifest, self._new_uid, self._store.revision + 1)
        self._store.put_encoded(kind, key, raw, author)


def _check_version(kind: Kind, name: str, old: Object, given: Any) -> None:
    if not given:
        if not kind.unconditional:
            raise messages.version_required(kind, name)
    elif given != old["metadata"]["resourceVersion"]:
        raise messages.conflict(kind, name)


def _check_patch_type(kind: Kind, content_type: str) -> None:
    given = content_type.partition(";")[0]
    if given and given != MERGE_PATCH and (kind.is_custom or given != STRATEGIC_MERGE_PATCH):
        strategic = () if kind.is_custom else (STRATEGIC_MERGE_PATCH,)
        accepted = ("application/json-patch+json", MERGE_PATCH, *strategic, "application/apply-patch+yaml")
        raise messages.unsupported_media_type(accepted)
