"""Laws about what schedulers were answered, by plugins, by estimators and to their writes.

- ``in time``: an attempt that a plugin has refused is made again when the plugin asked for it (``retry_law``).
- ``estimated``: replicas are divided by what estimators have responded in time (``estimate_law``).
- ``no overcommit``: placements that no member reports yet count as taken (``capacity_law``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import orjson

from karmada_pyscheduler.client.http_connection import Response
from karmada_scheduler.api.binding import BindingKey
from tools.apiserver_model import Write
from tools.simulation.bindings import BINDING_KINDS
from tools.simulation.capacity_law import CapacityLaw
from tools.simulation.decisions import DecisionCore
from tools.simulation.environment import START
from tools.simulation.estimate_law import EstimateLaw
from tools.simulation.harm_law import HarmLaw
from tools.simulation.network import Sent
from tools.simulation.retry_law import RetryLaw

if TYPE_CHECKING:
    from tools.simulation.process import SchedulerProcess
    from tools.simulation.run import Run

_DEFAULT_TTL = 300.0
"""The default of ``--assumption-ttl``."""


class AnswerLaws:
    """Judges one run."""

    def __init__(self, run: Run, core: DecisionCore, harm: HarmLaw, add: Callable[[str, str], None]) -> None:
        """Start before the first request."""
        self._run = run
        self._retries = RetryLaw(add)
        self._estimates = EstimateLaw(run, core, harm, add)
        self._capacity = None
        if run.setup.gates.enabled("SchedulingOvercommitProtection"):
            self._capacity = CapacityLaw(run.plan.options.get("assumption_ttl", _DEFAULT_TTL), add)

    def on_response(self, sent: Sent, result: Response | OSError) -> None:
        """Note what a process gets as the response to a request."""
        now = self._run.simulation.now
        if isinstance(result, OSError) or result.status >= 300:
            if "bindings" in sent.kind:
                self._retries.failed(sent.identity, now)
        elif self._capacity is not None and sent.kind == "PATCH resourcebindings":
            try:
                manifest = orjson.loads(result.body)
            except ValueError:  # the response was torn
                return
            if isinstance(manifest, dict) and "spec" in manifest:  # else a proxy has responded
                self._capacity.on_response(sent, now, manifest)

    def on_write(self, write: Write, sent: Sent | None) -> None:
        """Judge a write."""
        is_binding = write.kind in BINDING_KINDS
        if sent is None and write.kind != "Lease":
            key = BindingKey(write.kind, *write.key) if is_binding else None
            self._retries.changed(key, (write.time - START).total_seconds())
        if is_binding and sent is not None and not write.subresource:
            self._estimates.check(write, sent)
        if self._capacity is None:
            return
        if write.kind == "Cluster":
            self._capacity.on_cluster(write)
        elif write.kind == "ResourceBinding" and sent is None:
            self._capacity.on_foreign_write(write)
        elif write.kind == "ResourceBinding" and sent is not None and not write.subresource:
            self._capacity.check(write, sent)

    def on_restore(self) -> None:
        """Forget what is known of placements."""
        if self._capacity is not None:
            self._capacity.on_restore()

    def check_attempts(self, process: SchedulerProcess, leads_since: float) -> None:
        """Judge the attempts of a process at the end."""
        end = self._run.simulation.now
        self._retries.check(process.identity, process.scene.calls, leads_since=leads_since, end=end)
