"""An API server that replays a large installation: lists, watches, and takes what a scheduler writes.

    python -m tools.bench.replay --folder DIR --bindings 100000 --clusters 5000

Real are the protocol (TLS with client certificates, pages with ``continue`` tokens that see one version of the
collection, gzip for large answers, watches that begin at a version, bookmarks once a minute, merge patches guarded by the
resourceVersion, Leases, Events) and the shape and size of the objects (``replay_objects``). Not real: there is no etcd, no
admission, no webhook and no controller, so an answer takes less time than in life; selectors are not understood.

It also serves ``/replay/``: its requests, and a stream of status updates of Clusters.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import ssl
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Final

import orjson
from aiohttp import web

from karmada_scheduler.client.karmada import WATCHED
from tools.apiserver_model.merge_patch import merged
from tools.bench import replay_objects, replay_policies
from tools.bench.recording import Object, Sizes
from tools.bench.replay_discovery import Discovery
from tools.bench.replay_responses import failure, gzipped, json_response
from tools.bench.replay_state import Collection, Seen
from tools.controlplane.pki import Authority

BOOKMARK_SECONDS: Final = 60.0
GZIP_FROM: Final = 128 * 1024
_FIRST_VERSION: Final = 10_000_000


class Replay:
    """The server."""

    def __init__(self, sizes: Sizes) -> None:
        """Make all objects."""
        self.seen = Seen()
        self._version = _FIRST_VERSION
        self._collections = {
            resource.path: Collection(resource, _objects(resource.kind, sizes)) for resource in WATCHED
        }
        self._discovery = Discovery(WATCHED)
        self._leases: dict[str, Object] = {}
        self._lists: dict[str, tuple[list[bytes], int, int]] = {}
        self._tokens = itertools.count(1)

    def application(self) -> web.Application:
        """Return it as a web application."""
        application = web.Application(client_max_size=1 << 24)
        routes = [
            *self._discovery.routes(),
            web.get("/replay/seen", self._report_seen),
            web.post("/replay/updates", self._update_clusters),
            web.post("/api/v1/namespaces/{namespace}/events", self._take_event),
            web.patch("/api/v1/namespaces/{namespace}/events/{name}", self._take_event),
        ]
        leases = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        routes += [
            web.get(leases + "/{name}", self._read_lease),
            web.post(leases, self._write_lease),
            web.put(leases + "/{name}", self._write_lease),
        ]
        for path, collection in self._collections.items():
            group, plural = collection.resource.group_path, collection.resource.plural
            routes.append(web.get(path, self._list_or_watch))
            for each in (f"{path}/{{name}}", f"{group}/namespaces/{{namespace}}/{plural}/{{name}}"):
                routes += [
                    web.get(each, self._read),
                    web.patch(each, self._patch),
                    web.patch(each + "/status", self._patch),
                ]
        application.add_routes(routes)
        return application

    async def _report_seen(self, _: web.Request) -> web.Response:
        return json_response(self.seen.as_fields())

    async def _take_event(self, request: web.Request) -> web.Response:
        self.seen.requests[f"{request.method} events"] += 1
        event = orjson.loads(await request.read())
        self._version += 1
        event.setdefault("metadata", {})["resourceVersion"] = str(self._version)
        return json_response(event, status=201 if request.method == "POST" else 200)

    async def _read_lease(self, request: web.Request) -> web.Response:
        lease = self._leases.get(request.match_info["name"])
        return failure(404, "NotFound") if lease is None else json_response(lease)

    async def _write_lease(self, request: web.Request) -> web.Response:
        lease = orjson.loads(await request.read())
        name, known = lease["metadata"]["name"], self._leases.get(lease["metadata"]["name"])
        if known and lease["metadata"].get("resourceVersion") != known["metadata"]["resourceVersion"]:
            return failure(409, "Conflict")
        self._version += 1
        lease["metadata"]["resourceVersion"] = str(self._version)
        self._leases[name] = lease
        return json_response(lease, status=200 if known else 201)

    async def _list_or_watch(self, request: web.Request) -> web.StreamResponse:
        collection = self._collections[request.path]
        if request.query.get("watch") in ("true", "1"):
            self.seen.requests[f"WATCH {collection.resource.plural}"] += 1
            return await self._watch(request, collection)
        # A list of one object is how a client asks for the newest resourceVersion.
        verb = "VERSION" if request.query.get("limit") == "1" else "LIST"
        self.seen.requests[f"{verb} {collection.resource.plural}"] += 1
        return await self._list(request, collection)

    async def _list(self, request: web.Request, collection: Collection) -> web.Response:
        token = request.query.get("continue")
        if token:
            documents, version, start = self._lists.pop(token)
        else:
            # Later pages are of this version, whatever changes in between.
            documents, version, start = list(collection.documents), self._version, 0
        end = start + int(request.query.get("limit") or len(documents))
        metadata: Object = {"resourceVersion": str(version)}
        if end < len(documents):
            metadata["continue"] = following = f"page-{next(self._tokens)}"
            metadata["remainingItemCount"] = len(documents) - end
            self._lists[following] = (documents, version, end)
        resource = collection.resource
        body = b"".join((
            f'{{"apiVersion":"{resource.group}/{resource.version}","kind":"{resource.kind}List","metadata":'.encode(),
            orjson.dumps(metadata),
            b',"items":[',
            b",".join(documents[start:end]),
            b"]}",
        ))  # fmt: skip
        self.seen.bytes_listed += len(body)
        headers = {"Content-Type": "application/json"}
        if len(body) >= GZIP_FROM and "gzip" in request.headers.get("Accept-Encoding", ""):
            body = await asyncio.to_thread(gzipped, body)
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=body, headers=headers)

    async def _watch(self, request: web.Request, collection: Collection) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        since = int(request.query.get("resourceVersion") or self._version)
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        for version, event in collection.events:
            if version > since:
                queue.put_nowait(event)
        collection.watches.add(queue)
        try:
            while True:
                await response.write(await self._next(queue, collection))
        except ConnectionResetError:
            return response
        finally:
            collection.watches.discard(queue)

    async def _next(self, queue: asyncio.Queue[bytes], collection: Collection) -> bytes:
        """Return all events that wait, or a bookmark after a minute without."""
        try:
            async with asyncio.timeout(BOOKMARK_SECONDS):
                waiting = [await queue.get()]
        except TimeoutError:
            metadata = f'"metadata":{{"resourceVersion":"{self._version}"}}}}}}\n'
            return b'{"type":"BOOKMARK","object":' + collection.head + metadata.encode()
        while not queue.empty():
            waiting.append(queue.get_nowait())
        return b"".join(waiting)

    def _find(self, request: web.Request) -> tuple[Collection, int] | None:
        match = request.match_info
        group, version, *rest = request.path.removeprefix("/apis/").split("/")
        plural = rest[2] if rest[0] == "namespaces" else rest[0]
        collection = self._collections[f"/apis/{group}/{version}/{plural}"]
        place = collection.places.get((match.get("namespace", ""), match["name"]))
        return None if place is None else (collection, place)

    async def _read(self, request: web.Request) -> web.Response:
        found = self._find(request)
        self.seen.requests["GET object"] += 1
        if found is None:
            return failure(404, "NotFound")
        collection, place = found
        return web.Response(body=collection.alone(place), content_type="application/json")

    async def _patch(self, request: web.Request) -> web.Response:
        found = self._find(request)
        if found is None:
            return failure(404, "NotFound")
        collection, place = found
        patch = orjson.loads(await request.read())
        current = orjson.loads(collection.documents[place])
        metadata = current["metadata"]
        is_status = request.path.endswith("/status")
        self.seen.requests[f"PATCH {collection.resource.plural}{'/status' if is_status else ''}"] += 1
        guard = (patch.get("metadata") or {}).pop("resourceVersion", None)
        if guard is not None and guard != metadata["resourceVersion"]:
            self.seen.conflicts += 1
            return failure(409, "Conflict")
        had_place = bool(current["spec"].get("clusters"))
        if is_status:
            current = merged(current, {"status": patch.get("status") or {}})
        else:
            before = orjson.dumps(current["spec"])
            patch.pop("status", None)
            current = merged(current, patch)
            metadata = current["metadata"]
            metadata["generation"] += orjson.dumps(current["spec"]) != before
        self._version += 1
        metadata["resourceVersion"] = str(self._version)
        if (patch.get("spec") or {}).get("clusters"):
            key = f"{metadata.get('namespace', '')}/{metadata['name']}"
            (self.seen.moved if had_place else self.seen.placed).setdefault(key, time.monotonic())
        document = collection.store(place, current, self._version)
        return web.Response(body=document, content_type="application/json")

    async def _update_clusters(self, request: web.Request) -> web.Response:
        """Change what is allocated of one Cluster after another; returns at once."""
        query = request.query
        request.app[_TASKS].append(
            asyncio.create_task(self._updates(float(query["rate"]), float(query["seconds"])))
        )
        return json_response({})

    async def _updates(self, rate: float, seconds: float) -> None:
        collection = next(each for each in self._collections.values() if each.resource.kind == "Cluster")
        began, sent = time.monotonic(), 0
        while (passed := time.monotonic() - began) < seconds:
            while sent < passed * rate:
                tick, place = divmod(sent, len(collection.documents))
                current = orjson.loads(collection.documents[place])
                current["status"]["resourceSummary"]["allocated"] = replay_objects.allocated(place, tick + 1)
                self._version += 1
                current["metadata"]["resourceVersion"] = str(self._version)
                collection.store(place, current, self._version)
                sent += 1
                self.seen.updates += 1
            await asyncio.sleep(0.01)


_TASKS: Final = web.AppKey("tasks", list[asyncio.Task[None]])


def _objects(kind: str, sizes: Sizes) -> Iterable[Object]:
    if kind == "Cluster":
        return replay_objects.clusters(sizes)
    if kind.endswith("Policy"):
        return replay_policies.policies(kind, sizes)
    return replay_objects.bindings(kind, sizes)


@contextlib.asynccontextmanager
async def serving(replay: Replay, folder: Path) -> AsyncIterator[Path]:
    """Serve on a free port of 127.0.0.1; yields a kubeconfig for it.

    The folder gets the certificates, the kubeconfig last.
    """
    authority = Authority(folder)
    server, user = authority.issue("127.0.0.1", server=True), authority.issue("scheduler")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    context.load_cert_chain(server.certificate, server.key)
    application = replay.application()
    application[_TASKS] = []
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        port = runner.addresses[0][1]
        config = authority.kubeconfig(folder / "part", server=f"https://127.0.0.1:{port}", user=user)
        yield config.rename(folder / "kubeconfig")
    finally:
        for task in application[_TASKS]:
            task.cancel()
        await runner.cleanup()


async def _main(sizes: Sizes, folder: Path) -> None:
    async with serving(Replay(sizes), folder):
        await asyncio.Event().wait()


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="gets a kubeconfig as soon as it serves")
    parser.add_argument("--bindings", type=int, default=100_000)
    parser.add_argument("--clusters", type=int, default=5_000)
    arguments = parser.parse_args(argv)
    os.umask(0o077)
    asyncio.run(_main(Sizes(arguments.bindings, arguments.clusters), arguments.folder))


if __name__ == "__main__":
    main()
