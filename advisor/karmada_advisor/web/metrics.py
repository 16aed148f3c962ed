"""Metrics of the page, a process of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, ProcessCollector, generate_latest

from karmada_scheduler.metrics.families import SUBSYSTEM, Families

TRACES: Final = ("trigger", "filter", "score", "capacity", "select", "divide")


class WebMetrics:
    """What the page has computed."""

    def __init__(self) -> None:
        """Register the families; all traces have a sample from the beginning."""
        self._registry: Final = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._explanations: Final = Counter(
            "explanations", "Explanations computed", subsystem=SUBSYSTEM, registry=self._registry
        )
        self._mismatches: Final = Families(self._registry).counter(
            "explanation_mismatches",
            "Differences between a trace of an explanation and the decision: each is a defect of the explanation",
            "trace",
        )
        for each in TRACES:
            self._mismatches.labels(each)

    def explained(self, mismatches: Iterable[str]) -> None:
        """Count an explanation, and the traces that differ from the decision."""
        self._explanations.inc()
        for trace in mismatches:
            self._mismatches.labels(trace).inc()

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)
