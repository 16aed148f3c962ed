"""A cluster that is only not ready: bindings with a region constraint may move although they were never on it."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_advisor.whatif.plan.change import Draft
from karmada_advisor.whatif.plan.model import Effect
from karmada_scheduler.api.well_known import CORDON_TAINT
from karmada_scheduler.testing import cluster
from tests.unit.plan.asking import effects, only, placement, plan_of
from tests.unit.plan.test_classes import settled, web

REGIONS: dict[str, Any] = {
    "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
    "spreadConstraints": [
        {"spreadByField": "region", "minGroups": 1, "maxGroups": 1},
        {"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1},
    ],
}
FLEET = [
    cluster("a").region("x"),
    cluster("x2").region("x").capacity(cpu=2000),
    cluster("y1").region("y"),
    cluster("y2").region("y"),
]


def not_ready(draft: Draft) -> None:
    draft.taint("a", "cluster.karmada.io/not-ready:NoSchedule")


@pytest.mark.parametrize(
    "change", [not_ready, lambda draft: draft.cordon("a"), lambda draft: draft.without("a")]
)
def test_a_binding_leaves_its_region_when_another_cluster_of_it_is_lost(change: Any) -> None:
    made = settled(web(replicas=3, **REGIONS), x2=3)
    assert plan_of(FLEET, [made], lambda draft: draft.label("a", "b=c")).counts["unchanged"] == 1

    plan = plan_of(FLEET, [made], change)

    assert effects(plan) == {"web": Effect.MOVED}
    assert placement(only(plan).after) == {"y1": 3}


def test_the_note_of_a_lost_cluster_names_the_bindings_that_may_move_while_it_is_only_not_ready() -> None:
    plan = plan_of(FLEET, [settled(web(replicas=3, **REGIONS), x2=3)], lambda draft: draft.without("a"))
    [note] = [each for each in plan.notes if "not ready" in each]
    assert "1 binding with a region constraint may move" in note
    assert "plan --taint a=cluster.karmada.io/not-ready:NoSchedule" in note


def test_without_such_bindings_a_cluster_that_is_not_ready_moves_nothing() -> None:
    plan = plan_of(FLEET, [settled(web(), x2=4)], lambda draft: draft.without("a"))
    assert any(each.endswith("a being not ready moves nothing by itself") for each in plan.notes)
    assert effects(plan_of(FLEET, [settled(web(), x2=4)], not_ready)) == {}


def test_replicas_that_are_assigned_to_a_cluster_out_of_service_cannot_start() -> None:
    asked = settled(web(replicas=4), m1=2, m2=2)
    down = cluster("m2").capacity(cpu=100).taint(f"{CORDON_TAINT}:NoSchedule")
    plan = plan_of(
        [cluster("m1").capacity(cpu=100), down], [asked], lambda draft: draft.scale("default/web", 8)
    )
    found = only(plan)
    assigned = placement(found.after)["m2"] - 2
    assert (placement(found.cannot_start), plan.counts["cannot-start"]) == ({"m2": assigned}, 1)
    assert found.starts == 4 - assigned
    assert any(f"m2 is cordoned: {assigned} replica" in note for note in plan.notes)
