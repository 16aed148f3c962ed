"""What losses do to one binding alone, as if it were the only one on the clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from karmada_advisor.plan.decide import PlanSide
from karmada_advisor.survive.classify import Classified, classified
from karmada_advisor.survive.decisions import LossDecisions
from karmada_advisor.survive.domains import FailureDomain
from karmada_advisor.survive.loss import Loss
from karmada_advisor.survive.loss_decision import SharedDecisions
from karmada_scheduler.api.binding import Binding


def losses_of(
    side: PlanSide,
    binding: Binding,
    domains: Iterable[FailureDomain],
    *,
    loss: Loss = Loss.GONE,
    purge_mode: str = "",
) -> Iterator[tuple[FailureDomain, Classified]]:
    """Yield the class of one binding in each loss; it survives those in which it is not ``dark``.

    Whether other bindings want the same capacity does not count.

    Args:
        side: The clusters as they are, with rules whose decisions do not depend on other bindings.
        binding: A binding with clusters, for example where a decision about it would put it.
        domains: What is lost, each alone: ``failure_domains(clusters, ["cluster"]).domains``.
        loss: The world after the loss.
        purge_mode: Of ``spec.failover.cluster``, "" for the default.
    """
    decisions = LossDecisions(side, binding, None, purge_mode, SharedDecisions())
    for domain in domains:
        lost = frozenset(domain.clusters)
        yield domain, classified(decisions.binding.spec, lost, decisions.after(lost, loss))
