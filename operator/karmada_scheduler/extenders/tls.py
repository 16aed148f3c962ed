"""TLS for connections to an extender.

Source: kubernetes v1.35 pkg/scheduler/extender.go makeTransport, k8s.io/client-go transport.TLSConfigFor.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from karmada_scheduler.client.tls import verify_as_go_does
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
    try:
        has_ca = bool(tls.ca_data or tls.ca_file)
        # Characters outside ASCII can only be in comments between the certificates.
        context = ssl.create_default_context(
            cadata=tls.ca_data.decode("ascii", "backslashreplace") or None,
            cafile=None if tls.ca_data else tls.ca_file or None,
        )
    except OSError as error:  # an SSLError is an OSError
        raise _unusable(config, "caData" if tls.ca_data else f"caFile {tls.ca_file}", error) from error
    verify_as_go_does(context)
    if tls.insecure or (config.enable_https and not has_ca):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if (tls.cert_data or tls.cert_file) and (tls.key_data or tls.key_file):
        _load_client_certificate(context, config, tls)
    return context


def _load_client_certificate(context: ssl.SSLContext, config: ExtenderConfig, tls: ExtenderTLS) -> None:
    """Load the client certificate. OpenSSL reads it from files only, so data is written to a temporary folder."""
    certificate = "certData" if tls.cert_data else f"certFile {tls.cert_file}"
    key = "keyData" if tls.key_data else f"keyFile {tls.key_file}"
    try:
        with tempfile.TemporaryDirectory(prefix="extender-") as folder:  # readable by this user only
            context.load_cert_chain(
                _as_file(Path(folder, "crt"), tls.cert_data) or tls.cert_file,
                _as_file(Path(folder, "key"), tls.key_data) or tls.key_file,
                password=lambda: "",  # no prompt for an encrypted key
            )
    except OSError as error:
        raise _unusable(config, f"{certificate} with {key}", error) from error


def _as_file(path: Path, content: bytes) -> Path | None:
    if not content:
        return None
    path.write_bytes(content)
    return path


def _unusable(config: ExtenderConfig, what: str, error: Exception) -> ExtenderTLSError:
    text = getattr(error, "strerror", None) or str(error)
    return ExtenderTLSError(f"extender {config.shown_url}: tlsConfig: cannot use {what}: {text}")
