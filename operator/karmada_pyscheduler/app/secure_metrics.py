"""``/metrics`` over HTTPS, for those whom the API server of the host lets get it, as controller-runtime serves it.

Who scrapes has a token of the cluster in which the scheduler runs. Karmada does not know it, and is not asked.
The listener runs in the supervisor's event loop.

Source: sigs.k8s.io/controller-runtime v0.23.1 pkg/metrics/filters/filters.go.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from karmada_pyscheduler.app.environment import Environment
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.identity import ConnectionConfigError
from karmada_pyscheduler.client.reader_access import ReaderAccess
from karmada_pyscheduler.client.reviews import HOST
from karmada_pyscheduler.http_server.certificate import CertificateError, ServerCertificate
from karmada_pyscheduler.http_server.read_only_server import ReadOnlyServer
from karmada_pyscheduler.http_server.server import scrape
from karmada_scheduler.config.options import Options
from karmada_scheduler.config.problems import ConfigError, ConfigProblem


def load_certificate(flag: str, certificate: Path, key: Path) -> ServerCertificate:
    """Return the certificate that ``flag`` names. Raises ConfigError."""
    try:
        return ServerCertificate(certificate, key)
    except CertificateError as error:
        raise ConfigError([ConfigProblem(flag, str(error))]) from error


PATH: Final = "/metrics"


def secure_metrics(
    options: Options, environment: Environment, exposition: Callable[[], bytes], content_type: str
) -> ReadOnlyServer:
    """Return the listener of the metrics. It asks the API server of the host at the first scrape.

    Args:
        options: The validated command line; the metrics have a certificate.
        environment: The environment of the process.
        exposition: Returns the metrics.
        content_type: Of the metrics.

    Raises:
        ConfigError: The certificate cannot be used.
    """
    certificate, key = options.metrics_tls_cert_file, options.metrics_tls_key_file
    assert certificate is not None  # otherwise ``http_server.server`` serves them
    assert key is not None

    async def connect() -> Connection:
        try:
            # Without ~/.kube: it may be about Karmada, to which nobody may send tokens of the host.
            return await environment.connect(
                kubeconfig=options.metrics_kubeconfig, master="", has_default=False
            )
        except ConnectionConfigError as error:
            raise ConnectionConfigError(
                f"--metrics-tls-cert-file: the API server of the host cannot be asked about readers: {error}; mount the "
                "token of a ServiceAccount that may create tokenreviews and subjectaccessreviews, or name --metrics-kubeconfig"
            ) from error

    readers = ReaderAccess(
        load_certificate("--metrics-tls-cert-file", certificate, key),
        connect,
        what="metrics",
        path=PATH,
        reviewer=HOST,
    )
    return ReadOnlyServer(
        options.metrics_address,
        {PATH: scrape(exposition, content_type)},
        tls=readers.certificate.context,
        access=readers.access(None),  # Prometheus sends the Pod's address
        name="metrics",
    )
