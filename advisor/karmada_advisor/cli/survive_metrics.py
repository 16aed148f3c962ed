"""A forecast of losses as metrics; the client library is imported where they are written."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from karmada_advisor.whatif.survive.model import SurvivalReport
from karmada_pyscheduler.metrics.families import Families


def survival_metrics(report: SurvivalReport, *, top: int, at: float, seconds: float) -> bytes:
    """Return a forecast of losses in the text format of Prometheus.

    Args:
        report: The report.
        top: Domains of each kind with a sample of their own.
        at: When it was made, in seconds since 1970.
        seconds: How long that took.
    """
    families = Families(CollectorRegistry())
    spofs = families.gauge("survive_spofs", "Failure domains whose loss takes a workload down", "kind")
    dark = families.gauge("survive_dark_bindings", "Bindings that the worst loss takes down", "kind")
    text = "Replicas that are missing after the loss that makes most of them missing"
    missing = families.gauge("survive_missing_replicas", text, "kind")
    text = "Bindings that a loss takes down"
    of_domain = families.gauge("survive_domain_dark_bindings", text, "kind", "domain")
    for kind in dict.fromkeys(domain.kind for domain in report.domains):
        found = [domain for domain in report.domains if domain.kind == kind and domain.done]
        spofs.labels(kind).set(sum(domain.is_spof for domain in found))
        dark.labels(kind).set(max((domain.chosen.dark for domain in found), default=0))
        missing.labels(kind).set(max((domain.chosen.missing for domain in found), default=0))
        for domain in found[:top]:
            of_domain.labels(kind, domain.name).set(domain.chosen.dark)
    text = "Bindings of schedulers whose rules are not known"
    families.gauge("survive_not_judged_bindings", text).set(report.totals.not_judged)
    complete = all(domain.done for domain in report.domains)
    for name, text, value in (
        ("timestamp_seconds", "When the report was made", at),
        ("seconds", "How long the report took", seconds),
        ("complete", "Whether the loss of every domain was decided", float(complete)),
    ):
        families.gauge(f"survive_report_{name}", text).set(value)
    return generate_latest(families.registry)
