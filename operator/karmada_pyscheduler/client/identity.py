"""The credentials of a connection: server, TLS, authorization, and their expiry."""

from __future__ import annotations

import base64
import hashlib
import re
import ssl
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson

from karmada_scheduler.structs import Struct


def verify_as_go_does(context: ssl.SSLContext) -> None:
    """Make a context accept the certificate chains that Go accepts; verification stays on.

    Python 3.13 enforces rules of RFC 5280 for issuers that Go does not check. It refuses an authority without key usage,
    as Karmada's chart and ``hack/local-up-karmada.sh`` create it, and a certificate without the identifier of the
    signing key. Before 3.13, an authority had to be self-signed; Go trusts every certificate in the bundle.
    """
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


_SEQUENCE: Final = 0x30
_EXPLICIT_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_YEAR_10000: Final = 253_402_300_800
_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def validity_of_certificate(pem: bytes) -> tuple[float | None, float | None]:
    """Return ``notBefore`` and ``notAfter`` of the first certificate of a PEM file, in seconds since 1970; None without one.

    The standard library reads no certificate that it has not verified; ``cryptography`` would take 10 MB.

    Source: RFC 5280, 4.1: Certificate, TBSCertificate, Validity.
    """
    found = _PEM.search(pem.decode("latin-1"))
    if found is None:
        return None, None
    try:
        der = ssl.PEM_cert_to_DER_cert(found[0])
        _, certificate, _ = _element(der)
        _, body, _ = _element(certificate)
        tag, _, rest = _element(body)
        if tag == _EXPLICIT_VERSION:
            _, _, rest = _element(rest)  # the serial number
        for _ in ("signature", "issuer"):
            _, _, rest = _element(rest)
        tag, validity, _ = _element(rest)
        if tag != _SEQUENCE:
            return None, None
        first_tag, first, rest = _element(validity)
        last_tag, last, _ = _element(rest)
        return _time(first_tag, first.decode("ascii")), _time(last_tag, last.decode("ascii"))
    except (ValueError, IndexError):
        return None, None


def _element(data: bytes) -> tuple[int, bytes, bytes]:
    """Split DER into the tag and the content of its first element, and the rest."""
    tag, length, start = data[0], data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start], "big")
    return tag, data[start : start + length], data[start + length :]


def _time(tag: int, text: str) -> float:
    if tag == _UTC_TIME:
        text = ("20" if int(text[:2]) < 50 else "19") + text
    return datetime.fromisoformat(f"{text[:8]}T{text[8:14]}Z").timestamp()


def claims_of_token(token: str) -> Mapping[str, Any]:
    """Return what a JSON web token says about itself, which nobody has verified; nothing for tokens of other kinds."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) else {}


def expiry_of_token(token: str) -> float | None:
    """Return the ``exp`` of a JSON web token, in seconds since 1970; None for tokens of other kinds."""
    expires = claims_of_token(token).get("exp")
    if isinstance(expires, int | float) and not isinstance(expires, bool) and 0 < expires < _YEAR_10000:
        return float(expires)
    return None


def shown_time(moment: float) -> str:
    """Return a time as messages show it."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class ConnectionConfigError(Exception):
    """There are no usable credentials: a kubeconfig is missing, cannot be read, or has no server."""


Fingerprint = tuple[tuple[str, tuple[int, int, int] | None], ...]
"""Paths of files with modification time (ns), size and inode; None for a missing file."""


