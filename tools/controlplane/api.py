"""A thin client of Kubernetes-style API servers, for the harness and the tests.

Objects are plain dictionaries, as the server sends them. It shares no code with the
scheduler under test, so that neither can hide the other's mistakes.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util import create_urllib3_context

from .pki import Credentials

Object = dict[str, Any]
Objects = list[Object]  # within Client, `list` is its method
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
FIELD_MANAGER = "controlplane-harness"


class _LocalConnection(HTTPSConnection):
    """Accepts the authorities of ``pki``, which lack what is checked from Python 3.13 on."""

    def connect(self) -> None:
        """Connect with a context of its own: certificates are loaded into it, and threads share sessions."""
        self.ssl_context = create_urllib3_context()
        self.ssl_context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        super().connect()


class _LocalPool(HTTPSConnectionPool):
    ConnectionCls = _LocalConnection


class _LocalAdapter(HTTPAdapter):
    """Connects as ``_LocalConnection``."""

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        """Make the pools of a session."""
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": HTTPConnectionPool, "https": _LocalPool}


def local_session() -> requests.Session:
    """Return a session for servers of this machine."""
    session = requests.Session()
    session.mount("https://", _LocalAdapter(pool_maxsize=64, pool_block=False))
    # Else REQUESTS_CA_BUNDLE and proxies of the environment take precedence over the settings of requests.
    session.trust_env = False
    return session


class ApiError(RuntimeError):
    """The server answered with an error.

    Attributes:
        status: The HTTP status.
        reason: Kubernetes' word for it, such as NotFound or Conflict.
    """

    def __init__(self, request: str, status: int, reason: str, message: str) -> None:
        super().__init__(f"{request}: {status} {reason}: {message}")
        self.status = status
        self.reason = reason


class Client:
    """A client of one API server as one user. Threads may share it."""

    def __init__(self, server: str, *, ca: Path, user: Credentials | str) -> None:
        self.server = server
        self._session = local_session()
        self._session.verify = str(ca)
        if isinstance(user, str):
            self._session.headers["Authorization"] = f"Bearer {user}"
        else:
            self._session.cert = (str(user.certificate), str(user.key))
        self._session.headers["User-Agent"] = FIELD_MANAGER
        self._paths: dict[tuple[str, str], tuple[str, bool]] = {}
        self._discovery = threading.Lock()

    def close(self) -> None:
        """Close all connections."""
        self._session.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        content_type: str = "application/json",
        params: Mapping[str, str] | None = None,
        timeout: float = 30,
    ) -> requests.Response:
        """Send one request and return the response; raises ApiError for 400 and above."""
        answer = self.send(method, path, body=body, content_type=content_type, params=params, timeout=timeout)
        if answer.status_code >= 400:
            try:
                status = answer.json()
                reason, message = str(status.get("reason", "")), str(status.get("message", ""))
            except (ValueError, AttributeError):
                reason, message = answer.reason, answer.text[:500]
            raise ApiError(f"{method} {path}", answer.status_code, reason, message)
        return answer

    def send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        params: Mapping[str, str] | None = None,
        timeout: float = 30,
    ) -> requests.Response:
        """Send one request and return the response, whatever its status."""
        content = {"Content-Type": content_type} if body is not None else {}
        return self._session.request(
            method,
            self.server + path,
            data=None if body is None else json.dumps(body),
            headers={"Accept": accept, **content},
            params=params,
            timeout=timeout,
        )

    def get(self, path: str, **params: str) -> Object:
        """Read one object, or a whole list as the server wraps it."""
        answer: Object = self.request("GET", path, params=params).json()
        return answer

    def find(self, path: str) -> Object | None:
        """Read one object, None if there is none."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, path: str, **params: str) -> Objects:
        """Read the objects of a collection, such as /api/v1/namespaces/demo/events."""
        items: Objects = self.get(path, **params)["items"]
        return items

    def create(self, manifest: Object) -> Object:
        """Create an object; one that already exists is an error."""
        answer: Object = self.request("POST", self.collection_of(manifest), body=manifest).json()
        return answer

    def apply(self, manifest: Object) -> Object:
        """Create or update an object by server-side apply."""
        params = {"fieldManager": FIELD_MANAGER, "force": "true"}
        path = self.path_of(manifest)
        answer: Object = self.request(
            "PATCH", path, body=manifest, content_type=APPLY_PATCH, params=params
        ).json()
        return answer

    def patch(self, path: str, body: object) -> Object:
        """Merge-patch an object, or a subresource such as .../status."""
        answer: Object = self.request("PATCH", path, body=body, content_type=MERGE_PATCH).json()
        return answer

    def put(self, path: str, body: object) -> Object:
        """Replace an object or a subresource."""
        answer: Object = self.request("PUT", path, body=body).json()
        return answer

    def delete(self, path: str, *, missing_ok: bool = True) -> None:
        """Delete one object."""
        try:
            self.request("DELETE", path)
        except ApiError as error:
            if not (missing_ok and error.status == 404):
                raise

    def watch(self, path: str, *, stop: threading.Event, timeout: int = 20) -> Iterator[tuple[str, Object]]:
        """Yield (event type, object) for a collection until stopped; existing objects come first, as ADDED.

        A watch that breaks for whatever reason starts again from a fresh list. Events may then repeat, and what the list
        lacks is reported as DELETED, with its last known state. Stopping is noticed with the next event or when one watch
        runs out (timeout, in seconds).
        """
        known: dict[tuple[str, str], Object] = {}
        while not stop.is_set():
            try:
                listed = self.get(path)
                items = {_key(item): item for item in listed["items"]}
                for gone in [known.pop(key) for key in known.keys() - items.keys()]:
                    yield "DELETED", gone
                for key, item in items.items():
                    known[key] = item
                    yield "ADDED", item
                for event, item in self._stream(
                    path, listed["metadata"]["resourceVersion"], stop=stop, timeout=timeout
                ):
                    if event == "DELETED":
                        known.pop(_key(item), None)
                    else:
                        known[_key(item)] = item
                    yield event, item
            except (ApiError, requests.RequestException):
                stop.wait(0.3)

    def _stream(
        self, path: str, version: str, *, stop: threading.Event, timeout: int
    ) -> Iterator[tuple[str, Object]]:
        while not stop.is_set():
            params = {
                "watch": "true",
                "resourceVersion": version,
                "timeoutSeconds": str(timeout),
                "allowWatchBookmarks": "true",
            }
            with self._session.get(
                self.server + path, params=params, stream=True, timeout=(5, timeout + 5)
            ) as answer:
                if answer.status_code >= 400:
                    raise ApiError(f"WATCH {path}", answer.status_code, answer.reason, answer.text[:500])
                for line in answer.iter_lines(chunk_size=None):
                    if stop.is_set():
                        return
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        return
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        yield event["type"], event["object"]

    def collection_of(self, manifest: Object) -> str:
        """Return the path of the collection an object belongs to, by discovery of its kind."""
        prefix, plural, namespaced = self._resource(manifest["apiVersion"], manifest["kind"])
        if not namespaced:
            return f"{prefix}/{plural}"
        return f"{prefix}/namespaces/{manifest['metadata'].get('namespace', 'default')}/{plural}"

    def path_of(self, manifest: Object) -> str:
        """Return the path of an object."""
        return f"{self.collection_of(manifest)}/{manifest['metadata']['name']}"

    def _resource(self, api_version: str, kind: str) -> tuple[str, str, bool]:
        prefix = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        key = (api_version, kind)
        with self._discovery:
            if key not in self._paths:
                for resource in self.get(prefix)["resources"]:
                    if "/" not in resource["name"]:
                        found = (resource["name"], resource["namespaced"])
                        self._paths[api_version, resource["kind"]] = found
            if key not in self._paths:
                raise KeyError(f"{self.server} has no kind {kind} in {api_version}")
            return (prefix, *self._paths[key])


def _key(item: Object) -> tuple[str, str]:
    """Return namespace and name; the namespace is empty for cluster-scoped objects."""
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]
