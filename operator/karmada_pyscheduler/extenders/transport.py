"""Sends the bytes of a request to an extender over HTTP or TLS, and returns those of its response."""

from __future__ import annotations

import io
import re
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import aiohttp

from karmada_pyscheduler.client.http import AGENT
from karmada_pyscheduler.client.identity import Pem, TLSMaterial, UnusableCertificateError
from karmada_scheduler.config.extenders import ExtenderConfig, ExtenderTLS


class ExtenderTLSError(ValueError):
    """Certificates that cannot be used; the text names the extender and the field."""


def context_for(config: ExtenderConfig) -> ssl.SSLContext | None:
    """Return the TLS context for an extender; reads its files.

    ``*Data`` takes precedence over ``*File``. With ``enableHTTPS`` and without a CA the server's certificate is not
    verified. Without both, the CAs of the system verify it.

    Returns:
        None for an http URL.

    Raises:
        ExtenderTLSError: A file is missing, or has no certificate or key.
    """
    if not config.url_prefix.lower().startswith("https:"):
        return None
    tls = config.tls_config or ExtenderTLS()
    has_ca = bool(tls.ca_data or tls.ca_file)
    has_certificate = bool((tls.cert_data or tls.cert_file) and (tls.key_data or tls.key_file))
    try:
        return TLSMaterial(
            authority=_pem("ca", tls.ca_data, tls.ca_file),
            certificate=_pem("cert", tls.cert_data, tls.cert_file) if has_certificate else None,
            key=_pem("key", tls.key_data, tls.key_file) if has_certificate else None,
            insecure=tls.insecure or (config.enable_https and not has_ca),
        ).context()
    except UnusableCertificateError as error:
        text = f"extender {config.shown_url}: tlsConfig: cannot use {error.what}"
        raise ExtenderTLSError(text) from error


def _pem(what: str, data: bytes, file: str) -> Pem | None:
    if data or not file:
        return Pem(f"{what}Data", data) if data else None
    try:
        # An empty CA must not become that of the system.
        return Pem(f"{what}File {file}", Path(file).read_bytes() or b"\n")
    except OSError as error:
        raise UnusableCertificateError(f"{what}File {file}", error) from error


_IDLE_SECONDS: Final = 90.0
"""How long an unused connection is kept, as in Go; a proxy may drop it later."""

_OF_AIOHTTP: Final = re.compile(r" ssl:(?:\w+|<[^>]*>)")
"""A suffix that aiohttp adds to the host in errors, also for URLs without TLS."""

_CHUNK: Final = 256 * 1024


class ExtenderResponse(NamedTuple):
    """A response; the body of one that is not 200 is cut."""

    status: int
    body: bytes


class ResponseTooLargeError(Exception):
    """A response is larger than allowed."""


class ExtenderTransport(Protocol):
    """Connections to one extender."""

    async def post(self, url: str, body: bytes, *, limit: int) -> ExtenderResponse:
        """Send one request.

        Args:
            url: Where to.
            body: A JSON document.
            limit: The largest size of a response of status 200, in bytes.

        Raises:
            TimeoutError: There was no response within the ``httpTimeout`` of the extender.
            ResponseTooLargeError: The response is larger than ``limit``.
            ConnectionError: There was no whole response; the text says why.
        """

    async def close(self) -> None:
        """Close the connections; requests under way fail."""


NewExtenderTransport = Callable[[ExtenderConfig], ExtenderTransport]
"""Makes the transport to an extender. ExtenderTLSError: a certificate, key or CA cannot be used."""


class HttpExtenderTransport:
    """Persistent connections over HTTP. The proxies of the environment are ignored, and redirects are not followed."""

    def __init__(self, config: ExtenderConfig) -> None:
        """Read the certificates.

        Raises:
            ExtenderTLSError: A certificate, key or CA cannot be used.
        """
        self._timeout = config.http_timeout
        self._tls = context_for(config)
        self._server_name = (config.tls_config.server_name if config.tls_config else "") or None
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, body: bytes, *, limit: int) -> ExtenderResponse:
        """Send one request; see ``ExtenderTransport.post``."""
        try:
            async with self._open_session().post(
                url, data=io.BytesIO(body), server_hostname=self._server_name, allow_redirects=False
            ) as response:
                if response.status != 200:
                    return ExtenderResponse(response.status, await response.content.read(_CHUNK))
                received = bytearray()
                async for chunk in response.content.iter_chunked(_CHUNK):
                    received += chunk
                    if len(received) > limit:
                        raise ResponseTooLargeError
                return ExtenderResponse(200, bytes(received))
        except TimeoutError:
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ConnectionError(_OF_AIOHTTP.sub("", str(error)) or type(error).__name__) from error

    async def close(self) -> None:
        """Close the connections; requests under way fail."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    ssl=True if self._tls is None else self._tls, keepalive_timeout=_IDLE_SECONDS
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=self._timeout),
                headers={
                    "Content-Type": "application/json",
                    "Accept": "application/json",
                    "Accept-Encoding": "identity",
                    "User-Agent": AGENT,
                },
            )
        return self._session