class Identity(Struct, frozen=True, kw_only=True, eq=False):
    """The API server, how its certificate is verified, and our credentials.

    Attributes:
        server: The URL.
        authorization: The ``Authorization`` header, None for none.
        tls: The TLS context; the same object as long as the certificates are the same.
        tls_name: The name in the server's certificate, if it is not that of the URL.
        proxy_url: The proxy of the kubeconfig or of the environment.
        proxy: The same without its password, and what names it, shown to users; "" without a proxy.
        material: A hash of the certificates and keys of ``tls``.
        files: The files from which the credentials were read.
        loaded_at: In seconds since 1970.
        expires_at: In seconds since 1970, None if unknown.
        shortcoming: The credential that expires at ``expires_at``.
        valid_from: Start of the client certificate's validity, in seconds since 1970, None if unknown.
        credential: The kind and origin of the credential, shown to users.
        warnings: Warnings about usable credentials.
    """

    server: str
    authorization: str | None
    tls: ssl.SSLContext
    tls_name: str | None
    proxy_url: str | None
    material: bytes
    files: Fingerprint
    loaded_at: float
    proxy: str = ""
    expires_at: float | None = None
    shortcoming: str = ""
    valid_from: float | None = None
    credential: str = ""
    warnings: tuple[str, ...] = ()

    def differs_from(self, other: Identity) -> bool:
        """Return whether a request that was refused with one may succeed with the other."""
        return self.route != other.route or self.authorization != other.authorization

    @property
    def route(self) -> tuple[object, ...]:
        """The values that connections depend on."""
        return self.server, self.tls, self.tls_name, self.proxy_url

    def expired(self, now: float) -> str:
        """Return the names of expired credentials, "" if there are none."""
        if self.expires_at is None or now < self.expires_at:
            return ""
        return f"{self.shortcoming} expired on {shown_time(self.expires_at)}"

    def not_yet_valid(self, now: float) -> str:
        """Return that the client certificate is not valid yet, "" if it is valid or its validity is unknown."""
        if self.valid_from is None or now >= self.valid_from:
            return ""
        return f"the client certificate is valid from {shown_time(self.valid_from)} only"

    def files_changed(self) -> bool:
        """Return whether any file has changed since it was read."""
        return any(stat_of(path) != seen for path, seen in self.files)


class UnusableCertificateError(ConnectionConfigError):
    """A certificate or a key that cannot be used.

    Attributes:
        what: Its origin, and why.
    """

    def __init__(self, source: str, problem: Exception) -> None:
        """Name its origin."""
        self.what = f"{source}: {getattr(problem, 'strerror', None) or problem}"
        super().__init__(f"certificate or key cannot be used: {source}: {problem}")


class Pem(Struct, frozen=True):
    """A certificate or a key.

    Attributes:
        source: Its origin, such as ``client-key /etc/karmada/tls.key``.
        content: PEM.
    """

    source: str
    content: bytes


class TLSMaterial(Struct, frozen=True, kw_only=True):
    """Certificates and key of a TLS context; ``authority`` signs the server's certificate, None for the system's CAs."""

    authority: Pem | None = None
    certificate: Pem | None = None
    key: Pem | None = None
    insecure: bool = False

    def digest(self) -> bytes:
        """Return a hash of all certificates and keys."""
        digest = hashlib.sha256(b"insecure" if self.insecure else b"")
        for part in (self.authority, self.certificate, self.key):
            digest.update(hashlib.sha256(part.content if part else b"").digest())
        return digest.digest()

    def context(self) -> ssl.SSLContext:
        """Return a TLS context; ConnectionConfigError if a certificate or the key cannot be used."""
        authority = self.authority
        try:
            context = ssl.create_default_context(
                # Other characters than ASCII occur only in comments between the certificates.
                cadata=authority.content.decode("ascii", "backslashreplace") if authority else None
            )
        except ssl.SSLError as problem:
            raise UnusableCertificateError(
                authority.source if authority else "the system's CAs", problem
            ) from problem
        verify_as_go_does(context)
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate is not None and self.key is not None:
            _load_certificate(context, self.certificate, self.key)
        elif self.certificate is not None or self.key is not None:
            raise ConnectionConfigError("client-certificate and client-key: one of them is missing")
        return context


def _load_certificate(context: ssl.SSLContext, certificate: Pem, key: Pem) -> None:
    """Load our certificate. OpenSSL reads it only from files, so it is written to a private folder."""
    with tempfile.TemporaryDirectory(prefix="karmada-pyscheduler-") as folder:  # only this user may read it
        paths = Path(folder, "crt"), Path(folder, "key")
        for path, part in zip(paths, (certificate, key), strict=True):
            path.write_bytes(part.content)
        try:
            # An encrypted key is an error instead of a prompt.
            context.load_cert_chain(*paths, password=lambda: "")
        except (ssl.SSLError, OSError) as problem:
            raise UnusableCertificateError(f"{certificate.source} with {key.source}", problem) from problem


def stat_of(path: str) -> tuple[int, int, int] | None:
    """Return modification time (ns), size and inode of a file, symbolic links followed; None for a missing file."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
