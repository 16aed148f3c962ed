"""When a certificate ends."""

from __future__ import annotations

import math

from cryptography.x509 import load_pem_x509_certificate


def end_of(chain: bytes) -> float:
    """Return when the first certificate of a chain in PEM ends, in seconds since 1970; not a number if it cannot be read."""
    try:
        return load_pem_x509_certificate(chain).not_valid_after_utc.timestamp()
    except ValueError:  # OpenSSL, which serves it, takes more than this library does
        return math.nan
