"""Metrics of the records of decisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prometheus_client import Counter

from karmada_scheduler.metrics.families import SUBSYSTEM, Families

DROPPED: Final = "dropped"
"""Of a decision that was not recorded, because too many waited."""
EVICTED: Final = "evicted"
"""Of a record that was removed from memory, because others needed its place."""
UNLOGGED: Final = "unlogged"
"""Of a record that was not written to the decision log."""


class ExplainMetrics:
    """Metrics of the records of decisions; without records they have no samples, or 0."""

    def __init__(self, families: Families) -> None:
        """Register the families."""
        self.records: Final = Counter(
            "explain_records", "Decisions recorded in memory", subsystem=SUBSYSTEM, registry=families.registry
        )
        self.cpu: Final = Counter(
            "explain_cpu_seconds",
            "CPU time of the main thread for records of decisions",
            subsystem=SUBSYSTEM,
            registry=families.registry,
        )
        self.lost: Final = families.counter(
            "explain_records_lost",
            "Records dropped because too many waited, evicted from memory by newer ones, or unlogged because the "
            "decision log could not be written",
            "reason",
        )
        self.errors: Final = families.counter(
            "explain_errors",
            "Errors of recording, serving and logging decisions; none affects scheduling",
            "part",
        )
        self.requests: Final = families.counter(
            "explain_requests", "Requests to the address of --explain-bind-address", "code"
        )
        self._memory = families.gauge("explain_memory_bytes", "Memory of the records of decisions")
        self._bindings = families.gauge("explain_recorded_bindings", "Bindings with a record in memory")

    def expose(self, *, memory: Callable[[], int], bindings: Callable[[], int]) -> None:
        """Expose the memory of all records in bytes, and their number."""
        self._memory.set_function(memory)
        self._bindings.set_function(bindings)
        for reason in (DROPPED, EVICTED, UNLOGGED):
            self.lost.labels(reason)
