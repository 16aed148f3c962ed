"""The API server of ``tools.bench.cold_start``: the model's HTTP front with a large installation, in a process of its own.

    python -m tools.bench.start_server --folder DIR --bindings 100000 --clusters 5000

Real are the protocol (``tools.apiserver_model``, over TLS with client certificates, with gzip and with bookmarks once a
minute) and the shape and size of the objects (``recorded_fleet``). Not real: there is no etcd, no webhook and no controller,
so an answer takes less time than in life.

It also serves ``/bench/``: what was requested, and a stream of status updates of Clusters.
"""

from __future__ import annotations

import argparse
import os
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import orjson
from aiohttp import web

from karmada_scheduler.client.karmada import WATCHED
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.server import Request
from tools.apiserver_model import BY_NAME, Author, Write, target_of
from tools.bench.recorded_fleet import allocated, bindings, clusters
from tools.bench.recorded_policies import policies
from tools.bench.recording import Object, Sizes, cluster_name
from tools.controlplane.pki import Authority

_BOOKMARK_SECONDS: Final = 60.0
_KEPT_WRITES: Final = 5000
_FIRST_VERSION: Final = 10_000_000


class StartServer(FakeApiServer):
    """A ``FakeApiServer`` with a large installation.

    Attributes:
        placed: When each binding got its first clusters, by namespace and name; of ``time.monotonic``.
        moved: The same of bindings that had some before.
        updates: How many status updates of Clusters were made.
    """

    def __init__(self, sizes: Sizes, *, tls: ssl.SSLContext | None = None) -> None:
        """Store all objects, with the generations and conditions that they were recorded with."""
        super().__init__(tls=tls, version=_FIRST_VERSION, kept_writes=_KEPT_WRITES)
        self.placed: dict[tuple[str, str], float] = {}
        self.moved: dict[tuple[str, str], float] = {}
        self.updates = 0
        self._sizes = sizes
        for resource in WATCHED:
            kind = BY_NAME[resource.kind]
            for found in _objects(resource.kind, sizes):
                metadata = found["metadata"]
                key = kind.key(metadata.get("namespace", ""), metadata["name"])
                self.model.store.put(kind, key, found, Author("others"))
        self.model.observers.append(self._note_placement)

    def _note_placement(self, write: Write) -> None:
        if not write.kind.endswith("Binding") or write.subresource or not write.before or not write.after:
            return
        before, after = (
            orjson.loads(each)["spec"].get("clusters") or [] for each in (write.before, write.after)
        )
        if before != after:
            (self.moved if before else self.placed).setdefault(write.key, time.monotonic())

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/bench/seen":
            return web.json_response(self._seen())
        if request.path == "/bench/updates":
            rate, seconds = (float(request.query[name]) for name in ("rate", "seconds"))
            threading.Thread(target=self._update_clusters, args=(rate, seconds), daemon=True).start()
            return web.json_response({})
        return await super()._handle(request)

    def _seen(self) -> Object:
        times = sorted(self.placed.values())
        with self.lock:
            requests = Counter(map(_name, self.requests))
        return {
            "requests": dict(requests),
            "placed": len(times),
            "first": times[0] if times else None,
            "last": times[-1] if times else None,
            "moved": len(self.moved),
            "updates": self.updates,
        }

    def _update_clusters(self, rate: float, seconds: float) -> None:
        """Change what is allocated of one Cluster after another."""
        began, sent = time.monotonic(), 0
        while (passed := time.monotonic() - began) < seconds:
            while sent < passed * rate:
                tick, number = divmod(sent, self._sizes.clusters)
                resources = {"allocated": allocated(number, tick + 1)}
                patch = {"status": {"resourceSummary": resources}}
                with self.lock:
                    self.model.patch("Cluster", "", cluster_name(number), patch, subresource="status")
                sent += 1
                self.updates += 1
            time.sleep(0.01)

    def bookmark(self) -> None:
        """Send the watches the newest version."""
        with self.lock:
            for watch in self.model.watches.of():
                watch.bookmark()


def _objects(kind: str, sizes: Sizes) -> Iterator[Object]:
    if kind == "Cluster":
        return clusters(sizes)
    return policies(kind, sizes) if kind.endswith("Policy") else bindings(kind, sizes)


def _name(request: Request) -> str:
    """Return a request as the counts have it: its verb and the resource."""
    target = target_of(request.path)
    if target is None:
        return f"{request.verb} {request.path}"
    # A list of one object is how a client asks for the newest resourceVersion.
    verb = "VERSION" if request.verb == "LIST" and request.query.get("limit") == "1" else request.verb
    return f"{verb} {target.kind.plural}{'/' + target.subresource if target.subresource else ''}"


def serve(sizes: Sizes, folder: Path) -> None:
    """Serve until the process is killed; the folder gets the certificates, and the kubeconfig once it serves."""
    authority = Authority(folder)
    issued, user = authority.issue("127.0.0.1", server=True), authority.issue("scheduler")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    context.load_cert_chain(issued.certificate, issued.key)
    with StartServer(sizes, tls=context) as server:
        config = authority.kubeconfig(folder / "part", server=server.url, user=user)
        config.rename(folder / "kubeconfig")
        while True:
            time.sleep(_BOOKMARK_SECONDS)
            server.bookmark()


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="gets a kubeconfig as soon as it serves")
    parser.add_argument("--bindings", type=int, default=100_000)
    parser.add_argument("--clusters", type=int, default=5_000)
    arguments = parser.parse_args(argv)
    os.umask(0o077)
    serve(Sizes(arguments.bindings, arguments.clusters), arguments.folder)


if __name__ == "__main__":
    main()
