"""The server: objects by kind with versions, lists, watches, merge patches, Leases, Events."""

from __future__ import annotations

import asyncio
import copy
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import orjson
from aiohttp import web

from .faults import Answer, Fault, status
from .merge_patch import merge_patch

Object = dict[str, Any]

_KINDS: Final = {
    "Cluster": ("cluster.karmada.io/v1alpha1", "clusters", False),
    "ResourceBinding": ("work.karmada.io/v1alpha2", "resourcebindings", True),
    "ClusterResourceBinding": ("work.karmada.io/v1alpha2", "clusterresourcebindings", False),
    "PropagationPolicy": ("policy.karmada.io/v1alpha1", "propagationpolicies", True),
    "ClusterPropagationPolicy": ("policy.karmada.io/v1alpha1", "clusterpropagationpolicies", False),
    "Namespace": ("v1", "namespaces", False),
    "CustomResourceDefinition": ("apiextensions.k8s.io/v1", "customresourcedefinitions", False),
    "Lease": ("coordination.k8s.io/v1", "leases", True),
    "Event": ("v1", "events", True),
    "Service": ("v1", "services", True),
    "Deployment": ("apps/v1", "deployments", True),
}
_METADATA: Final = "as=PartialObjectMetadata"
_BY_PLURAL: Final = {plural: kind for kind, (_, plural, _) in _KINDS.items()}


class Request(NamedTuple):
    """A received request.

    Attributes:
        time: Of ``time.monotonic``.
        verb: The HTTP method, or ``WATCH`` or ``LIST``.
        accept: The ``Accept`` header.
        authorization: The ``Authorization`` header.
        certificate: The client's certificate as ``SSLSocket.getpeercert`` returns it, None without one.
    """

    time: float
    verb: str
    path: str
    query: Mapping[str, str]
    body: Any
    accept: str = ""
    authorization: str = ""
    certificate: Any = None


@dataclass(slots=True)
class _Collection:
    """The objects of one kind by namespace and name, encoded, and their events."""

    kind: str
    objects: dict[tuple[str, str], bytes] = field(default_factory=dict)
    history: list[tuple[int, bytes]] = field(default_factory=list)
    watches: set[asyncio.Queue[bytes | None]] = field(default_factory=set)


