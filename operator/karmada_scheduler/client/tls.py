"""Which certificates are taken: those that Go takes, on every version of Python."""

from __future__ import annotations

import ssl


def verify_as_go_does(context: ssl.SSLContext) -> None:
    """Change how a context verifies chains, not whether it does.

    Python 3.13 began to refuse what RFC 5280 asks of those who issue certificates and Go does not look at: an
    authority without key usage, as Karmada's chart and ``hack/local-up-karmada.sh`` create it, or a
    certificate that does not say which key signed it. Before 3.13 it wanted an authority to be self-signed;
    for Go whatever is in the bundle is trusted.
    """
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
