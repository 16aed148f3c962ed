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
    families.gauge("survive_not_judged_bindings", "Bindings of schedulers whose rules are not known").set(
        report.totals.not_judged
    )
    complete = all(each.done for each in report.domains)
    for name, text, value in (
        ("timestamp_seconds", "When the report was made", at),
        ("seconds", "How long the report took", seconds),
        ("complete", "Whether the loss of every domain was decided", float(complete)),
    ):
        families.gauge(f"survive_report_{name}", text).set(value)
    return generate_latest(families.registry)