class FakeApiServer:
    """An API server in a thread of its own, entered as a context.

    Its methods may be called from any thread. Objects that are put get a uid, a creation time and a resourceVersion; the
    generation grows when the spec changes, and a status is kept when only the rest is put.
    """

    def __init__(self, *, tls: Any = None, version: int = 1000) -> None:
        """Start empty at a version; ``tls`` is an ``ssl.SSLContext`` for HTTPS."""
        self.version = version
        self.token: str | None = None
        self.requests: list[Request] = []
        self.rules: list[Object] = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        self._tls = tls
        self._lock = threading.RLock()
        self._faults: list[Fault] = []
        self._collections = {kind: _Collection(kind) for kind in _KINDS}
        self._oldest = 0
        self._pages: dict[str, tuple[list[bytes], int, int]] = {}
        self._numbers = itertools.count(1)
        self._patched: Counter[str] = Counter()
        self._loop: asyncio.AbstractEventLoop  # there is one as soon as it is entered
        self._ended: asyncio.Event | None = None
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="fake API server", daemon=True)
        self.port = 0

    def __enter__(self) -> Self:
        """Serve on a free port of 127.0.0.1."""
        self._thread.start()
        assert self._began.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End at once; requests under way get no answer."""
        assert self._ended is not None
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(10)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def put(self, manifest: Object) -> Object:
        """Create or replace an object; return it as stored."""
        with self._lock:
            collection, key = self._place_of(manifest)
            known = collection.objects.get(key)
            old = orjson.loads(known) if known is not None else None
            new = copy.deepcopy(manifest)
            metadata = new["metadata"]
            if old is not None:
                metadata.setdefault("uid", old["metadata"]["uid"])
                generation = old["metadata"].get("generation", 1)
                if old.get("spec") != new.get("spec"):
                    generation += 1
                metadata["generation"] = generation
            self._store(collection, key, new, "ADDED" if old is None else "MODIFIED")
            return new

    def get(self, kind: str, name: str, namespace: str = "default") -> Object | None:
        """Return an object as stored; cluster-scoped kinds have no namespace whatever is given."""
        with self._lock:
            raw = self._collections[kind].objects.get(self._key(kind, namespace, name))
            found: Object | None = None if raw is None else orjson.loads(raw)
            return found

    def all(self, kind: str) -> list[Object]:
        """Return all objects of a kind."""
        with self._lock:
            return [orjson.loads(raw) for raw in self._collections[kind].objects.values()]

    def change(
        self, kind: str, name: str, change: Callable[[Object], object], namespace: str = "default"
    ) -> None:
        """Change an object in place, as another client would."""
        with self._lock:
            found = self.get(kind, name, namespace)
            assert found is not None, f"{kind} {namespace}/{name} is not there"
            change(found)
            self.put(found)

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """Delete an object at once."""
        with self._lock:
            collection = self._collections[kind]
            found = orjson.loads(collection.objects.pop(self._key(kind, namespace, name)))
            self.version += 1
            found["metadata"]["resourceVersion"] = str(self.version)
            self._tell(collection, "DELETED", orjson.dumps(found))

    def targets(self, name: str, namespace: str = "default") -> dict[str, int] | None:
        """Return the replicas of a ResourceBinding by cluster name; None without clusters."""
        found = self.get("ResourceBinding", name, namespace)
        clusters = (found or {}).get("spec", {}).get("clusters")
        return {each["name"]: each.get("replicas", 0) for each in clusters} if clusters else None

    def condition(self, name: str, namespace: str = "default") -> Object:
        """Return the ``Scheduled`` condition of a ResourceBinding, {} if it has none."""
        found = self.get("ResourceBinding", name, namespace) or {}
        conditions = found.get("status", {}).get("conditions") or []
        return next((each for each in conditions if each["type"] == "Scheduled"), {})

    def lease(self, name: str = "my-scheduler") -> Object:
        """Return the spec of a Lease of karmada-system, {} if there is none."""
        found = self.get("Lease", name, "karmada-system") or {}
        spec: Object = found.get("spec", {})
        return spec

    def fault(self, **arguments: Any) -> Fault:
        """Add a fault; see ``Fault``."""
        fault = Fault(**arguments)
        with self._lock:
            self._faults.append(fault)
        return fault

    def heal(self, *faults: Fault) -> None:
        """Remove some faults, or all."""
        with self._lock:
            self._faults = [each for each in self._faults if faults and each not in faults]

    def watching(self, kind: str) -> int:
        """Return the number of open watches of a kind; a closed connection is noticed at the next write."""
        with self._lock:
            return len(self._collections[kind].watches)

    def end_watches(self, kind: str | None = None) -> None:
        """End the watches of a kind, or all, as a server does after some minutes."""
        with self._lock:
            for collection in self._collections.values():
                if kind in (None, collection.kind):
                    for queue in collection.watches:
                        self._loop.call_soon_threadsafe(queue.put_nowait, None)

    def send(self, kind: str, line: bytes) -> None:
        """Send any line to the watches of a kind; the line break is added."""
        with self._lock:
            for queue in self._collections[kind].watches:
                self._loop.call_soon_threadsafe(queue.put_nowait, line + b"\n")

    def backup(self) -> Any:
        """Return the state for ``restore``."""
        with self._lock:
            return self.version, {
                kind: dict(collection.objects) for kind, collection in self._collections.items()
            }

    def restore(self, state: Any) -> None:
        """Go back to a state, versions included, as etcd does from a backup; all connections of watches end."""
        with self._lock:
            self.version, objects = state
            for kind, collection in self._collections.items():
                collection.objects = dict(objects[kind])
                collection.history = []
            self._oldest = self.version
            self._pages.clear()
            self.end_watches()

    def count(self, verb: str, path: str = "") -> int:
        """Return the number of received requests with a verb and a part of the path."""
        with self._lock:
            return sum(each.verb == verb and path in each.path for each in self.requests)

    def _key(self, kind: str, namespace: str, name: str) -> tuple[str, str]:
        return (namespace if _KINDS[kind][2] else "", name)

    def _place_of(self, manifest: Object) -> tuple[_Collection, tuple[str, str]]:
        kind, metadata = manifest["kind"], manifest["metadata"]
        key = self._key(kind, metadata.get("namespace", ""), metadata["name"])
        return self._collections[kind], key

    def put_raw(self, manifest: bytes) -> None:
        """Create or replace an object that is stored unchanged except for its ``metadata``.

        uid and resourceVersion must not be given, and ``"metadata":{`` must be its first occurrence in the text.
        """
        with self._lock:
            self._put_raw(manifest)

    def _put_raw(self, manifest: bytes) -> None:
        head, mark, rest = manifest.partition(b'"metadata":{')
        kind = orjson.loads(manifest[manifest.index(b'"kind":') + 7 :].split(b",")[0].rstrip(b"}"))
        fields = {
            name: orjson.loads(rest.split(b'"' + name.encode() + b'":')[1].split(b",")[0].rstrip(b"}"))
            for name in ("name", "namespace")
            if b'"' + name.encode() + b'":' in rest
        }
        collection = self._collections[kind]
        key = self._key(kind, fields.get("namespace", ""), fields["name"])
        event = "MODIFIED" if key in collection.objects else "ADDED"
        self.version += 1
        added = f'"uid":"uid-{kind}-{key[1]}","resourceVersion":"{self.version}",'.encode()
        collection.objects[key] = raw = head + mark + added + rest
        self._tell(collection, event, raw)

    def _store(self, collection: _Collection, key: tuple[str, str], new: Object, event: str) -> bytes:
        self.version += 1
        metadata = new["metadata"]
        metadata.setdefault("uid", f"uid-{next(self._numbers)}-of-{key[1]}")
        metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        metadata.setdefault("generation", 1)
        metadata["resourceVersion"] = str(self.version)
        raw = collection.objects[key] = orjson.dumps(new)
        self._tell(collection, event, raw)
        return raw

    def _tell(self, collection: _Collection, event: str, raw: bytes) -> None:
        line = b'{"type":"' + event.encode() + b'","object":' + raw + b"}\n"
        collection.history.append((self.version, line))
        for queue in collection.watches:
            self._loop.call_soon_threadsafe(queue.put_nowait, line)

    def _serve(self) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            runner.run(self._listen())

    async def _listen(self) -> None:
        self._ended = asyncio.Event()
        application = web.Application(client_max_size=1 << 28)
        application.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self._tls).start()
        self.port = runner.addresses[0][1]
        self._began.set()
        await self._ended.wait()
        await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        parts = request.path.strip("/").split("/")
        verb = request.method
        if verb == "GET" and parts[-1] in _BY_PLURAL and (len(parts) > 2):
            verb = "WATCH" if request.query.get("watch") in ("true", "1") else "LIST"
        parsed = None
        if body:
            parsed = orjson.loads(body)
        with self._lock:
            accept = request.headers.get("Accept", "")
            self.requests.append(
                Request(
                    time.monotonic(),
                    verb,
                    request.path,
                    dict(request.query),
                    parsed,
                    accept,
                    request.headers.get("Authorization", ""),
                    request.get_extra_info("peercert"),
                )
            )
            client = request.headers.get("User-Agent", "")
            fault = next((each for each in self._faults if each.applies_to(verb, request.path, client)), None)
        if fault is not None:
            await asyncio.sleep(fault.delay)
            while fault.gate is not None and not fault.gate.is_open:
                await asyncio.sleep(0.01)
            if fault.drop and not fault.carried_out:
                return self._dropped(request)
            if fault.answer is not None and not fault.carried_out:
                return _response(fault.answer)
        if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
            return _response(status(401, "Unauthorized"))
        if verb == "WATCH":
            return await self._watch(request, self._collections[_BY_PLURAL[parts[-1]]])
        with self._lock:
            answer = self._answer(verb, parts, request.query, parsed)
        if _METADATA in accept and answer.code == 200 and verb in ("GET", "LIST"):
            answer = _ok(_metadata_of(orjson.loads(answer.body)))
        if fault is not None and fault.drop:
            return self._dropped(request)
        return _response(fault.answer if fault is not None and fault.answer is not None else answer)

    def _dropped(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    def _answer(self, verb: str, parts: list[str], query: Mapping[str, str], body: Any) -> Answer:
        if verb == "GET" and (discovered := _discovery(parts)) is not None:
            return _ok(discovered)
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = ""
        if len(rest) >= 3 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        if rest == ["selfsubjectrulesreviews"] and verb == "POST":
            return _ok(
                {**body, "status": {"resourceRules": self.rules, "nonResourceRules": [], "incomplete": False}}
            )
        if not rest or rest[0] not in _BY_PLURAL:
            return Answer(404, b"404 page not found\n", "text/plain")
        collection = self._collections[_BY_PLURAL[rest[0]]]
        if verb == "LIST":
            return self._list(collection, query)
        if verb == "POST":
            return self._create(collection, namespace, body)
        key = self._key(collection.kind, namespace, rest[1])
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

    def _list(self, collection: _Collection, query: Mapping[str, str]) -> Answer:
        token = query.get("continue")
        if token is not None and token not in self._pages:
            return status(410, "Expired")
        items, version, start = (
            self._pages.pop(token) if token else (list(collection.objects.values()), self.version, 0)
        )
        end = start + int(query.get("limit") or len(items) or 1)
        metadata: Object = {"resourceVersion": str(version)}
        if end < len(items):
            metadata["continue"] = following = f"page-{next(self._numbers)}"
            self._pages[following] = (items, version, end)
        group_version, _, _ = _KINDS[collection.kind]
        head = {"apiVersion": group_version, "kind": f"{collection.kind}List", "metadata": metadata}
        return Answer(200, orjson.dumps(head)[:-1] + b',"items":[' + b",".join(items[start:end]) + b"]}")

    def _create(self, collection: _Collection, namespace: str, body: Object) -> Answer:
        metadata = body.setdefault("metadata", {})
        name = metadata.get("name") or f"{metadata.get('generateName', '')}{next(self._numbers)}"
        metadata["name"] = name
        key = self._key(collection.kind, namespace, name)
        if key in collection.objects:
            return status(409, "AlreadyExists", f'"{name}" already exists', details={"name": name})
        body.setdefault("kind", collection.kind)
        return Answer(201, self._store(collection, key, body, "ADDED"))

    def _replace(
        self, collection: _Collection, key: tuple[str, str], current: Object, body: Object
    ) -> Answer:
        guard = (body.get("metadata") or {}).get("resourceVersion")
        if guard and guard != current["metadata"]["resourceVersion"]:
            return status(409, "Conflict", "the object has been modified", details={"name": key[1]})
        body["metadata"]["uid"] = current["metadata"]["uid"]
        return Answer(200, self._store(collection, key, body, "MODIFIED"))

    def _patch(
        self, collection: _Collection, key: tuple[str, str], raw: bytes, body: Object, is_status: bool
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
        return Answer(200, self._store(collection, key, current, "MODIFIED"))

    def _patch_raw(self, collection: _Collection, key: tuple[str, str], raw: bytes, body: Object) -> Answer:
        """Patch an object that no decoder here accepts: count the patch, and give the object a new version."""
        self._patched[key[1]] += 1
        old = raw.split(b'"resourceVersion":"')[1].split(b'"')[0]
        guard = (body.get("metadata") or {}).get("resourceVersion")
        if guard is not None and guard.encode() != old:
            return status(409, "Conflict", "the object has been modified", details={"name": key[1]})
        self.version += 1
        new = raw.replace(
            b'"resourceVersion":"' + old + b'"', f'"resourceVersion":"{self.version}"'.encode(), 1
        )
        clusters = (body.get("spec") or {}).get("clusters")
        if clusters:
            new = new.replace(b'"spec":{', b'"spec":{"clusters":' + orjson.dumps(clusters) + b",", 1)
        collection.objects[key] = new
        self._tell(collection, "MODIFIED", new)
        return Answer(200, new)

    async def _watch(self, request: web.Request, collection: _Collection) -> web.StreamResponse:
        since = request.query.get("resourceVersion") or ""
        with self._lock:
            version = self.version if since in ("", "0") else int(since)
            if version < self._oldest:
                return _response(status(410, "Expired", "too old resource version"))
            if version > self.version:
                causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
                details = {"causes": causes, "retryAfterSeconds": 1}
                return _response(status(504, "Timeout", "Too large resource version", details=details))
            queue: asyncio.Queue[bytes | None] = asyncio.Queue()
            for changed, event in collection.history:
                if changed > version:
                    queue.put_nowait(event)
            collection.watches.add(queue)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        try:
            await response.prepare(request)
            ended = False
            while not ended and (line := await queue.get()) is not None:
                waiting = [line]
                while not queue.empty():
                    following = queue.get_nowait()
                    if following is None:
                        ended = True
                        break
                    waiting.append(following)
                if _METADATA in request.headers.get("Accept", ""):
                    events = [orjson.loads(each) for each in waiting]
                    waiting = [
                        orjson.dumps({**each, "object": _metadata_of(each["object"])}) + b"\n"
                        for each in events
                    ]
                await response.write(b"".join(waiting))
            await response.write_eof()
        except ConnectionError:
            pass
        finally:
            with self._lock:
                collection.watches.discard(queue)
        return response


def _discovery(parts: list[str]) -> Object | None:
    """Return the response to a discovery request; None for another path."""
    groups: dict[str, str] = {}
    for version, _, _ in _KINDS.values():
        if "/" in version:
            groups[version.split("/")[0]] = version
    if parts == ["api"]:
        return {"kind": "APIVersions", "versions": ["v1"]}
    if parts == ["apis"]:
        entries = [
            {"name": group, "versions": [served], "preferredVersion": served}
            for group, version in groups.items()
            for served in [{"groupVersion": version, "version": version.split("/")[1]}]
        ]
        return {"kind": "APIGroupList", "groups": entries}
    asked = "/".join(parts[1:])
    resources = [
        {
            "name": plural, "singularName": kind.lower(), "kind": kind, "namespaced": namespaced,
            "verbs": ["get", "list", "patch", "update", "watch", "create"],
        }
        for kind, (version, plural, namespaced) in _KINDS.items()
        if version == asked
    ]  # fmt: skip
    return {"kind": "APIResourceList", "groupVersion": asked, "resources": resources} if resources else None


def _metadata_of(found: Object) -> Object:
    """Return an object or a list as PartialObjectMetadata; a Status stays as it is."""
    if "items" in found:
        return {
            **found,
            "kind": "PartialObjectMetadataList",
            "items": [_metadata_of(each) for each in found["items"]],
        }
    if found.get("kind") == "Status":
        return found
    return {
        "apiVersion": "meta.k8s.io/v1",
        "kind": "PartialObjectMetadata",
        "metadata": found["metadata"],
    }


def _ok(content: Any) -> Answer:
    return Answer(200, orjson.dumps(content))


def _response(answer: Answer) -> web.Response:
    return web.Response(
        body=answer.body, status=answer.code, content_type=answer.content_type, headers=answer.headers
    )
