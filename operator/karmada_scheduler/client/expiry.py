"""The validity of certificates and tokens."""

from __future__ import annotations

import base64
import binascii
import re
import ssl
from datetime import UTC, datetime
from typing import Any, Final

import orjson

_SEQUENCE: Final = 0x30
_EXPLICIT_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_YEAR_10000: Final = 253_402_300_800
_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def of_certificate(pem: bytes) -> float | None:
    """Return the ``notAfter`` of the first certificate of a PEM file, in seconds since 1970, None if it has none."""
    return validity_of_certificate(pem)[1]


def validity_of_certificate(pem: bytes) -> tuple[float | None, float | None]:
    """Return ``notBefore`` and ``notAfter`` of the first certificate of a PEM file, as ``of_certificate`` does.

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
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def of_token(token: str) -> float | None:
    """Return the ``exp`` of a JSON web token, in seconds since 1970; None for tokens of other kinds."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims: Any = orjson.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error):
        return None
    expires = claims.get("exp") if isinstance(claims, dict) else None
    if isinstance(expires, int | float) and not isinstance(expires, bool) and 0 < expires < _YEAR_10000:
        return float(expires)
    return None


def shown(moment: float) -> str:
    """Return a time as messages show it."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
