"""The API server: it processes requests, notifies watches and records every accepted change."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import orjson

from karmada_pyscheduler.client.http_connection import Response
from tools.apiserver_model import lists, messages, objects, raw_objects
from tools.apiserver_model.kinds import (
    BY_NAME,
    Key,
    Kind,
    Object,
    Target,
    discovery,
    is_in_builtin_group,
    target_of,
)
from tools.apiserver_model.messages import RefusedError
from tools.apiserver_model.requests import Request
from tools.apiserver_model.store import Author, Backup, State, Store, Write
from tools.apiserver_model.watch_requests import Source, WatchRules, open_watch
from tools.apiserver_model.watches import OnLine, Watch, Watches
from tools.apiserver_model.writer import Admission, Writer, decoded_body

OTHERS: Final = "others"
"""The user of changes that come without a request, unless another one is named."""

_RULES: Final = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"


class ApiServerModel:
    """An API server in memory: synchronous, deterministic, without threads, sockets or a clock of its own.

    A strategic merge patch is taken as a merge patch: the two differ for lists only, which no client here patches in
    that way.

    Attributes:
        store: The objects and their history.
        watches: The open watches of ``watch``.
        watch_rules: How watches from unknown revisions are processed.
        rules: What a SelfSubjectRulesReview lists; nothing is refused by it.
        observers: Called with every write, before watches get it.
        on_restore: Called after every restore.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        new_uid: Callable[[], str],
        *,
        revision: int = 1,
        kept_writes: int | None = None,
        requires_namespaces: bool = False,
    ) -> None:
        """Start empty.

        Args:
            now: The time of day.
            new_uid: Returns another uid with every call.
            revision: Where the counter of revisions begins.
            kept_writes: See ``Store``.
            requires_namespaces: Whether requests can create objects in namespaces only that exist. No request creates
                objects in a namespace that is being deleted in any case.
        """
        self.store = Store(now, revision=revision, kept_writes=kept_writes)
        self.store.on_write = self._written
        self.watches = Watches(lambda kind: self.store.revision)
        self.watch_rules = WatchRules()
        self.rules: list[Object] = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        self.observers: list[Callable[[Write], None]] = []
        self.on_restore: list[Callable[[], None]] = []
        self._writer = Writer(self.store, now, new_uid)
        self._writer.requires_namespaces = requires_namespaces

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

    @property
    def admission(self) -> list[Admission]:
        """Webhooks, called in order for each create, update and delete of a request."""
        return self._writer.admission

    def handle(self, request: Request) -> Response:
        """Process a request that is not a watch."""
        target = target_of(request.path)
        try:
            if target is None:
                return self._other(request)
            if target.subresource and not (target.subresource == "status" and target.kind.has_status):
                raise messages.no_such_subresource(target.kind, target.name)
            return self._on_object(request, target) if target.name else self._on_collection(request, target)
        except RefusedError as refused:
            return refused.response

    def watch(self, request: Request, on_line: OnLine) -> Watch | Response:
        """Open a watch; a Response refuses it. Lines about the past are sent before this returns."""
        target = target_of(request.path)
        if target is None or target.name:
            return messages.page_not_found()
        collection = self.store.collection(target.kind)
        source = Source(self.revision, collection.oldest, collection.objects, collection.after)
        try:
            return open_watch(request, target, on_line, self.watches, source, self.watch_rules)
        except RefusedError as refused:
            return refused.response

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
        return None if raw is None else _decoded(raw)

    def put(self, manifest: Object, *, user: str = OTHERS) -> Object:
        """Create or replace an object with its status, whatever resourceVersion it has; return it as stored.

        Fields of ``metadata`` that a server sets are set as a server does, but a new object keeps its uid. Without a
        ``status`` in the manifest the stored one stays. Webhooks are not called.
        """
        return _decoded(self._writer.put(manifest, Author(user)))

    def put_raw(self, manifest: bytes, *, user: str = OTHERS) -> None:
        """Create or replace an object that is stored as it is but for its ``metadata``; see ``raw_objects.placed``."""
        self._writer.put_raw(manifest, Author(user))

    def corrupt(self, kind: str, namespace: str, name: str, text: bytes) -> None:
        """Give an object any text, or make one of it: no write, no revision, no event, and no trace in the history."""
        found = BY_NAME[kind]
        self.store.collection(found).corrupt(found.key(namespace, name), text)

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

        Webhooks are not called. RefusedError if the object cannot be changed in this way.
        """
        found, key = self._place(kind, namespace, name)
        target = Target(found, *key, subresource)
        return _decoded(self._writer.store_patch(target, patch, Author(user, subresource)))

    def delete(
        self, kind: str, namespace: str, name: str, *, user: str = OTHERS, force: bool = False
    ) -> None:
        """Delete an object. KeyError if there is none.

        One with finalizers waits for them, and a Namespace for its objects, until ``force`` removes it. Webhooks are not
        called.
        """
        found, key = self._place(kind, namespace, name)
        if force:
            self._writer.remove(found, key, Author(user))
        else:
            self._writer.store_deletion(found, key, Author(user))

    def _place(self, kind: str, namespace: str, name: str) -> tuple[Kind, Key]:
        found = BY_NAME[kind]
        key = found.key(namespace, name)
        if self.store.get(found, key) is None:
            raise KeyError(f"{kind} {objects.name_of(key)}")
        return found, key

    def _written(self, write: Write) -> None:
        for observe in self.observers:
            observe(write)
        self.watches.deliver(write)

    def _other(self, request: Request) -> Response:
        if request.path == _RULES and request.method == "POST":
            review = {"resourceRules": self.rules, "nonResourceRules": [], "incomplete": False}
            return messages.ok(orjson.dumps({**decoded_body(request), "status": review}), 201)
        found = discovery(request.path) if request.method == "GET" else None
        if found is not None:
            return messages.ok(orjson.dumps(found))
        if is_in_builtin_group(request.path):
            raise messages.no_such_resource()
        return messages.page_not_found()

    def _on_collection(self, request: Request, target: Target) -> Response:
        if request.method == "POST":
            return self._writer.create(request, target)
        if request.method != "GET":
            raise messages.method_not_allowed()
        page = lists.page(self.store.collection(target.kind), self.revision, target, request)
        return lists.response(page, as_metadata=messages.wants_metadata(request, of_list=True))

    def _on_object(self, request: Request, target: Target) -> Response:
        method = request.method
        if method == "GET":
            lists.check_version(request, target, self.revision)
            return read(target, self.store.collection(target.kind).objects, request)
        if method == "PATCH":
            return self._writer.patch(request, target)
        if method == "PUT":
            return self._writer.replace(request, target)
        if method == "DELETE" and not target.subresource:
            return self._writer.delete(request, target)
        raise messages.method_not_allowed()


def read(target: Target, state: State, request: Request) -> Response:
    """Return the response to a GET of an object."""
    found = state.get(target.key)
    if found is None:
        raise messages.not_found(target.kind, target.name)
    return messages.ok(raw_objects.metadata_only(found) if messages.wants_metadata(request) else found)


def _decoded(raw: bytes) -> Object:
    return raw_objects.decoded(raw)
