"""Requests for objects: get, list, create, replace, patch, and discovery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import orjson

from .faults import Answer, status
from .kinds import BY_PLURAL, KINDS, Object, discovery
from .merge_patch import merge_patch
from .storage import Collection, Storage


class RestHandler:
    """Answers requests from a storage, whose lock the caller holds.

    Attributes:
        rules: The permissions that SelfSubjectRulesReviews report.
        raw_patches: The number of patches of objects that no decoder here accepts, by name.
    """

    def __init__(self, storage: Storage) -> None:
        """Answer from this storage."""
        self.rules: list[Object] = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        self.raw_patches: Counter[str] = Counter()
        self._storage = storage

    def answer(self, verb: str, parts: list[str], query: Mapping[str, str], body: Any) -> Answer:
        """Return the response to a request that is not a watch.

        Args:
            verb: The HTTP method, or ``LIST``.
            parts: The path.
            query: The query parameters.
            body: The decoded body.
        """
        if verb == "GET" and (discovered := discovery(parts)) is not None:
            return ok(discovered)
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = ""
        if len(rest) >= 3 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        if rest == ["selfsubjectrulesreviews"] and verb == "POST":
            return ok(
                {**body, "status": {"resourceRules": self.rules, "nonResourceRules": [], "incomplete": False}}
            )
        if not rest or rest[0] not in BY_PLURAL:
            return Answer(404, b"404 page not found\n", "text/plain")
        collection = self._storage.collections[BY_PLURAL[rest[0]]]
        if verb == "LIST":
            return self._list(collection, query)
        if verb == "POST":
            return self._create(collection, namespace, body)
        key = self._storage.key(collection.kind, namespace, rest[1])
        raw = collection.objects.get(key)
        if raw is None:
            details = {"name": rest[1], "kind": rest[0], "group": parts[1] if parts[0] == "apis" else ""}
            return status(404, "NotFound", f'{rest[0]} "{rest[1]}" not found', details=details)
        if verb == "GET":
            return Answer(200, raw)
        if verb == "PUT":
            return self._replace(collection, key, orjson.loads(raw), body)
        if verb == "PATCH":
            return self._patch(collection, key, raw, body, rest[2:] == ["status"])
        return status(405, "MethodNotAllowed")

    def _list(self, collection: Collection, query: Mapping[str, str]) -> Answer:
        token = query.get("continue")
        if token is not None and token not in self._storage.pages:
            return status(410, "Expired")
        items, version, start = (
            self._storage.pages.pop(token)
            if token
            else (list(collection.objects.values()), self._storage.version, 0)
        )
        end = start + int(query.get("limit") or len(items) or 1)
        metadata: Object = {"resourceVersion": str(version)}
        if end < len(items):
            metadata["continue"] = following = f"page-{next(self._storage.numbers)}"
            self._storage.pages[following] = (items, version, end)
        group_version, _, _ = KINDS[collection.kind]
        head = {"apiVersion": group_version, "kind": f"{collection.kind}List", "metadata": metadata}
        return Answer(200, orjson.dumps(head)[:-1] + b',"items":[' + b",".join(items[start:end]) + b"]}")

    def _create(self, collection: Collection, namespace: str, body: Object) -> Answer:
        metadata = body.setdefault("metadata", {})
        name = metadata.get("name") or f"{metadata.get('generateName', '')}{next(self._storage.numbers)}"
        metadata["name"] = name
        key = self._storage.key(collection.kind, namespace, name)
        if key in collection.objects:
            return status(409, "AlreadyExists", f'"{name}" already exists', details={"name": name})
        body.setdefault("kind", collection.kind)
        return Answer(201, self._storage.store(collection, key, body, "ADDED"))

    def _replace(self, collection: Collection, key: tuple[str, str], current: Object, body: Object) -> Answer:
        guard = (body.get("metadata") or {}).get("resourceVersion")
        if guard and guard != current["metadata"]["resourceVersion"]:
            return status(409, "Conflict", "the object has been modified", details={"name": key[1]})
        body["metadata"]["uid"] = current["metadata"]["uid"]
        return Answer(200, self._storage.store(collection, key, body, "MODIFIED"))

    def _patch(
        self, collection: Collection, key: tuple[str, str], raw: bytes, body: Object, is_status: bool
    ) -> Answer:
        try:
            current = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return self._patch_raw(collection, key, raw, body)
        metadata = current["metadata"]
        guard = (body.get("metadata") or {}).pop("resourceVersion", None)
        if guard is not None and guard != metadata["resourceVersion"]:
            return status(409, "Conflict", "the object has been modified", details={"name": key[1]})
        before = orjson.dumps(current.get("spec"))
        if is_status:
            merge_patch(current, {"status": body.get("status") or {}})
        else:
            merge_patch(current, {name: value for name, value in body.items() if name != "status"})
            metadata["generation"] = metadata.get("generation", 1) + (
                orjson.dumps(current.get("spec")) != before
            )
        return Answer(200, self._storage.store(collection, key, current, "MODIFIED"))

    def _patch_raw(self, collection: Collection, key: tuple[str, str], raw: bytes, body: Object) -> Answer:
        """Patch an object that no decoder here accepts: count the patch, and give the object a new version."""
        self.raw_patches[key[1]] += 1
        old = raw.split(b'"resourceVersion":"')[1].split(b'"')[0]
        guard = (body.get("metadata") or {}).get("resourceVersion")
        if guard is not None and guard.encode() != old:
            return status(409, "Conflict", "the object has been modified", details={"name": key[1]})
        self._storage.version += 1
        new = raw.replace(
            b'"resourceVersion":"' + old + b'"', f'"resourceVersion":"{self._storage.version}"'.encode(), 1
        )
        clusters = (body.get("spec") or {}).get("clusters")
        if clusters:
            new = new.replace(b'"spec":{', b'"spec":{"clusters":' + orjson.dumps(clusters) + b",", 1)
        collection.objects[key] = new
        self._storage.notify(collection, "MODIFIED", new)
        return Answer(200, new)


def ok(content: Any) -> Answer:
    """Return a JSON response with status 200."""
    return Answer(200, orjson.dumps(content))
