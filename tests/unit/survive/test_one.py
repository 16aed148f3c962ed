"""What losses do to one binding alone."""

from __future__ import annotations

from karmada_advisor.plan.decide import PlanSide
from karmada_advisor.survive.domains import failure_domains
from karmada_advisor.survive.one import losses_of
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.testing import BindingBuilder, binding, cluster
from tests.unit.plan.asking import rules
from tests.unit.rebalance.proposing import settled

CLUSTERS = [
    each.build() for each in (cluster("a").region("x"), cluster("b").region("x"), cluster("c").region("y"))
]


def _dark(made: BindingBuilder, kind: str) -> list[str]:
    side = PlanSide(rules(), Snapshot.of(CLUSTERS), ())
    domains = failure_domains(CLUSTERS, [kind]).domains
    return [domain.name for domain, found in losses_of(side, settled(made).build(), domains) if found.dark]


def test_what_can_go_elsewhere_survives() -> None:
    made = binding("web").replicas(4, cpu="1").dynamic_weight().on(a=4)
    assert _dark(made, "cluster") == []


def test_what_its_policy_keeps_in_a_region_does_not_survive_the_loss_of_the_region() -> None:
    made = binding("web").replicas(4, cpu="1").dynamic_weight().names("a", "b").on(a=4)
    assert (_dark(made, "cluster"), _dark(made, "region")) == ([], ["x"])
