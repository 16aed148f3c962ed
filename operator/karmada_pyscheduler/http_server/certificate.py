"""The certificate of a server, which is replaced while the server runs."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

_CHECK_SECONDS: Final = 10.0


class CertificateError(Exception):
    """Certificate and key cannot be used; the text says why."""


class ServerCertificate:
    """A certificate chain and its key in PEM files, such as those of a Secret."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Load the files. Raises CertificateError."""
        self._paths = certificate, key
        self._loaded = self._contents()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        """The context for the server; new connections use what was loaded last."""
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._load()
        self._problem = ""

    @property
    def chain(self) -> bytes:
        """The chain that is served, in PEM, the certificate of the server first."""
        return self._loaded[0]

    def refresh(self) -> None:
        """Load the files if they have changed. A pair that cannot be used is logged, and the one before stays."""
        try:
            found = self._contents()
            if found == self._loaded:
                return
            self._load()
        except CertificateError as error:
            if str(error) != self._problem:
                log.error("The certificate stays the one before: %s", error)  # noqa: TRY400 (the text says it)
            self._problem = str(error)
        else:
            self._loaded, self._problem = found, ""
            log.info("Loaded the certificate %s", self._paths[0])

    async def keep_fresh(self) -> None:
        """Look for new files every 10 seconds, until cancelled."""
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            self.refresh()

    def _contents(self) -> tuple[bytes, ...]:
        try:
            return tuple(path.read_bytes() for path in self._paths)
        except OSError as error:
            raise CertificateError(f"{error.filename}: {error.strerror}") from error

    def _load(self) -> None:
        # A context of its own is tried first: a pair that does not match would leave half of it in the one that is used.
        for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self.context):
            try:
                context.load_cert_chain(*self._paths, password=lambda: "")
            except OSError as error:  # an SSLError is one
                raise CertificateError(
                    f"{' and '.join(map(str, self._paths))} are no certificate with its key in PEM: {error}"
                ) from error
