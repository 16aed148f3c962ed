"""One connection to the Karmada API server: credentials, requests, errors.

``kubernetes.aio`` brings kubeconfigs, in-cluster tokens, exec plugins, TLS, and requests through a proxy that
the kubeconfig names. All other requests go through ``http``, which costs less than half of a request through
the library, and a tenth of one through its generated API classes and models. Proxies and ``.netrc`` of the
environment do not count.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import aiohttp
import orjson
from kubernetes.aio import client, config
from kubernetes.aio.config.config_exception import ConfigException

from karmada_scheduler import __version__
from karmada_scheduler.client.http import Answer, HttpConnections
from karmada_scheduler.tls import verify_as_go_does

MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
JSON: Final = "application/json"
LIST_PAGE: Final = 500
LONGEST_RETRY_AFTER_SECONDS: Final = 30.0
"""A server that asks to wait longer is asked again after this time all the same."""


class ConnectionConfigError(Exception):
    """No usable credentials: a kubeconfig that is missing, broken or names no server."""


class ApiError(Exception):
    """A request that did not succeed.

    Attributes:
        code: The HTTP status, or 0 when there was no answer.
        reason: The machine-readable reason of the API's ``Status`` object, such as ``Conflict``.
        causes: The reasons of its ``details.causes``.
        name: Its ``details.name``: which object it is about.
        retry_after: Seconds that the server asked to wait, if it did; at most ``LONGEST_RETRY_AFTER_SECONDS``.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        reason: str = "",
        causes: tuple[str, ...] = (),
        name: str = "",
        retry_after: float | None = None,
    ) -> None:
        """``message`` is what a person should read; upstream's own where the server wrote it."""
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.causes = causes
        self.name = name
        self.retry_after = None if retry_after is None else min(retry_after, LONGEST_RETRY_AFTER_SECONDS)

    @property
    def is_conflict(self) -> bool:
        """Whether the object was changed by someone else since it was read."""
        return self.code == 409 and self.reason == "Conflict"

    @property
    def is_not_found(self) -> bool:
        """Whether nothing was found under the path: no such object, no such kind, or no API server there."""
        return self.code == 404

    def says_gone(self, name: str) -> bool:
        """Tell whether the API server says that the object of this name does not exist.

        A 404 alone may come from a proxy, or from an API server that does not serve the kind yet.
        """
        return self.code == 404 and self.reason == "NotFound" and self.name == name

    @property
    def may_pass(self) -> bool:
        """Whether the server could not take the request just now: it kept silent, was too busy, or failed."""
        return self.code in (0, 429) or self.code >= 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What another HTTP client needs in order to reach the same server as the same user."""

    server: str
    tls: ssl.SSLContext
    token: str | None
    proxy_url: str | None


class Connection:
    """Requests to one API server, as one user. Close it when done."""

    def __init__(
        self,
        configuration: client.Configuration,
        on_answer: Callable[[str, str, int], None] = lambda *_: None,
    ) -> None:
        """Take a loaded configuration; nothing is sent yet.

        Args:
            configuration: Where and who.
            on_answer: Told the method, the host and the status of every request; 0 when there was no answer.
        """
        self._configuration = configuration
        self._on_answer = on_answer
        self._api = client.ApiClient(configuration)
        self._tls: ssl.SSLContext = self._api.rest_client.ssl_context
        verify_as_go_does(self._tls)
        self._server = str(configuration.host).rstrip("/")
        self._host = urlsplit(self._server).netloc
        self._agent = f"karmada-pyscheduler/{__version__}"
        self._direct = None if configuration.proxy else self._connections()

    def _connections(self) -> HttpConnections:
        tls_name = self._configuration.tls_server_name
        return HttpConnections(self._server, tls=self._tls, tls_name=tls_name, agent=self._agent)

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return self._server

    async def credentials(self) -> Credentials:
        """Return what kopf needs to log in; a token that expires is fresh at the time of the call."""
        token = await self._token()
        return Credentials(
            server=self._server,
            tls=self._tls,
            token=token.removeprefix("Bearer ") if token else None,
            proxy_url=self._configuration.proxy,
        )

    async def _token(self) -> str | None:
        auth = await self._configuration.auth_settings()
        bearer = auth.get("BearerToken")
        return str(bearer["value"]) if bearer and bearer.get("value") else None

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
        timeout: float = 30.0,
    ) -> Any:
        """Send one request and return the parsed answer.

        Args:
            method: The HTTP method.
            path: From the root of the server, such as ``/apis/work.karmada.io/v1alpha2/…``.
            body: Anything that JSON can hold; None sends none.
            content_type: Of the body.
            query: Query parameters.
            timeout: Seconds for the whole request.

        Raises:
            ApiError: Any answer but 2xx, and no answer at all (``code`` 0).
        """
        target = f"{path}?{urlencode(query)}" if query else path
        headers = {"Content-Type": content_type, "Accept": JSON}
        if method == "GET":
            headers["Accept-Encoding"] = "gzip"  # lists are long; the server leaves short answers as they are
        try:
            if (token := await self._token()) is not None:
                headers["Authorization"] = token.strip()
            answer = await self._send(method, target, headers, body, timeout)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            self._on_answer(method, self._host, 0)
            text = str(error) or type(error).__name__
            raise ApiError(f"cannot reach {self._server}: {text}") from error
        except (ConfigException, ValueError) as error:
            raise ApiError(f"cannot log in to {self._server}: {error}") from error
        self._on_answer(method, self._host, answer.status)
        if 200 <= answer.status < 300:
            return orjson.loads(answer.body) if answer.body else None
        raise _refusal(answer, f"{method} {path}")

    async def _send(
        self, method: str, target: str, headers: dict[str, str], body: Any, timeout: float
    ) -> Answer:
        if self._direct is not None:
            content = b"" if body is None else orjson.dumps(body)
            return await self._direct.request(method, target, headers=headers, body=content, timeout=timeout)
        headers["User-Agent"] = self._agent
        url = f"{self._server}{target}"
        response = await self._api.call_api(method, url, headers, body, _request_timeout=timeout)
        content = await response.read()
        return Answer(
            response.status, {name.lower(): value for name, value in response.headers.items()}, content
        )

    async def list_pages(self, path: str) -> AsyncIterator[tuple[list[dict[str, Any]], str]]:
        """Yield the items of a list page by page, each with the list's resourceVersion.

        Raises:
            ApiError: As ``request``; 410 when the list took longer than the server keeps it.
        """
        following: asyncio.Task[Any] | None = self._ask_for_page(path)
        try:
            while following is not None:
                answer = await following
                metadata = answer["metadata"]
                token = metadata.get("continue")
                # The server makes the next page while this one is taken in.
                following = self._ask_for_page(path, token) if token else None
                yield answer.get("items") or [], metadata["resourceVersion"]
        finally:
            if following is not None:
                following.cancel()

    def _ask_for_page(self, path: str, token: str = "") -> asyncio.Task[Any]:
        query = {"limit": str(LIST_PAGE), "continue": token} if token else {"limit": str(LIST_PAGE)}
        return asyncio.create_task(self.request("GET", path, query=query, timeout=120.0), name=f"list {path}")

    async def close(self) -> None:
        """Close the sockets."""
        if self._direct is not None:
            await self._direct.close()
        await self._api.close()


def _refusal(answer: Answer, what: str) -> ApiError:
    message, reason, name = "", "", ""
    causes: tuple[str, ...] = ()
    try:
        status = orjson.loads(answer.body)
        message = status.get("message") or ""
        reason = status.get("reason") or ""
        details = status.get("details") or {}
        name = details.get("name") or ""
        causes = tuple(cause.get("reason") or "" for cause in details.get("causes") or ())
    except (orjson.JSONDecodeError, AttributeError):
        message = answer.body[:200].decode(errors="replace").strip()
    retry_after = answer.headers.get("retry-after")
    return ApiError(
        message or f"{what}: HTTP {answer.status}",
        code=answer.status,
        reason=reason,
        causes=causes,
        name=name,
        retry_after=float(retry_after) if retry_after and retry_after.isdigit() else None,
    )


async def connect(
    *, kubeconfig: str, master: str, on_answer: Callable[[str, str, int], None] = lambda *_: None
) -> Connection:
    """Load credentials as karmada-scheduler does: the kubeconfig, else in-cluster, else ~/.kube.

    Args:
        kubeconfig: A path, or "".
        master: The server's address, which then overrides the kubeconfig's, or "".
        on_answer: See ``Connection``.

    Raises:
        ConnectionConfigError: Nothing usable was found; the text says what was tried.
    """
    settings = client.Configuration(client_session_kwargs={"trust_env": False})
    settings.connection_pool_maxsize = 256
    try:
        if kubeconfig:
            await _load_file(kubeconfig, settings)
        elif not master:
            await _load_default(settings)
    except Exception as error:  # the library lets through whatever a broken file provokes
        where = f"kubeconfig {kubeconfig}" if kubeconfig else "no --kubeconfig given"
        raise ConnectionConfigError(f"{where}: {' '.join(str(error).split())}") from error
    if master:
        settings.host = master if "://" in master else f"https://{master}"
    try:
        return Connection(settings, on_answer)
    except (ssl.SSLError, OSError) as error:
        where = kubeconfig or "the credentials found"
        raise ConnectionConfigError(f"{where}: certificate or key cannot be used: {error}") from error


async def _load_file(path: str, settings: client.Configuration) -> None:
    await config.load_kube_config(config_file=path, client_configuration=settings)


async def _load_default(settings: client.Configuration) -> None:
    try:
        config.load_incluster_config(client_configuration=settings)
    except ConfigException as in_cluster:
        try:
            await config.load_kube_config(client_configuration=settings)
        except (ConfigException, OSError) as error:
            raise ConfigException(
                f"not in a cluster ({in_cluster}) and no default kubeconfig ({error})"
            ) from error
