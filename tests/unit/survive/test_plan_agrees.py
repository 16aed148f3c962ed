"""The deletion of a cluster: the forecast and a plan of it agree, binding for binding."""

from __future__ import annotations

import random

import pytest

from karmada_advisor.whatif.plan.change import Draft
from karmada_advisor.whatif.plan.model import Effect
from karmada_advisor.whatif.plan.objects import PlanObjects
from karmada_advisor.whatif.plan.question import Known, PlanInputs
from karmada_advisor.whatif.plan.result import make_plan
from karmada_advisor.whatif.survive.domains import failure_domains
from karmada_advisor.whatif.survive.engine import Losses
from karmada_advisor.whatif.survive.loss import Loss, LossInputs
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from tests.unit.plan.asking import rules
from tests.unit.survive.worlds import cluster_manifests, relabelled, world

Placement = dict[str, int]


def _planned(seed: int, clusters: list[Cluster], bindings: list[Binding], lost: str) -> dict[str, Placement]:
    """Return where a plan without a cluster puts each binding; what is lost with it is left out."""
    before = PlanObjects(
        {each["metadata"]["name"]: each for each in relabelled(cluster_manifests(random.Random(seed)), seed)},
        {
            each.key: {
                "kind": each.key.kind,
                "metadata": {"name": each.key.name, "namespace": each.key.namespace},
            }
            for each in bindings
        },
        None,
    )
    draft = Draft(before)
    draft.without(lost)
    known = Known({each.name: each for each in clusters}, {each.key: each for each in bindings})
    one = rules()
    plan = make_plan(PlanInputs(before, draft, one, one, known=known))
    found = {each.key.name: _targets(each.spec.clusters, lost) for each in bindings}
    for each in plan.bindings:
        if each.effect in {Effect.MOVED, Effect.UNPLACED, Effect.PLACED}:
            found[each.name] = _targets(each.after, lost)
    return found


def _targets(found: object, lost: str) -> Placement:
    assert isinstance(found, tuple)
    return {each.name: each.replicas for each in found if each.name != lost}


@pytest.mark.parametrize("seed", range(10))
def test_a_deleted_cluster_does_what_a_plan_without_it_says(seed: int) -> None:
    clusters, bindings = world(seed)
    domains = failure_domains(clusters, ["cluster"]).domains
    losses = Losses(LossInputs(clusters, bindings, rules(), domains, (Loss.DELETED,)))
    losses.run()
    for number, domain in enumerate(domains):
        planned = _planned(seed, clusters, bindings, domain.name)
        pairs = {each.position: each for each in losses.tallies[Loss.DELETED][number].pairs}
        for place, asked in losses.asked.items():
            if asked.drifts:
                continue  # a plan counts what changes without the deletion as unchanged
            after = pairs[place].found.after if place in pairs else asked.binding.spec.clusters
            assert _targets(tuple(after), domain.name) == planned[asked.stored.key.name]
