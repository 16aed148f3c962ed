"""The certificate of a server, as its flags name it."""

from __future__ import annotations

from pathlib import Path

from karmada_scheduler.config.problems import ConfigError, ConfigProblem
from karmada_scheduler.http_server.certificate import CertificateError, ServerCertificate


def load_certificate(flag: str, certificate: Path, key: Path) -> ServerCertificate:
    """Return the certificate that ``flag`` names. Raises ConfigError."""
    try:
        return ServerCertificate(certificate, key)
    except CertificateError as error:
        raise ConfigError([ConfigProblem(flag, str(error))]) from error
