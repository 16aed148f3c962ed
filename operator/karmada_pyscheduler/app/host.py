"""The parts of a process that work before plugins are loaded: signals, supervisor, probes, metrics."""

from __future__ import annotations

import asyncio
from typing import Final

from karmada_pyscheduler.app.environment import Environment
from karmada_pyscheduler.app.secure_metrics import secure_metrics
from karmada_pyscheduler.client.leader import Elector
from karmada_pyscheduler.http_server.read_only_server import ReadOnlyServer
from karmada_pyscheduler.http_server.server import Server
from karmada_pyscheduler.informer.kopf_watch import EventSource
from karmada_pyscheduler.metrics.metrics import CONTENT_TYPE, Metrics
from karmada_scheduler.config.options import Options
from karmada_scheduler.process import process_exit

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
