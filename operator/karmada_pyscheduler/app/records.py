"""The records of decisions of one process: the recorder, the address that serves them, and the decision log."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from karmada_pyscheduler.app.host import Host, load_certificate
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.karmada import WATCHED
from karmada_pyscheduler.client.reader_access import ReaderAccess
from karmada_pyscheduler.estimator.accurate import Estimation
from karmada_pyscheduler.http_server.read_only_server import ReadOnlyServer
from karmada_pyscheduler.http_server.request_guard import Access
from karmada_pyscheduler.metrics.scheduling import UNLOGGED
from karmada_pyscheduler.records.endpoints import AUDIENCE, PATH, Endpoints
from karmada_pyscheduler.records.log_file import LogFile
from karmada_pyscheduler.records.recorder import ClusterChangeTimes, Recorder, RecordStore
from karmada_pyscheduler.scheduler.state import SchedulerState
from karmada_pyscheduler.scheduler.unplaced import GATED, WAITING
from karmada_scheduler import __version__
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.config import features, file_content
from karmada_scheduler.config.features import DEFAULT_RULES
from karmada_scheduler.config.options import Options
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.records.record import Process, encode, process_name, timestamp
from karmada_scheduler.structs import IdentityStruct
from karmada_scheduler_plugins.registry import in_tree


class RecordedConfiguration:
    """The configuration that decisions depend on, and a hash over it."""

    def __init__(self, options: Options, profiles: Profiles) -> None:
        """Take the flags, and the profiles, which change when a plugin file does."""
        self._options = options
        self._profiles = profiles
        self._file = options.config.read_bytes() if options.config is not None else b""
        self._shown_file = _without_extenders(self._file)
        self._frameworks: list[tuple[str, Framework]] = []
        self._hash = ""
        self.hash()

    def hash(self) -> str:
        """Return a hash over gates, plugins and their arguments; plugins are compared by name and file."""
        frameworks = self._profiles.items()
        if frameworks != self._frameworks:
            text = encode(self.fields(with_hash=False))
            folders = self._options.plugin_dirs
            files = [(file.name, _content(file)) for each in folders for file in sorted(each.glob("*.py"))]
            self._hash = hashlib.sha256(repr((text, self._file, files)).encode()).hexdigest()[:12]
            self._frameworks = frameworks
        return self._hash

    def fields(self, *, with_hash: bool = True) -> dict[str, Any]:
        """Return the configuration as JSON values."""
        options = self._options
        fields = {
            "featureGates": {name: options.feature_gates.enabled(name) for name in sorted(features.KNOWN)},
            "decisionsOf": options.decisions_of,
            "plugins": list(options.plugins),
            "pluginDirs": [str(folder) for folder in options.plugin_dirs],
            "config": str(options.config) if options.config is not None else None,
            "file": self._shown_file,
            "schedulerName": options.scheduler_name,
            "enableEmptyWorkloadPropagation": options.enable_empty_workload_propagation,
            "estimatorFailurePolicy": options.estimators.failure_policy
            if options.estimators.enabled
            else None,
            "profiles": [_profile(name, framework) for name, framework in self._profiles.items()],
        }
        return fields | ({"hash": self._hash} if with_hash else {})


def default_profiles(options: Options, profiles: Profiles) -> list[str]:
    """Return the profiles that decide as karmada-scheduler does by default: by its plugins and gates, and nothing else."""
    gates, defaults = options.feature_gates, features.FeatureGates()
    if (
        options.decisions_of != DEFAULT_RULES.decisions_of
        or options.enable_empty_workload_propagation
        or options.estimators.enabled
        or any(gates.enabled(name) != defaults.enabled(name) for name in features.KNOWN)
    ):
        return []
    expected = {name for name, plugin in in_tree(defaults).items() if not plugin.opt_in}
    return [
        name
        for name, framework in profiles.items()
        if not framework.extenders
        and {plugin.name for point in Point for plugin in framework.plugins.at(point)} == expected
        and {*framework.plugins.weights.values()} <= {1}
    ]


def _without_extenders(content: bytes) -> Mapping[str, Any] | None:
    """Return a configuration file as data, without the extenders, whose keys may stand in it; None without a file."""
    found = file_content.parse(content) if content else None
    if not isinstance(found, Mapping):
        return None
    return {str(name): value for name, value in found.items() if name != "extenders"}


def _content(file: Path) -> bytes:
    """Return the content of a file, b"" if it was removed meanwhile or cannot be read."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _profile(name: str, framework: Framework) -> dict[str, Any]:
    plugins = framework.plugins
    points = {point.value: [plugin.name for plugin in plugins.at(point)] for point in Point}
    return {
        "schedulerName": name,
        "plugins": {point: names for point, names in points.items() if names},
        "weights": dict(plugins.weights),
        "extenders": len(framework.extenders),
    }


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
        elif any(wait.binding.key == key for wait in self.state.waiting.all()):
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
            "waitingAtPermit": _listed([wait.binding.key for wait in waiting]),
            "records": {
                "bindings": len(self.store),
                "bytes": self.store.size,
                "waiting": self.recorder.waiting(),
            },
        }
        if (watch := self.host.watch) is not None:
            fields["watchAgesSeconds"] = {kind.kind: _rounded(watch.age(kind.kind)) for kind in WATCHED}
        if state.assumed is not None:
            fields["assumedPlacements"] = {
                "bindings": len(state.assumed),
                "byCluster": dict(sorted(state.assumed.counts().items())[:_LISTED]),
            }
        if self.estimation is not None:
            fields["estimators"] = self.estimation.connections.count_by_state()
        return fields


def _listed(keys: list[BindingKey]) -> dict[str, Any]:
    return {"count": len(keys), "bindings": [f"{key.kind}/{key}" for key in sorted(keys)[:_LISTED]]}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
