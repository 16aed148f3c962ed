"""Copies that follow other bindings or stay without Karmada, and changes that the detector does not make."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_advisor.whatif.plan.model import Effect, PlanHeldBy
from karmada_scheduler.testing import BindingBuilder, binding, cluster
from tests.unit.plan.asking import only, plan_of
from tests.unit.plan.test_classes import policy_p, settled, web

M1_ONLY = {"clusterAffinity": {"clusterNames": ["m1"]}}


def preserving(*, is_set: bool = True) -> BindingBuilder:
    made = settled(web(), m1=2, m2=2)
    made.manifest()["spec"]["preserveResourcesOnDeletion"] = is_set
    return made


def follower(*on: str) -> BindingBuilder:
    made = binding("settings", namespace="default").placement(None)
    made.manifest()["spec"]["requiredBy"] = [
        {
            "namespace": "default",
            "name": "web-deployment",
            "clusters": [{"name": name, "replicas": 2} for name in on],
        }
    ]
    return made


def clusters() -> list[Any]:
    return [cluster("m1"), cluster("m2")]


@pytest.mark.parametrize(("is_set", "stops"), [(True, 0), (False, 2)])
def test_copies_that_are_preserved_do_not_stop_where_the_binding_leaves(is_set: bool, stops: int) -> None:
    policies = [policy_p(), policy_p(**M1_ONLY)]
    for each in policies:
        each["spec"]["preserveResourcesOnDeletion"] = is_set

    plan = plan_of(
        clusters(), [preserving(is_set=is_set)], lambda draft: draft.put(policies[1]), policies=policies[:1]
    )

    assert (plan.totals.stops, only(plan).stops, plan.totals.starts) == (stops, stops, 2)
    left = "default/web-deployment leaves m2 2, where it goes on running, unmanaged"
    assert any(note.startswith(left) for note in plan.notes) is is_set


def test_the_copy_of_a_follower_ends_on_a_cluster_that_is_gone() -> None:
    plan = plan_of(clusters(), [settled(web(), m1=4), follower("m1")], lambda draft: draft.without("m1"))

    assert (
        "the copy of default/settings-deployment on m1 ends: it follows default/web-deployment" in plan.notes
    )
    assert (
        "the copy of default/settings-deployment on m2 starts: it follows default/web-deployment"
        in plan.notes
    )
    assert "is gone (4 replicas of 2 bindings)" in plan.changes[0].text


def test_a_follower_of_a_binding_that_stays_is_not_mentioned() -> None:
    plan = plan_of(clusters(), [settled(web(), m1=4), follower("m1")], lambda draft: draft.cordon("m2"))

    assert not any("settings" in note for note in plan.notes)


@pytest.mark.parametrize(
    ("purge_mode", "deleted", "is_set", "said"),
    [
        ("Gracefully", "m1", False, "the old copy of default/web-deployment on m1 ends with the cluster"),
        ("Gracefully", "m1", True, "the old copy of default/web-deployment on m1 goes on running, unmanaged"),
        ("Directly", "m1", False, ""),
        ("Gracefully", "m3", False, ""),
    ],
)
def test_an_old_copy_whose_eviction_waits_ends_on_a_cluster_that_is_gone(
    purge_mode: str, deleted: str, is_set: bool, said: str
) -> None:
    made = settled(web(), m2=4).evicted_from("m1")
    spec = made.manifest()["spec"]
    spec["gracefulEvictionTasks"][0]["purgeMode"] = purge_mode
    spec["preserveResourcesOnDeletion"] = is_set

    plan = plan_of([*clusters(), cluster("m3")], [made], lambda draft: draft.without(deleted))

    assert [note for note in plan.notes if "old copy" in note] == (
        [f"{said}: it waits for no new one any more"] if said else []
    )
    assert ("1 binding" in plan.changes[0].text) is bool(said)


@pytest.mark.parametrize(("wanted", "effect"), [(10, Effect.HELD), (4, Effect.MOVED)])
def test_a_move_cannot_come_while_the_detector_has_not_taken_over_the_template(
    wanted: int, effect: Effect
) -> None:
    stored = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": "default", "name": "web"},
        "spec": {"replicas": wanted, "template": {"spec": {"containers": []}}},
    }

    plan = plan_of(
        clusters(), [settled(web(), m1=2, m2=2)], lambda draft: draft.put(policy_p(**M1_ONLY)),
        policies=[policy_p()], templates=[stored],
    )  # fmt: skip

    found = only(plan)
    assert found.effect is effect
    assert (found.held is not None and found.held.by is PlanHeldBy.DETECTOR) is (effect is Effect.HELD)


def test_the_copy_of_a_follower_ends_when_its_requirer_propagates_no_dependencies_any_more() -> None:
    policies = [policy_p(), policy_p()]
    policies[0]["spec"]["propagateDeps"] = True
    requirer = settled(web(), m1=4)
    requirer.manifest()["spec"]["propagateDeps"] = True

    plan = plan_of(
        clusters(), [requirer, follower("m1")], lambda draft: draft.put(policies[1]), policies=policies[:1]
    )

    ends = "the copy of default/settings-deployment on m1 ends: it follows default/web-deployment"
    assert ends in plan.notes
    assert any(note.startswith("nothing requires default/settings-deployment") for note in plan.notes)


@pytest.mark.parametrize(
    "suspension", [{"dispatching": True}, {"dispatchingOnClusters": {"clusterNames": ["m2"]}}]
)
@pytest.mark.parametrize(("replicas", "stops", "waits"), [(8, 0, 2), (2, 1, 0)])
def test_what_is_not_dispatched_neither_starts_nor_stops(
    suspension: Any, replicas: int, stops: int, waits: int
) -> None:
    made = settled(web(), m1=2, m2=2)
    made.manifest()["spec"]["suspension"] = suspension
    everywhere = "dispatching" in suspension

    plan = plan_of(clusters(), [made], lambda draft: draft.scale("default/web", replicas))

    found, both = only(plan), 2 if everywhere else 1
    assert sum(each.replicas for each in found.cannot_start) == waits * both
    assert found.stops == (0 if everywhere else stops)
    said = "dispatching to m2 is suspended" if waits else "goes on running"
    assert any(said in note for note in plan.notes)
