"""The records of decisions of one process: the recorder, the address that serves them, and the decision log."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from karmada_pyscheduler.app.host import Host, load_certificate
from karmada_pyscheduler.app.recorded_configuration import RecordedConfiguration
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.karmada import WATCHED
from karmada_pyscheduler.client.reader_access import ReaderAccess
from karmada_pyscheduler.estimator.accurate import Estimation
from karmada_pyscheduler.http_server.read_only_server import ReadOnlyServer
from karmada_pyscheduler.http_server.request_guard import Access
from karmada_pyscheduler.metrics.scheduling import UNLOGGED
from karmada_pyscheduler.records.endpoints import AUDIENCE, PATH, Endpoints
from karmada_pyscheduler.records.log_file import LogFile
from karmada_pyscheduler.records.record_store import RecordStore
from karmada_pyscheduler.records.recorder import ClusterChangeTimes, Recorder
from karmada_pyscheduler.scheduler.state import SchedulerState
from karmada_pyscheduler.scheduler.unplaced import GATED, WAITING
from karmada_scheduler import __version__
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.config.options import Options
from karmada_scheduler.records.record import Process, process_name, timestamp
from karmada_scheduler.structs import IdentityStruct

log = logging.getLogger(__name__)

MAX_RECORDS: Final = 20_000
_IDLE_SECONDS: Final = 1.0
"""How long records wait for an idle moment of the scheduling loop."""
_LISTED: Final = 100
"""Bindings and clusters in a list of the state."""


class DecisionRecords(IdentityStruct):
    """The parts of a process that records decisions.

    Attributes:
        options: The validated command line; records are enabled.
        host: The process.
        state: The caches, the queue and the plugins.
        identity: The name of the process in the Lease.
        estimation: The estimators in the member clusters; None if that is off.
        now: The time of day in seconds since 1970.
        connect: Opens a connection to the Karmada API server.
        recorder: Makes the records.
        clusters: When clusters changed.

    Raises:
        ConfigError: The certificate cannot be used.
    """

    options: Options
    host: Host
    state: SchedulerState
    identity: str
    estimation: Estimation | None
    now: Callable[[], float]
    connect: Callable[[], Awaitable[Connection]]
    _server: ReadOnlyServer | None = None

    def __post_init__(self) -> None:
        chosen = self.options.explain
        self._elects = self.options.leader_election.enabled
        self._name = process_name(self.identity)
        self._configuration = RecordedConfiguration(self.options, self.state.profiles)
        self.store = RecordStore(max_bytes=chosen.memory, max_records=MAX_RECORDS)
        metrics = self.host.metrics.explain
        metrics.expose(memory=lambda: self.store.size, bindings=self.store.__len__)
        self.clusters = ClusterChangeTimes(self.now)
        self._log = None
        if chosen.decision_log is not None:
            self._log = LogFile(
                chosen.decision_log,
                name="decision log",
                on_lost=metrics.lost.labels(UNLOGGED).inc,
                on_error=metrics.errors.labels("log").inc,
            )
        self.recorder = Recorder(
            process=Process(
                name=self._name,
                config=self._configuration.hash,
                oldest_summary=self.clusters.oldest_summary,
                uses_estimators=self.estimation is not None,
            ),
            store=self.store,
            write_line=self._log.write if self._log is not None else None,
            metrics=metrics,
            clock=self.host.environment.clock,
            now=self.now,
            idle=partial(self.state.queue.wait_idle, timeout=_IDLE_SECONDS),
        )
        self.state.bindings.add_listener(self.recorder.binding_changed)
        access, tls = Access(frozenset(chosen.allowed_hosts)), None
        if chosen.tls_cert_file is not None and chosen.tls_key_file is not None:
            readers = ReaderAccess(
                load_certificate("--explain-tls-cert-file", chosen.tls_cert_file, chosen.tls_key_file),
                self.connect,
                what="records",
                path=PATH,
                audiences=[AUDIENCE],
            )
            access, tls = readers.access(access.hosts), readers.certificate.context
        if chosen.address:
            self._server = ReadOnlyServer(
                chosen.address,
                Endpoints(
                    process=self._name,
                    started=self.now(),
                    store=self.store,
                    leader=self._leader,
                    state=self._process_state,
                    queue_state=self._queue_state,
                    cluster_times=self.clusters.times,
                ).routes(),
                tls=tls,
                access=access,
                on_response=lambda answered: metrics.requests.labels(str(answered.status)).inc(),
                on_error=metrics.errors.labels("serve").inc,
            )

    async def start(self) -> None:
        """Open the decision log, and listen. Raises ListenError."""
        if self._log is not None:
            self._log.start()
        if self._server is not None:
            await self.host.supervisor.run(self._server.start())

    async def close(self) -> None:
        """Close the listener, and write what is left of the decision log."""
        if self._server is not None:
            await self.host.supervisor.run(self._server.stop())
        if self._log is not None:
            await self.host.environment.in_thread(self._log.close, name="close decision log")

    def _leader(self) -> str | None:
        """Return None if this process leads, else the process that does, "" if it is not known."""
        if not self._elects or self.host.supervisor.leading:
            return None
        elector = self.host.elector
        return process_name(elector.holder) if elector is not None else ""

    def _queue_state(self, key: BindingKey) -> Mapping[str, Any]:
        """Return where a binding is: gated, waiting at Permit, or in a set of the queue. Runs in the thread of the server."""
        found = self.state.queue.state_of(key)
        state = found.state
        if key in self.state.gate.gated:
            state = GATED
        elif any(each.binding.key == key for each in self.state.waiting.all()):
            state = WAITING
        fields: dict[str, Any] = {"state": state or None, "dueInSeconds": _rounded(found.due_in)}
        if state == found.state and found.waited is not None:
            fields |= {"before": found.before, "waitedSeconds": _rounded(found.waited)}
            if found.priority is not None:
                fields["priority"] = found.priority
        refusal = self.state.reconsiderations.refusal(key)
        if refusal is not None:
            plugin, reason, due_in = refusal
            fields["proposal"] = {"plugin": plugin, "reason": reason, "dueInSeconds": _rounded(due_in)}
        return fields

    def _process_state(self) -> Mapping[str, Any]:
        """Return the state that the API server does not have. Runs in the thread of the server, on copies."""
        state = self.state
        gated, waiting = list(frozenset(state.gate.gated)), list(state.waiting.all())
        fields: dict[str, Any] = {
            "version": __version__,
            "at": timestamp(self.now()),
            "configuration": self._configuration.fields(),
            "clusters": len(state.clusters),
            "queue": {
                "due": len(state.queue),
                "delayed": state.queue.delayed,
                "processing": state.queue.processing,
            },
            "gated": _listed(gated),
            "waitingAtPermit": _listed([each.binding.key for each in waiting]),
            "records": {
                "bindings": len(self.store),
                "bytes": self.store.size,
                "waiting": self.recorder.waiting(),
            },
        }
        if (watch := self.host.watch) is not None:
            fields["watchAgesSeconds"] = {each.kind: _rounded(watch.age(each.kind)) for each in WATCHED}
        if state.assumed is not None:
            fields["assumedPlacements"] = {
                "bindings": len(state.assumed),
                "byCluster": dict(sorted(state.assumed.counts().items())[:_LISTED]),
            }
        if self.estimation is not None:
            fields["estimators"] = self.estimation.connections.count_by_state()
        return fields


def _listed(keys: list[BindingKey]) -> dict[str, Any]:
    return {"count": len(keys), "bindings": [f"{each.kind}/{each}" for each in sorted(keys)[:_LISTED]]}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
