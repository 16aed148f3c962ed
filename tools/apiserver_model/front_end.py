"""One of several API servers in front of the same etcd: its watch caches may be behind.

Reads with resourceVersion=0 and watches are served from the caches, everything else from etcd, as by kube-apiserver.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from karmada_pyscheduler.client.http_connection import Response
from tools.apiserver_model import lists, messages
from tools.apiserver_model.kinds import BY_NAME, KINDS, Key, Kind, Target, target_of
from tools.apiserver_model.messages import RefusedError
from tools.apiserver_model.model import ApiServerModel, read
from tools.apiserver_model.requests import Request
from tools.apiserver_model.store import Write
from tools.apiserver_model.watch_requests import Source, open_watch
from tools.apiserver_model.watches import OnLine, Watch, Watches


@dataclass(slots=True)
class _Cache:
    """The watch cache of a kind.

    Attributes:
        revision: The revision that it has seen everything up to.
        oldest: The oldest revision that a watch can begin at.
        objects: Its state.
    """

    revision: int
    oldest: int
    objects: dict[Key, bytes]

    def add(self, write: Write) -> None:
        if write.after is None:
            self.objects.pop(write.key, None)
        else:
            self.objects[write.key] = write.after
        self.revision = write.revision


class FrontEnd:
    """An API server whose watch caches move only when ``advance_to`` is called.

    A request that names a resourceVersion which the cache has not reached moves it there: a real server waits for that.

    Attributes:
        watches: The open watches.
    """

    def __init__(self, model: ApiServerModel) -> None:
        """Begin with caches of the newest state."""
        self.watches = Watches(self.revision)
        self._model = model
        self._caches: dict[str, _Cache] = {}
        self._fill(KINDS)
        model.on_restore.append(self.restart)

    def revision(self, kind: str) -> int:
        """Return the revision of the cache of a kind."""
        return self._caches[kind].revision

    def advance_to(self, revision: int, kind: str | None = None) -> None:
        """Move the cache of a kind, or all, up to a revision; watches get the lines in the order of revisions."""
        kinds = KINDS if kind is None else (BY_NAME[kind],)
        revision = min(revision, self._model.revision)
        for write in heapq.merge(*map(self._unseen, kinds), key=lambda write: write.revision):
            if write.revision > revision:
                break
            self._caches[write.kind].add(write)
            self.watches.deliver(write)
        for each in kinds:
            cache = self._caches[each.name]
            cache.revision = max(cache.revision, revision)

    def forget(self, revision: int, kind: str | None = None) -> None:
        """Let watches of a kind, or all, no longer begin at older revisions, as when a cache is full."""
        for name, cache in self._caches.items():
            if kind in (None, name):
                cache.oldest = max(cache.oldest, min(revision, cache.revision))

    def restart(self) -> None:
        """End all watches and start again with the newest state; watches can begin there and later."""
        self._fill(KINDS)
        self.watches.end_all()

    def handle(self, request: Request) -> Response:
        """Process a request that is not a watch."""
        target = target_of(request.path)
        asked = request.query.get("resourceVersion") or ""
        if (
            request.method != "GET"
            or not asked
            or target is None
            or target.subresource
            or request.query.get("continue")
            or (not target.name and asked != "0" and lists.is_exact(request))
        ):
            return self._model.handle(request)
        try:
            return self._cached(request, target)
        except RefusedError as refused:
            return refused.response

    def watch(self, request: Request, on_line: OnLine) -> Watch | Response:
        """Open a watch; a Response refuses it. Lines about what the cache has seen are sent before this returns."""
        target = target_of(request.path)
        if target is None or target.name:
            return messages.page_not_found()
        cache = self._caches[target.kind.name]
        self._unseen(target.kind)
        source = Source(
            cache.revision, cache.oldest, cache.objects, self._model.store.collection(target.kind).after
        )
        try:
            return open_watch(request, target, on_line, self.watches, source, self._model.watch_rules)
        except RefusedError as refused:
            return refused.response

    def _cached(self, request: Request, target: Target) -> Response:
        lists.refuse_selectors(request)
        lists.check_version(request, target, self._model.revision)
        cache = self._caches[target.kind.name]
        self.advance_to(max(cache.revision, int(request.query["resourceVersion"])), target.kind.name)
        if target.name:
            return read(target, cache.objects, request)
        page = lists.whole(target, cache.revision, cache.objects)
        return lists.response(page, as_metadata=messages.wants_metadata(request, of_list=True))

    def _unseen(self, kind: Kind) -> Sequence[Write]:
        """Return the writes that a cache has not seen; a cache whose next write is not kept starts again."""
        collection = self._model.store.collection(kind)
        if collection.floor > self._caches[kind.name].revision:
            self._fill((kind,))
            for watch in self.watches.of(kind.name):
                watch.end()
        return collection.after(self._caches[kind.name].revision)

    def _fill(self, kinds: Iterable[Kind]) -> None:
        revision = self._model.revision
        for kind in kinds:
            state = dict(self._model.store.collection(kind).objects)
            self._caches[kind.name] = _Cache(revision, revision, state)
