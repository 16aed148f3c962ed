"""Metrics of the page, a process of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, ProcessCollector, generate_latest

from karmada_advisor.survive.model import SurvivalReport
from karmada_scheduler.http_server.messages import AnsweredRequest
from karmada_scheduler.metrics.families import SUBSYSTEM, Families

CONTENT_TYPE: Final = "text/plain; version=0.0.4"
"""Of ``WebMetrics.text``."""
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
        self._requests: Final = Families(self._registry).counter(
            "web_requests",
            "Requests to the page by the pattern of their path and the status of the answer",
            "route",
            "status",
        )

    def answered(self, request: AnsweredRequest) -> None:
        """Count a request that was answered. Its path is not known where nothing has it, nor where it was refused before."""
        self._requests.labels(request.route, str(request.status)).inc()

    def explained(self, mismatches: Iterable[str]) -> None:
        """Count an explanation, and the traces that differ from the decision."""
        self._explanations.inc()
        for trace in mismatches:
            self._mismatches.labels(trace).inc()

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


def survival_metrics(report: SurvivalReport, *, top: int, at: float, seconds: float) -> bytes:
    """Return a forecast of losses in the text format of Prometheus.

    Args:
        report: The report.
        top: Domains of each kind with a sample of their own.
        at: When it was made, in seconds since 1970.
        seconds: How long that took.
    """
    families = Families(CollectorRegistry())
    by_kind = {
        name: families.gauge(f"survive_{name}", text, "kind")
        for name, text in (
            ("spofs", "Failure domains whose loss takes a workload down"),
            ("dark_bindings", "Bindings that the worst loss takes down"),
            ("missing_replicas", "Replicas that are missing after the loss that makes most of them missing"),
        )
    }
    of_domain = families.gauge(
        "survive_domain_dark_bindings", "Bindings that a loss takes down", "kind", "domain"
    )
    for kind in dict.fromkeys(each.kind for each in report.domains):
        found = [each for each in report.domains if each.kind == kind and each.done]
        by_kind["spofs"].labels(kind).set(sum(each.is_spof for each in found))
        by_kind["dark_bindings"].labels(kind).set(max((each.chosen.dark for each in found), default=0))
        by_kind["missing_replicas"].labels(kind).set(max((each.chosen.missing for each in found), default=0))
        for each in found[:top]:
            of_domain.labels(kind, each.name).set(each.chosen.dark)
    complete = all(each.done for each in report.domains)
    for name, text, value in (
        ("timestamp_seconds", "When the report was made", at),
        ("seconds", "How long the report took", seconds),
        ("complete", "Whether the loss of every domain was decided", float(complete)),
    ):
        families.gauge(f"survive_report_{name}", text).set(value)
    return generate_latest(families.registry)
