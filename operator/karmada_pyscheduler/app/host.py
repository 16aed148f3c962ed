"""The parts of a process that work before plugins are loaded: signals, supervisor, probes, metrics.

Who scrapes ``/metrics`` over HTTPS has a token of the cluster in which the scheduler runs. Karmada does not know it, and is
not asked. Source: sigs.k8s.io/controller-runtime v0.23.1 pkg/metrics/filters/filters.go.
"""

from __future__ import annotations

import asyncio
import socket
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Final

from karmada_pyscheduler.client.connection import Connection, connect
from karmada_pyscheduler.client.identity import ConnectionConfigError
from karmada_pyscheduler.client.leader import Elector
from karmada_pyscheduler.client.reader_access import ReaderAccess
from karmada_pyscheduler.client.reviews import HOST
from karmada_pyscheduler.estimator.grpc_channel import GrpcChannel
from karmada_pyscheduler.estimator.transport import DialEstimator
from karmada_pyscheduler.extenders.transport import HttpExtenderTransport, NewExtenderTransport
from karmada_pyscheduler.http_server.listener import CertificateError, ServerCertificate
from karmada_pyscheduler.http_server.read_only_server import ReadOnlyServer, Server, scrape
from karmada_pyscheduler.informer.kopf_watch import EventSource, KopfWatch
from karmada_pyscheduler.metrics.metrics import CONTENT_TYPE, Metrics
from karmada_pyscheduler.process.supervisor import Supervisor
from karmada_pyscheduler.scheduler.decision_runner import new_budget
from karmada_scheduler.config.options import Options
from karmada_scheduler.config.problems import ConfigError, ConfigProblem
from karmada_scheduler.core.budget import Budget
from karmada_scheduler.framework.runtime.timeouts import CallTimeout, SigalrmTimeout
from karmada_scheduler.process import memory, process_exit
from karmada_scheduler.process.daemon_thread import InThread, in_daemon_thread
from karmada_scheduler.process.memory import release_free
from karmada_scheduler.process.process_exit import TerminationSignals
from karmada_scheduler.structs import Struct, field


def _now() -> datetime:
    return datetime.now(UTC)


def _boot_time() -> float:
    """Return seconds that include the time of suspension, where the system counts it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def _identity() -> str:
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Environment(Struct, frozen=True, kw_only=True):
    """The environment of one process.

    Attributes:
        clock: In seconds, never running backwards.
        boot_clock: As ``clock``, and also running while the machine is suspended.
        now: The time of day.
        random: Jitter of retries.
        identity: Returns the name of this process in the Lease; unique among all candidates.
        connect: Opens a connection to the Karmada API server.
        watch: Makes the event source.
        supervisor: Makes the thread that renews the Lease.
        server: Makes the server of probes and metrics.
        signals: The termination signals of the process.
        end: Ends the process at once; see ``process_exit.end``.
        in_thread: Runs a blocking function apart from the event loop.
        call_timeout: Makes the limit for each call of a plugin, in seconds.
        decision_budget: Makes the budget of one decision.
        extender_transport: Makes the connections to an extender.
        dial_estimator: Opens a channel to the estimator of a member cluster.
        initial_list: Entered while the caches are filled.
        after_list: Called after each complete list.
    """

    clock: Callable[[], float] = time.monotonic
    boot_clock: Callable[[], float] = _boot_time
    now: Callable[[], datetime] = _now
    random: Random = field(default_factory=Random)
    identity: Callable[[], str] = _identity
    connect: Callable[..., Awaitable[Connection]] = connect
    watch: Callable[..., EventSource] = KopfWatch
    supervisor: Callable[..., Supervisor] = Supervisor
    server: Callable[..., Server] = Server
    signals: TerminationSignals = process_exit.TERMINATION
    end: Callable[..., None] = process_exit.end
    in_thread: InThread = in_daemon_thread
    call_timeout: Callable[[float], CallTimeout] = SigalrmTimeout
    decision_budget: Callable[[], Budget] = new_budget
    extender_transport: NewExtenderTransport = HttpExtenderTransport
    dial_estimator: DialEstimator = GrpcChannel.dial
    initial_list: Callable[[], AbstractContextManager[None]] = memory.paused_collection
    after_list: Callable[[], None] = release_free


REAL: Final = Environment()
"""The environment of a process that is not simulated."""


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


LOADING: Final = "plugins are being loaded"
FILLING: Final = "the caches are not filled yet"


class Host:
    """One process.

    Attributes:
        environment: Its environment.
        metrics: The metrics that it exposes.
        supervisor: The thread that renews the Lease and answers probes.
        elector: Holds the Lease; None without leader election, and before the caches are built.
        phase: What has to be done before the watches, for ``/readyz``.
        watch: The event source, from the time when the caches have everything that the initial lists had.
        stop: Is set when the process has to stop.
    """

    def __init__(self, options: Options, environment: Environment) -> None:
        """Build everything; ``serve`` listens. Raises ConfigError if the certificate of the metrics cannot be used."""
        self.environment = environment
        self.metrics = Metrics()
        self.supervisor = environment.supervisor(
            clock=environment.clock, end=environment.end, on_stall=self._release_lease
        )
        self.elector: Elector | None = None
        self.phase = LOADING
        self.watch: EventSource | None = None
        self.stop = asyncio.Event()
        has_certificate = options.metrics_tls_cert_file is not None
        self._servers: list[Server | ReadOnlyServer] = [
            environment.server(
                health_address=options.health_address,
                metrics_address="" if has_certificate else options.metrics_address,
                health=lambda: self.supervisor.problem,
                ready=self._not_ready_reason,
                exposition=self.metrics.exposition,
                content_type=CONTENT_TYPE,
            )
        ]
        if has_certificate:
            self._servers.append(secure_metrics(options, environment, self.metrics.exposition, CONTENT_TYPE))

    async def serve(self) -> None:
        """Handle signals, start the supervisor, and answer probes."""
        self.take_signals()
        self.supervisor.start()
        for server in self._servers:
            await self.supervisor.run(server.start())

    def stop_on_signals(self) -> None:
        """Set ``stop`` at a signal from now on. Before, a signal ends the process at once, as nothing has to be stopped."""
        loop = asyncio.get_running_loop()

        def stop() -> None:
            self.supervisor.stop_within()
            loop.call_soon_threadsafe(self.stop.set)

        self.environment.signals.listen(stop)

    def take_signals(self) -> None:
        """Handle signals in the process, not in the event loop, which may be blocked; kopf takes them at every start."""
        loop = asyncio.get_running_loop()
        for number in process_exit.SIGNALS:
            loop.remove_signal_handler(number)
        self.environment.signals.install()

    async def close(self) -> None:
        """Undo ``serve``."""
        self.supervisor.stop_within()
        if self.supervisor.is_running:
            for server in self._servers:
                await self.supervisor.run(server.stop())
            self.supervisor.close()
        self.environment.signals.restore()

    def _not_ready_reason(self) -> str | None:
        elector = self.elector
        return (
            self.supervisor.problem
            or (self.phase if self.watch is None else self.watch.problem)
            or (elector.problem if elector is not None else None)
        )

    async def _release_lease(self) -> None:
        """Let a standby lead at once, because this process is about to end."""
        if self.elector is not None:
            await self.elector.release()
