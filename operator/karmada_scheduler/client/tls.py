"""Verification of certificates as in Go, on every version of Python."""

from __future__ import annotations

import ssl


def verify_as_go_does(context: ssl.SSLContext) -> None:
    """Make a context accept the certificate chains that Go accepts; verification stays on.

    Python 3.13 enforces rules of RFC 5280 for issuers that Go does not check. It refuses an authority without key usage,
    as Karmada's chart and ``hack/local-up-karmada.sh`` create it, and a certificate without the identifier of the
    signing key. Before 3.13, an authority had to be self-signed; Go trusts every certificate in the bundle.
    """
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
