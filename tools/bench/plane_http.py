"""The connection of the benchmark's own processes to the API server: aiohttp, one kubeconfig, HTTP/1.1."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

ROOT = Path(__file__).parents[2]
BINDINGS = "/apis/work.karmada.io/v1alpha2/namespaces/{namespace}/resourcebindings"


@asynccontextmanager
async def session(kubeconfig: Path, *, connections: int) -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a session for the API server of a kubeconfig of tools/controlplane, which is JSON with a certificate.

    Args:
        kubeconfig: The user and the server.
        connections: How many at most; so many requests are in flight at once.
    """
    config = json.loads(kubeconfig.read_text())  # noqa: ASYNC240  before anything is measured
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    connector = aiohttp.TCPConnector(limit=connections, ssl=trust(cluster, user), keepalive_timeout=300)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
    async with aiohttp.ClientSession(
        cluster["server"], connector=connector, timeout=timeout, read_bufsize=1 << 20
    ) as opened:
        yield opened


def trust(cluster: dict[str, str], user: dict[str, str]) -> ssl.SSLContext:
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    with tempfile.NamedTemporaryFile() as pair:  # ssl takes a client's certificate from a file only
        for part in ("client-certificate-data", "client-key-data"):
            pair.write(base64.b64decode(user[part]))
        pair.flush()
        context.load_cert_chain(pair.name)
    return context
