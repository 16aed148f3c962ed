"""Who we are to the API server, how we recognise it, and until when."""

from __future__ import annotations

import hashlib
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from karmada_scheduler.client import expiry
from karmada_scheduler.client.tls import verify_as_go_does


class ConnectionConfigError(Exception):
    """No usable credentials: a kubeconfig that is missing, broken or names no server."""


Fingerprint = tuple[tuple[str, tuple[int, int, int] | None], ...]
"""Paths of files with time of change (ns), size and inode; None for a file that is not there."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Identity:
    """Where the API server is, how it is recognised, and how it recognises us.

    Attributes:
        server: The URL.
        authorization: The ``Authorization`` header, None for none.
        tls: The same object as long as certificates are the same.
        tls_name: The name that the server's certificate is for, if not that of the URL.
        proxy_url: The proxy that the kubeconfig names.
        material: A hash of what ``tls`` was made of.
        files: What all of this was read from.
        loaded_at: In seconds since 1970.
        expires_at: In seconds since 1970, None where that is not known.
        shortcoming: What expires at ``expires_at``.
        valid_from: When the client certificate begins to be valid, as ``expires_at``.
        credential: What is sent as a proof of who we are, and where it comes from, for people.
        warnings: What should be known about these credentials although they can be used.
    """

    server: str
    authorization: str | None
    tls: ssl.SSLContext
    tls_name: str | None
    proxy_url: str | None
    material: bytes
    files: Fingerprint
    loaded_at: float
    expires_at: float | None = None
    shortcoming: str = ""
    valid_from: float | None = None
    credential: str = ""
    warnings: tuple[str, ...] = ()

    def differs_from(self, other: Identity) -> bool:
        """Tell whether a request that one was refused could be granted to the other."""
        return self.route != other.route or self.authorization != other.authorization

    @property
    def route(self) -> tuple[object, ...]:
        """What connections depend on."""
        return self.server, self.tls, self.tls_name, self.proxy_url

    def expired(self, now: float) -> str:
        """Say what has expired, "" if nothing is known to have."""
        if self.expires_at is None or now < self.expires_at:
            return ""
        return f"{self.shortcoming} expired on {expiry.shown(self.expires_at)}"

    def not_yet_valid(self, now: float) -> str:
        """Say that the client certificate is not valid yet, "" if it is or nothing is known."""
        if self.valid_from is None or now >= self.valid_from:
            return ""
        return f"the client certificate is valid from {expiry.shown(self.valid_from)} only"

    def files_changed(self) -> bool:
        """Tell whether any file is not as it was when it was read."""
        return any(stat_of(path) != seen for path, seen in self.files)


@dataclass(frozen=True, slots=True)
class Pem:
    """A certificate or a key.

    Attributes:
        source: Where it comes from, such as ``client-key /etc/karmada/tls.key``.
        content: PEM.
    """

    source: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TLSMaterial:
    """What a TLS context is made of; ``authority`` is who signs the server's certificate, None for the system's CAs."""

    authority: Pem | None = None
    certificate: Pem | None = None
    key: Pem | None = None
    insecure: bool = False

    def digest(self) -> bytes:
        """Return a hash that is the same as long as all of it is."""
        digest = hashlib.sha256(b"insecure" if self.insecure else b"")
        for part in (self.authority, self.certificate, self.key):
            digest.update(hashlib.sha256(part.content if part else b"").digest())
        return digest.digest()

    def context(self) -> ssl.SSLContext:
        """Make the context; ConnectionConfigError if a certificate or the key cannot be used."""
        authority = self.authority
        try:
            context = ssl.create_default_context(
                # What is not ASCII in a bundle can only stand in comments between the certificates.
                cadata=authority.content.decode("ascii", "backslashreplace") if authority else None
            )
        except ssl.SSLError as problem:
            raise _unusable(authority.source if authority else "the system's CAs", problem) from problem
        verify_as_go_does(context)
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate is not None and self.key is not None:
            _show(context, self.certificate, self.key)
        elif self.certificate is not None or self.key is not None:
            raise ConnectionConfigError("client-certificate and client-key: one of them is missing")
        return context


def _show(context: ssl.SSLContext, certificate: Pem, key: Pem) -> None:
    """Load our certificate. OpenSSL reads it from files only, so it goes through a private folder."""
    with tempfile.TemporaryDirectory(prefix="karmada-pyscheduler-") as folder:  # nobody else may look into it
        paths = Path(folder, "crt"), Path(folder, "key")
        for path, part in zip(paths, (certificate, key), strict=True):
            path.write_bytes(part.content)
        try:
            # An encrypted key is an error instead of a question at the terminal.
            context.load_cert_chain(*paths, password=lambda: "")
        except (ssl.SSLError, OSError) as problem:
            raise _unusable(f"{certificate.source} with {key.source}", problem) from problem


def _unusable(what: str, problem: Exception) -> ConnectionConfigError:
    return ConnectionConfigError(f"certificate or key cannot be used: {what}: {problem}")


def stat_of(path: str) -> tuple[int, int, int] | None:
    """Return what changes when a file does, symbolic links followed; None for a file that is not there."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
