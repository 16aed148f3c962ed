"""Bindings whose decisions do not take effect: nobody makes them, or a quota, a plugin, a Guard or a suspension holds them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from karmada_advisor.state.schedulers import Schedulers, schedulers_of
from karmada_advisor.state.stored import foreign_refusals
from karmada_advisor.views.plan_words import rows
from karmada_advisor.whatif.plan.model import Effect, Plan, PlanHeldBy
from karmada_scheduler.testing import BindingBuilder, cluster
from tests.unit.plan.asking import effects, only, placement, plan_of
from tests.unit.plan.test_classes import SPREAD, settled, web

NOW = datetime(2026, 11, 22, 14, 20, tzinfo=UTC)


def lease(name: str, renewed: str, names: str = "") -> dict[str, Any]:
    annotations = {"pyscheduler.karmada.io/scheduler-names": names} if names else {}
    return {
        "metadata": {"namespace": "karmada-system", "name": name, "annotations": annotations},
        "spec": {"holderIdentity": "a", "renewTime": renewed, "leaseDurationSeconds": 15},
    }


def schedulers(*leases: dict[str, Any]) -> Schedulers:
    return schedulers_of(leases or [lease("karmada-scheduler", "2026-11-22T14:19:55Z")], now=NOW)


def quota(cpu: str, used: str, namespace: str = "default") -> dict[str, Any]:
    return {
        "kind": "FederatedResourceQuota",
        "metadata": {"namespace": namespace, "name": "team"},
        "spec": {"overall": {"cpu": cpu}},
        "status": {"overallUsed": {"cpu": used}},
    }


def refused(made: BindingBuilder, reason: str, message: str) -> BindingBuilder:
    return made.condition(type="Scheduled", status="False", reason=reason, message=message)


def cordoned(*bindings: BindingBuilder, **asking: Any) -> Plan:
    """Return the plan of a change that concerns no binding."""
    return plan_of([cluster("m1"), cluster("m2")], bindings, lambda draft: draft.cordon("m1"), **asking)


# --- nobody decides ---


def test_nobody_decides_about_a_binding_of_an_unknown_scheduler() -> None:
    plan = cordoned(web().scheduler("my-schedler"), schedulers=schedulers(
        lease("karmada-scheduler", "2026-11-22T14:19:55Z"),
        lease("pyscheduler", "2026-11-22T14:19:55Z", "my-scheduler"),
    ))  # fmt: skip

    found = only(plan)
    assert (found.effect, found.after) == (Effect.UNDECIDED, ())
    assert found.held is not None
    assert found.held.by is PlanHeldBy.SCHEDULER
    assert placement(found.held.targets) == {"m2": 4}
    assert plan.counts["placed"] == 0
    assert plan.drift == ()
    [group] = plan.failures
    assert (group.reason, group.count) == ("SchedulerMissing", 1)
    assert group.message == "no scheduler is named my-schedler; did you mean my-scheduler?"
    assert plan.violates(frozenset({"undecided"}))


def test_bindings_that_are_held_already_are_not_counted_again_as_not_derived() -> None:
    unknown = web("other").scheduler("my-schedler")
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=4), unknown],
        lambda draft: draft.scale("default/web", 2),
        schedulers=schedulers(
            lease("karmada-scheduler", "2026-11-22T14:19:55Z"),
            lease("pyscheduler", "2026-11-22T14:19:55Z", "ours"),
        ),
    )

    assert plan.counts["undecided"] == 1
    assert plan.not_derived == 0
    assert next(row for row in rows(plan) if row[0] == "unchanged")[1] >= 0


def test_what_holds_the_binding_that_the_change_is_about_comes_first() -> None:
    unknown = [web(f"other-{number}").scheduler("my-schedler") for number in range(3)]
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=4), *unknown],
        lambda draft: draft.scale("default/web", 8),
        schedulers=schedulers(
            lease("karmada-scheduler", "2026-11-22T14:19:55Z"),
            lease("pyscheduler", "2026-11-22T14:19:55Z", "ours"),
        ),
        quotas=[quota("6", "4")],
    )

    assert [(each.effect, each.count) for each in plan.failures] == [
        (Effect.HELD, 1),
        (Effect.UNDECIDED, 3),
    ]


def test_nobody_decides_while_the_lease_of_the_scheduler_has_run_out() -> None:
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=4)],
        lambda draft: draft.without("m1"),
        schedulers=schedulers(lease("karmada-scheduler", "2026-11-22T14:12:00Z")),
    )
    assert effects(plan) == {"web": Effect.UNDECIDED}
    assert placement(only(plan).after) == {"m1": 4}
    assert plan.failures[0].message.startswith("default-scheduler is down since 2026-11-22T14:12:00Z")


def test_a_binding_that_nothing_would_change_is_unchanged_although_nobody_decides() -> None:
    dead = schedulers(lease("karmada-scheduler", "2026-11-22T14:12:00Z"))
    assert cordoned(settled(web(), m2=4), schedulers=dead).counts["unchanged"] == 1


def test_schedulers_that_are_not_known_are_taken_to_decide() -> None:
    assert cordoned(settled(web(), m2=4).scheduler("other")).counts["undecided"] == 0


# --- suspended, Guard, plugin ---


def test_a_suspended_binding_is_held_where_the_change_would_move_it() -> None:
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=4).suspended()],
        lambda draft: draft.without("m1"),
    )
    found = only(plan)
    assert (found.effect, placement(found.after), found.stops) == (Effect.HELD, {"m1": 4}, 0)
    assert found.held is not None
    assert (found.held.by, placement(found.held.targets)) == (PlanHeldBy.SUSPENSION, {"m2": 4})
    assert plan.drift == ()


def test_a_suspended_binding_that_the_change_does_not_concern_is_a_note() -> None:
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=4), web("other").suspended(), web("third").suspended()],
        lambda draft: draft.scale("default/web", 8),
    )
    assert (plan.counts["held"], plan.counts["unchanged"]) == (0, 2)
    assert (
        "2 bindings are held with and without the change: scheduling is suspended (spec.suspension)"
        in plan.notes
    )


@pytest.mark.parametrize(
    ("reason", "message", "by"),
    [
        (
            "NoClusterFit",
            "0/2 clusters are available: 2 the team pays for none of them.",
            PlanHeldBy.PLUGIN,
        ),
        ("Unschedulable", "held at Guard by PlacementGuard: the budget is used", PlanHeldBy.GUARD),
        ("QuotaExceeded", "FederatedResourceQuota(default/team) exceeded for resource cpu", PlanHeldBy.QUOTA),
    ],
)
def test_what_the_running_scheduler_was_refused_is_neither_placed_nor_drift(
    reason: str, message: str, by: PlanHeldBy
) -> None:
    plan = cordoned(refused(web(), reason, message))

    found = only(plan)
    assert (found.effect, found.after) == (Effect.HELD, ())
    assert found.held is not None
    assert found.held.by is by
    assert plan.drift == ()
    assert plan.counts["placed"] == 0


def test_a_refusal_by_the_filters_of_karmada_is_drift_if_they_would_pass_now() -> None:
    message = "0/2 clusters are available: 1 cluster(s) had untolerated taint {a: b}, 1 cluster(s) did not have the API resource."
    plan = cordoned(refused(web(), "NoClusterFit", message))
    assert plan.counts["held"] == 0
    assert plan.drift is not None
    assert len(plan.drift) == 1


@pytest.mark.parametrize(
    ("message", "refusal"),
    [
        ("0/3 clusters are available: 3 cluster(s) is in the process of eviction.", ""),
        (
            "0/3 clusters are available: 1 cluster(s) did not have region property, 2 no licence.",
            "2 no licence",
        ),
        ("0/1 clusters are available: 1 ResourceBindingIndexer is nil.", ""),
        ("0/0 clusters are available: .", ""),
        ("something else", ""),
        ("", ""),
    ],
)
def test_a_refusal_that_is_not_one_of_karmada_is_found_in_the_message(message: str, refusal: str) -> None:
    assert [str(each) for each in foreign_refusals(message)][:1] == ([refusal] if refusal else [])


# --- quotas ---


def test_a_quota_refuses_a_workload_that_is_scaled_beyond_it() -> None:
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=4)],
        lambda draft: draft.scale("default/web", 30),
        quotas=[quota("10", "4")],
    )
    found = only(plan)
    assert (found.effect, placement(found.after)) == (Effect.HELD, {"m1": 4})
    [group] = plan.failures
    assert (group.reason, group.message) == (
        "QuotaExceeded",
        "quota default/team allows 10 cpu, and 30 would be used; it allows 10 of 30 replicas",
    )
    assert plan.counts["moved"] == 0
    assert plan.capacity == ()


@pytest.mark.parametrize("has_status", [False, True])
def test_what_a_quota_without_a_status_refuses_is_not_known(*, has_status: bool) -> None:
    given = quota("10", "4")
    given["status"] = given["status"] if has_status else {}
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=4)],
        lambda draft: draft.scale("default/web", 6),
        quotas=[given],
    )
    text = "whether the quota default/team refuses what is placed is not known: it has no status"
    assert (text in plan.notes) is not has_status


def test_a_quota_lets_a_workload_move_that_uses_no_more() -> None:
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=4)],
        lambda draft: draft.without("m1"),
        quotas=[quota("1", "4")],
    )
    assert effects(plan) == {"web": Effect.MOVED}


def test_a_workload_that_is_scaled_down_frees_what_another_one_waits_for() -> None:
    waiting = refused(web("api"), "QuotaExceeded", "exceeded")
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [waiting, settled(web(), m1=4)],
        lambda draft: draft.scale("default/web", 1),
        quotas=[quota("5", "4")],
    )
    assert effects(plan) == {"api": Effect.PLACED, "web": Effect.MOVED}
    assert plan.drift == ()


def test_a_quota_that_refuses_with_and_without_the_change_is_no_drift() -> None:
    plan = cordoned(web(), quotas=[quota("3", "0")])
    assert effects(plan) == {"web": Effect.HELD}
    assert plan.drift == ()


def test_a_larger_request_is_refused_before_the_scheduler_sees_it() -> None:
    old = settled(web(), m1=4)
    manifest = old.manifest()
    larger = {
        **manifest,
        "spec": {**manifest["spec"], "replicaRequirements": {"resourceRequest": {"cpu": "2"}}},
    }
    plan = plan_of([cluster("m1")], [old], lambda draft: draft.put(larger), quotas=[quota("6", "4")])
    assert effects(plan) == {"web": Effect.HELD}
    assert plan.failures[0].message.startswith("quota default/team allows 6 cpu, and 8 would be used")


def test_quotas_of_other_namespaces_refuse_nothing() -> None:
    plan = plan_of(
        [cluster("m1")],
        [settled(web(), m1=4)],
        lambda draft: draft.scale("default/web", 30),
        quotas=[quota("1", "0", namespace="shop")],
    )
    assert effects(plan) == {"web": Effect.MOVED}


# --- deletions that wait ---


def blocked(*bindings: BindingBuilder, **asking: Any) -> Plan:
    return plan_of([cluster("m1"), cluster("m2")], bindings, lambda draft: draft.without("m1"), **asking)


def test_a_deleted_cluster_waits_for_a_stuck_binding() -> None:
    stuck = settled(web(clusterAffinity={"clusterNames": ["m1", "m2"]}, spreadConstraints=[
        {"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2}
    ]), m1=2, m2=2)  # fmt: skip
    plan = blocked(stuck)

    [deletion] = plan.blocked
    assert deletion.object == "Cluster/m1"
    assert [(str(each), each.effect) for each in deletion.bindings] == [
        ("default/web-deployment", Effect.STUCK)
    ]
    assert deletion.bindings[0].text == only(plan).error
    assert plan.changes[0].text == "stays Terminating (2 replicas of 1 binding)"
    assert plan.violates(frozenset({"blocked"}))


@pytest.mark.parametrize(
    ("binding", "text"),
    [
        (settled(web(), m1=4).suspended(), "scheduling is suspended (spec.suspension)"),
        (settled(web(), m1=4).placement(None), "it has no placement, so no scheduler decides about it"),
    ],
)
def test_a_deleted_cluster_waits_for_a_binding_that_nobody_moves(binding: BindingBuilder, text: str) -> None:
    [deletion] = blocked(binding).blocked
    assert [each.text for each in deletion.bindings] == [text]


def test_a_deleted_cluster_waits_for_a_binding_of_a_missing_scheduler() -> None:
    [deletion] = blocked(settled(web(), m1=4).scheduler("nobody"), schedulers=schedulers()).blocked
    assert deletion.bindings[0].effect is Effect.UNDECIDED
    assert deletion.bindings[0].text.startswith("no scheduler is named nobody")


def test_a_deleted_cluster_goes_once_its_bindings_have_moved_or_are_deleted() -> None:
    plan = blocked(settled(web(), m1=4), settled(web("old"), m1=4).deleting(), settled(web("b"), m2=4))
    assert plan.blocked == ()
    assert plan.changes[0].text.startswith("is gone")


def test_a_binding_that_a_quota_would_not_let_grow_moves_all_the_same() -> None:
    assert blocked(settled(web(spreadConstraints=SPREAD), m1=4), quotas=[quota("4", "4")]).blocked == ()
