"""The API server: requests in, responses out, watches told, every accepted change recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import orjson

from karmada_scheduler.client.http import Response
from tools.apiserver_model import lists, messages, objects, raw_objects, watches
from tools.apiserver_model.kinds import BY_NAME, Key, Kind, Object, Target, discovery, target_of
from tools.apiserver_model.merge_patch import merged
from tools.apiserver_model.messages import RefusedError, Request
from tools.apiserver_model.store import Author, Backup, State, Store, Write
from tools.apiserver_model.watches import OnLine, Watch, Watches

MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
OTHERS: Final = "others"
"""The user of changes that come without a request, unless another one is named."""

Admission = Callable[[str, str, Object | None, Object | None, str], Object | Response | None]
"""A webhook. It gets the name of the kind, the verb (``create``, ``update`` or ``delete``), the object before (None for a
creation), the object that would be stored (None for a deletion), and the user. It returns the object to store, a Response
that refuses the request, or None for no objection. It must not change its arguments."""

_RULES: Final = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"


class ApiServerModel:
    """An API server in memory: synchronous, deterministic, without threads, sockets or a clock of its own.

    A strategic merge patch is taken as a merge patch: the two differ for lists only, which no client here patches in
    that way.

    Attributes:
        admission: Webhooks, called in order for each create, update and delete of a request.
        rules: What a SelfSubjectRulesReview lists; nothing is refused by it.
        requires_namespaces: Whether objects can be created in namespaces only that exist.
        future_watches: Whether a watch after a revision that is not there yet is accepted, and silent until then.
        expired_as_event: Whether a watch after an expired revision is accepted and gets an ERROR, as of kube-apiserver, or
            is refused with the status 410.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        new_uid: Callable[[], str],
        *,
        revision: int = 1,
        kept_writes: int | None = None,
    ) -> None:
        """Start empty.

        Args:
            now: The time of day.
            new_uid: Returns another uid with every call.
            revision: Where the counter of revisions begins.
            kept_writes: See ``Store``.
        """
        self.admission: list[Admission] = []
        self.rules: list[Object] = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        self.requires_namespaces = False
        self.future_watches = True
        self.expired_as_event = True
        self.store = Store(now, revision=revision, kept_writes=kept_writes)
        self.store.on_write = self._written
        self.watches = Watches()
        self.observers: list[Callable[[Write], None]] = []
        self.on_restore: list[Callable[[], None]] = []
        self._now = now
        self._new_uid = new_uid
        self._names = 0

    @property
    def revision(self) -> int:
        """The revision of the newest write."""
        return self.store.revision

    @property
    def epoch(self) -> int:
        """The number of restores."""
        return self.store.epoch

    @property
    def writes(self) -> list[Write]:
        """The accepted changes, in order; see ``kept_writes``."""
        return self.store.writes

    def handle(self, request: Request) -> Response:
        """Process a request that is not a watch."""
        target = target_of(request.path)
        try:
            if target is None:
                return self._other(request)
            if target.name:
                return self._on_object(request, target)
            if request.method == "GET":
                page = lists.page(self.store.collection(target.kind), self.revision, target, request)
                return lists.response(page, as_metadata=watches.METADATA in request.accept)
            if request.method == "POST":
                return self._create(request, target)
            raise messages.method_not_allowed()
        except RefusedError as refused:
            return refused.response

    def watch(self, request: Request, on_line: OnLine) -> Watch | Response:
        """Open a watch; a Response refuses it. The lines up to now are sent before this returns."""
        target = target_of(request.path)
        if target is None or target.name:
            return messages.not_a_resource()
        collection = self.store.collection(target.kind)
        try:
            return self._opened(request, target, on_line, self.watches, self.revision, collection.objects)
        except RefusedError as refused:
            return refused.response

    def _opened(
        self, request: Request, target: Target, on_line: OnLine, hub: Watches, revision: int, state: State
    ) -> Watch:
        """Open a watch in a hub that has got the writes up to a revision."""
        lists.refuse_selectors(request)
        collection = self.store.collection(target.kind)
        asked = request.query.get("resourceVersion") or ""
        since = revision if asked in ("", "0") else lists.version_number(asked)
        expired = messages.expired_version(since, collection.oldest) if since < collection.oldest else None
        if expired is not None and not self.expired_as_event:
            raise expired
        if since > revision and not self.future_watches:
            raise messages.too_large_version(since, revision)
        watch = hub.open(
            target.kind,
            target.namespace,
            on_line,
            user=request.user,
            revision=since,
            as_metadata=watches.METADATA in request.accept,
            bookmarks=request.query.get("allowWatchBookmarks") in ("true", "1"),
        )
        if expired is not None:
            found = orjson.loads(expired.response.body)
            watch.fail(410, "Expired", found["message"])
        elif asked in ("", "0"):
            keys = [key for key in sorted(state) if not target.namespace or key[0] == target.namespace]
            watches.show(watch, [state[key] for key in keys])
        elif since < revision:
            watches.replay(watch, [each for each in collection.after(since) if each.revision <= revision])
        return watch

    def backup(self) -> Backup:
        """Return the state for ``restore``."""
        return self.store.backup()

    def restore(self, backup: Backup) -> None:
        """Go back to a state, as etcd does from a backup.

        Objects and the revision are those of the backup, and the history is empty. Later writes use revisions again that
        were used before; ``epoch`` tells them apart. All watches end.
        """
        self.store.restore(backup)
        self.watches.end_all()
        for restored in self.on_restore:
            restored()

    def compact(self, revision: int) -> None:
        """Compact the history up to a revision: watches from older ones and lists that began before it have expired.

        ``state`` still knows them; ``kept_writes`` bounds what it knows.
        """
        self.store.compact(min(revision, self.revision))

    def state(self, kind: str, epoch: int | None = None, revision: int | None = None) -> State:
        """Return the objects of a kind at a revision of an epoch, by default the newest; the caller must not change it.

        LookupError if the state is not kept.
        """
        epoch = self.epoch if epoch is None else epoch
        revision = self.revision if revision is None else revision
        return self.store.state(BY_NAME[kind], epoch, revision)

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object, None if there is none."""
        found = BY_NAME[kind]
        raw = self.store.get(found, found.key(namespace, name))
        return None if raw is None else orjson.loads(raw)

    def put(self, manifest: Object, *, user: str = OTHERS) -> Object:
        """Create or replace an object with its status, whatever resourceVersion it has; return it as stored.

        Fields of ``metadata`` that a server sets are set as a server does. Without a ``status`` in the manifest the stored
        one stays. Webhooks are not called.
        """
        kind = BY_NAME[manifest["kind"]]
        key = kind.key(manifest["metadata"].get("namespace") or "", manifest["metadata"]["name"])
        body = objects.checked_body(kind, manifest, key[0], key[1])
        before = self.store.get(kind, key)
        if before is None:
            new = objects.created(kind, body, uid=self._uid(body), moment=self._now())
            new = {**new, "status": body["status"]} if "status" in body else new
            return self._decoded(self.store.put(kind, key, new, Author(user)))
        old = orjson.loads(before)
        body["metadata"].pop("uid", None)
        new = objects.updated(kind, old, body, is_status=False)
        if "status" in body:
            new["status"] = body["status"]
        return self._decoded(self._stored(kind, key, before, old, new, Author(user)))

    def put_raw(self, manifest: bytes, *, user: str = OTHERS) -> None:
        """Create or replace an object that is stored as it is but for its ``metadata``; see ``raw_objects.placed``."""
        kind, key, raw = raw_objects.placed(manifest, self._new_uid, self.revision + 1)
        self.store.put_encoded(kind, key, raw, Author(user))

    def patch(
        self,
        kind: str,
        namespace: str,
        name: str,
        patch: Object,
        *,
        subresource: str = "",
        user: str = OTHERS,
    ) -> Object:
        """Merge a patch into an object or its status; return it as stored. KeyError if there is none.

        Webhooks are not called.
        """
        found = BY_NAME[kind]
        key = found.key(namespace, name)
        before = self.store.get(found, key)
        if before is None:
            raise KeyError(f"{kind} {objects.name_of(key)}")
        target = Target(found, *key, subresource)
        return self._decoded(self._patched(target, before, patch, Author(user, subresource)))

    def delete(
        self, kind: str, namespace: str, name: str, *, user: str = OTHERS, force: bool = False
    ) -> None:
        """Delete an object; one with finalizers waits for them unless ``force``. KeyError if there is none.

        Webhooks are not called.
        """
        found = BY_NAME[kind]
        key = found.key(namespace, name)
        if self.store.get(found, key) is None:
            raise KeyError(f"{kind} {objects.name_of(key)}")
        if force:
            self._remove(found, key, Author(user))
        else:
            self._deleted(found, key, Author(user))

    def _written(self, write: Write) -> None:
        for observe in self.observers:
            observe(write)
        self.watches.deliver(write)

    def _other(self, request: Request) -> Response:
        if request.path == _RULES and request.method == "POST":
            review = {"resourceRules": self.rules, "nonResourceRules": [], "incomplete": False}
            return messages.ok(orjson.dumps({**_decoded_body(request), "status": review}), 201)
        found = discovery(request.path) if request.method == "GET" else None
        return messages.not_a_resource() if found is None else messages.ok(orjson.dumps(found))

    def _on_object(self, request: Request, target: Target) -> Response:
        kind, method = target.kind, request.method
        if target.subresource and not (target.subresource == "status" and kind.has_status):
            return messages.not_a_resource()
        before = self.store.get(kind, target.key)
        if method == "GET":
            if before is None:
                raise messages.not_found(kind, target.name)
            self._check_read_version(request)
            if watches.METADATA in request.accept:
                return messages.ok(objects.metadata_only(before))
            return messages.ok(before)
        author = Author(request.user, target.subresource, request)
        if method == "PATCH":
            if before is None:
                raise messages.not_found(kind, target.name)
            _check_patch_type(kind, request.content_type)
            return messages.ok(self._patched(target, before, _decoded_body(request), author, admit=True))
        if method == "PUT":
            return self._replace(request, target, before, author)
        if method == "DELETE" and not target.subresource:
            if before is None:
                raise messages.not_found(kind, target.name)
            return self._delete(request, target, before, author)
        raise messages.method_not_allowed()

    def _check_read_version(self, request: Request) -> None:
        asked = request.query.get("resourceVersion") or "0"
        if asked != "0" and lists.version_number(asked) > self.revision:
            raise messages.too_large_version(int(asked), self.revision)

    def _create(self, request: Request, target: Target) -> Response:
        kind = target.kind
        body = objects.checked_body(kind, _decoded_body(request), target.namespace, "")
        metadata = body["metadata"]
        if metadata.get("resourceVersion"):
            raise messages.refusal(500, "", "resourceVersion should not be set on objects to be created")
        if not metadata.get("name"):
            if not metadata.get("generateName"):
                detail = "name or generateName is required"
                raise messages.invalid(kind, "", "metadata.name", detail, code="Required value")
            self._names += 1
            metadata["name"] = objects.generated_name(metadata["generateName"], self._names)
        return messages.ok(self._add(request, kind, (target.namespace, metadata["name"]), body), 201)

    def _add(self, request: Request, kind: Kind, key: Key, body: Object) -> bytes:
        self._check_namespace(kind, key)
        if self.store.get(kind, key) is not None:
            raise messages.already_exists(kind, key[1])
        new = objects.created(kind, body, uid=self._new_uid(), moment=self._now())
        new = self._admitted(kind, "create", None, new, request.user)
        return self.store.put(kind, key, new, Author(request.user, "", request))

    def _check_namespace(self, kind: Kind, key: Key) -> None:
        if not kind.namespaced:
            return
        raw = self.store.get(BY_NAME["Namespace"], ("", key[0]))
        if raw is None:
            if self.requires_namespaces:
                raise messages.not_found(BY_NAME["Namespace"], key[0])
        elif "deletionTimestamp" in orjson.loads(raw)["metadata"]:
            raise messages.namespace_terminating(kind, key)

    def _replace(self, request: Request, target: Target, before: bytes | None, author: Author) -> Response:
        kind, key = target.kind, target.key
        body = objects.checked_body(kind, _decoded_body(request), target.namespace, target.name)
        if before is None:
            if not kind.creates_on_update or target.subresource:
                raise messages.not_found(kind, target.name)
            return messages.ok(self._add(request, kind, key, body), 201)
        old = orjson.loads(before)
        uid = body["metadata"].get("uid")
        if uid and uid != old["metadata"].get("uid"):
            raise messages.uid_conflict(kind, key, uid, old["metadata"].get("uid"))
        self._check_version(kind, key[1], old, body["metadata"].get("resourceVersion"))
        new = objects.updated(kind, old, body, is_status=bool(target.subresource))
        new = self._admitted(kind, "update", old, new, request.user)
        return messages.ok(self._stored(kind, key, before, old, new, author))

    def _check_version(self, kind: Kind, name: str, old: Object, given: str | None) -> None:
        if not given:
            if not kind.unconditional:
                detail = "must be specified for an update"
                raise messages.invalid(kind, name, "metadata.resourceVersion", detail, value=0)
        elif given != old["metadata"]["resourceVersion"]:
            raise messages.conflict(kind, name)

    def _patched(
        self, target: Target, before: bytes, patch: Any, author: Author, *, admit: bool = False
    ) -> bytes:
        kind, key = target.kind, target.key
        if not isinstance(patch, dict):
            raise messages.bad_request("the patch is not an object")
        try:
            old = orjson.loads(before)
        except orjson.JSONDecodeError:
            after = raw_objects.patched(kind, key, before, patch, self.revision + 1)
            return self.store.put_encoded(kind, key, after, author)
        body = merged(old, patch)
        self._check_version(kind, key[1], old, body["metadata"].get("resourceVersion"))
        new = objects.updated(kind, old, body, is_status=bool(target.subresource))
        if admit:
            new = self._admitted(kind, "update", old, new, author.user)
        return self._stored(kind, key, before, old, new, author)

    def _stored(self, kind: Kind, key: Key, before: bytes, old: Object, new: Object, author: Author) -> bytes:
        """Store an update; nothing changes if it changes nothing, and the last finalizer takes the object with it."""
        if objects.is_finished(new):
            self._remove(kind, key, author)
            return orjson.dumps(new)
        if objects.same(old, new):
            return before
        return self.store.put(kind, key, new, author)

    def _delete(self, request: Request, target: Target, before: bytes, author: Author) -> Response:
        kind, key = target.kind, target.key
        preconditions = (_decoded_body(request) if request.body else {}).get("preconditions") or {}
        metadata = raw_objects.metadata_of(before)
        messages.check_preconditions(kind, key[1], preconditions, metadata)
        if self.admission:
            self._admitted(kind, "delete", orjson.loads(before), None, request.user)
        left = self._deleted(kind, key, author)
        if left is not None:
            return messages.ok(left)
        if kind.returns_deleted:
            return messages.ok(before)
        return messages.ok(orjson.dumps(messages.success(kind, key[1], metadata["uid"])))

    def _deleted(self, kind: Kind, key: Key, author: Author) -> bytes | None:
        """Delete an object; return it if it waits for its finalizers."""
        before = self.store.get(kind, key)
        assert before is not None
        metadata = raw_objects.metadata_of(before)
        waits = metadata.get("finalizers") or kind.name == "Namespace"
        if not waits:
            self._remove(kind, key, author)
            return None
        old = orjson.loads(before)
        new = objects.marked_deleting(old, self._now())
        if kind.name == "Namespace":
            new = {**new, "status": {**(new.get("status") or {}), "phase": "Terminating"}}
        return before if objects.same(old, new) else self.store.put(kind, key, new, author)

    def _remove(self, kind: Kind, key: Key, author: Author) -> None:
        before = self.store.get(kind, key)
        assert before is not None
        self.store.remove(kind, key, raw_objects.with_version(before, self.revision + 1), author)

    def _admitted(self, kind: Kind, verb: str, before: Object | None, after: Object | None, user: str) -> Any:
        for hook in self.admission:
            answer = hook(kind.name, verb, before, after, user)
            if isinstance(answer, Response):
                raise RefusedError(answer)
            if answer is not None and after is not None:
                after = answer
        return after

    def _uid(self, body: Mapping[str, Any]) -> str:
        given = body["metadata"].get("uid")
        return str(given) if given else self._new_uid()

    @staticmethod
    def _decoded(raw: bytes) -> Object:
        found: Object = orjson.loads(raw)
        return found


def _decoded_body(request: Request) -> Any:
    try:
        return orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise messages.bad_request(f"the body of the request is not JSON: {error}") from None


def _check_patch_type(kind: Kind, content_type: str) -> None:
    supported = (MERGE_PATCH,) if kind.is_custom else (MERGE_PATCH, STRATEGIC_MERGE_PATCH)
    if content_type and content_type.partition(";")[0] not in supported:
        raise messages.unsupported_media_type(supported)
