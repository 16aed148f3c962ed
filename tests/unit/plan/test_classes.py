"""The class of a binding: what the scheduler does upon a change, and what it does not look at again."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_advisor.views.plan_text import plan_text
from karmada_advisor.views.text import Style
from karmada_advisor.whatif.plan.change import Draft
from karmada_advisor.whatif.plan.model import ClaimChange, Effect
from karmada_advisor.whatif.plan.objects import PlanObjects
from karmada_advisor.whatif.plan.question import PlanInputs
from karmada_advisor.whatif.plan.result import make_plan
from karmada_scheduler.testing import BindingBuilder, binding, cluster
from tests.unit.plan.asking import effects, gate, only, placement, plan_of, rules
from tests.unit.plan.fleet import claimed, policy, selector

SPREAD = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
DYNAMIC = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}


def settled(made: BindingBuilder, **replicas: int) -> BindingBuilder:
    """Return a binding on clusters, as the scheduler has left it."""
    return (
        made.on(**replicas)
        .applied()
        .last_scheduled("2026-11-22T10:00:00Z")
        .condition(type="Scheduled", status="True", reason="Success")
    )


def web(name: str = "web", replicas: int = 4, **placement_fields: Any) -> BindingBuilder:
    """Return a binding of the policy p."""
    placed = {"replicaScheduling": DYNAMIC, **placement_fields}
    return claimed(binding(name).replicas(replicas, cpu=1).placement(placed), "p")


def policy_p(**placement_fields: Any) -> dict[str, Any]:
    """Return the policy p, which selects all Deployments."""
    found = policy("p", {"replicaScheduling": DYNAMIC, **placement_fields})
    found["spec"]["resourceSelectors"] = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
    return found


def test_a_cordoned_cluster_keeps_its_bindings_and_the_plan_says_how_many() -> None:
    plan = plan_of([cluster("m1"), cluster("m2")], [settled(web(), m1=4)], lambda draft: draft.cordon("m1"))
    assert plan.counts["unchanged"] == 1
    assert plan.bindings == ()
    assert plan.notes == ("1 of them are on m1 and would not be placed there again once they leave",)


def test_a_deleted_cluster_moves_its_bindings_at_once() -> None:
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web("here"), m1=4), settled(web("there"), m2=4)],
        lambda draft: draft.without("m1"),
    )
    found = only(plan)
    assert (found.effect, found.when, found.schedule_type) == (Effect.MOVED, "at once", "Failover")
    assert placement(found.after) == {"m2": 4}
    assert (found.stops, found.starts, found.entirely) == (4, 4, True)


def test_a_binding_that_no_policy_claims_moves_when_its_cluster_is_deleted() -> None:
    loose = settled(web("loose"), m1=4).manifest()
    del loose["metadata"]["labels"]

    plan = plan_of([cluster("m1"), cluster("m2")], [loose], lambda draft: draft.without("m1"))

    assert (only(plan).effect, placement(only(plan).after)) == (Effect.MOVED, {"m2": 4})


def test_a_binding_whose_last_cluster_is_deleted_is_unplaced() -> None:
    plan = plan_of([cluster("m1")], [settled(web(), m1=4)], lambda draft: draft.without("m1"))
    found = only(plan)
    assert found.effect is Effect.UNPLACED
    assert plan.violates(frozenset({"unplaced", "stuck"}))
    assert plan.failures[0].reason == "NoClusterFit"


def test_a_changed_policy_moves_its_bindings_only() -> None:
    other = claimed(binding("other").replicas(4, cpu=1).dynamic_weight(), "q")
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=4), settled(other, m1=4)],
        lambda draft: draft.put(policy_p(clusterAffinity={"clusterNames": ["m2"]})),
        policies=[policy_p(), {**policy("q", {"replicaScheduling": DYNAMIC})}],
    )
    assert effects(plan) == {"web": Effect.MOVED}
    assert placement(only(plan).after) == {"m2": 4}
    assert plan.not_derived == 1


def test_a_binding_that_keeps_its_placement_although_every_decision_fails_is_stuck() -> None:
    constraint = [{"spreadByField": "cluster", "minGroups": 3, "maxGroups": 3}]
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=2, m2=2)],
        lambda draft: draft.put(policy_p(spreadConstraints=constraint)),
        policies=[policy_p()],
    )
    found = only(plan)
    assert found.effect is Effect.STUCK
    assert found.before == found.after
    assert "minGroups" in plan.failures[0].causes[0].text or plan.failures[0].causes
    assert plan.counts["stuck"] == plan.after_rebalance["stuck"] == 1


def test_a_policy_edit_that_steady_division_ignores_is_latent() -> None:
    clusters = [cluster("m1").capacity(cpu=100), cluster("m2").capacity(cpu=100)]
    plan = plan_of(
        clusters,
        [settled(web(spreadConstraints=SPREAD), m1=4)],
        lambda draft: draft.put(
            policy_p(spreadConstraints=[{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 2}])
        ),
        policies=[policy_p(spreadConstraints=SPREAD)],
    )
    found = only(plan)
    assert (found.effect, found.when) == (Effect.LATENT, "at the next rebalance")
    assert placement(found.after) == {"m1": 4}
    assert found.later is not None
    assert placement(found.later.targets) == {"m1": 2, "m2": 2}
    assert plan.after_rebalance == {"unchanged": 0, "moved": 1, "stuck": 0}


def test_a_new_cluster_is_latent_for_placed_bindings_and_placed_for_waiting_ones() -> None:
    waiting = claimed(binding("waiting").replicas(2, cpu=1).dynamic_weight().names("m9"), "q").condition(
        type="Scheduled", status="False", reason="NoClusterFit"
    )
    plan = plan_of(
        [cluster("m1").capacity(cpu=100)],
        [settled(web(replicas=40), m1=40), waiting],
        lambda draft: draft.add("m9", "m1"),
    )
    assert effects(plan) == {"web": Effect.LATENT, "waiting": Effect.PLACED}


def test_free_capacity_alone_reschedules_only_what_is_retried() -> None:
    def unplaced(name: str, reason: str) -> BindingBuilder:
        made = claimed(binding(name).replicas(8, cpu=1).dynamic_weight(), "p")
        return made.condition(type="Scheduled", status="False", reason=reason)

    plan = plan_of(
        [cluster("m1").capacity(cpu=4)],
        [settled(web(), m1=4), unplaced("retried", "Unschedulable"), unplaced("idle", "NoClusterFit")],
        lambda draft: draft.room("m1", "cpu=+20"),
    )
    assert effects(plan) == {"retried": Effect.PLACED}
    assert only(plan).when == "at the next retry"


def test_a_lazy_policy_defers_its_change() -> None:
    lazy = policy_p(clusterAffinity={"clusterNames": ["m2"]})
    lazy["spec"]["activationPreference"] = "Lazy"
    before = policy_p()
    before["spec"]["activationPreference"] = "Lazy"
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=4)],
        lambda draft: draft.put(lazy),
        policies=[before],
    )
    assert only(plan).effect is Effect.DEFERRED
    assert only(plan).when == "when the template changes"


def test_a_deleted_policy_releases_its_bindings_which_keep_their_clusters() -> None:
    plan = plan_of(
        [cluster("m1")],
        [settled(web(), m1=4)],
        lambda draft: draft.delete("ClusterPropagationPolicy", "", "p"),
        policies=[policy_p()],
    )
    assert (only(plan).effect, only(plan).claim) == (Effect.UNCHANGED, ClaimChange.RELEASED)
    assert plan.counts["released"] == 1
    assert plan.counts["unchanged"] == 1


def test_a_binding_that_another_policy_takes_over_is_adopted() -> None:
    second = policy("second", {"replicaScheduling": DYNAMIC, "clusterAffinity": {"clusterNames": ["m2"]}})
    second["spec"]["resourceSelectors"] = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=4)],
        lambda draft: draft.delete("ClusterPropagationPolicy", "", "p"),
        policies=[policy_p(), second],
    )
    assert (only(plan).effect, only(plan).claim) == (Effect.MOVED, ClaimChange.ADOPTED)
    assert str(only(plan).policy) == "ClusterPropagationPolicy second"


def test_what_would_change_anyway_is_drift_and_no_effect_of_the_change() -> None:
    duplicated = claimed(binding("copy").replicas(2).duplicated(), "q").on(m1=2).applied()
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=4), duplicated.last_scheduled("2026-11-22T10:00:00Z")],
        lambda draft: draft.label("m2", "tier=prod"),
    )
    assert effects(plan) == {}
    assert plan.drift is not None
    assert [(str(each), placement(each.after)) for each in plan.drift] == [
        ("default/copy-deployment", {"m1": 2, "m2": 2})
    ]
    assert plan.violates(frozenset({"drift"}))


def test_a_binding_that_fails_already_is_not_stuck_because_of_the_change() -> None:
    failing = web(spreadConstraints=[{"spreadByField": "cluster", "minGroups": 5, "maxGroups": 5}])
    failing.on(m1=4).applied({"replicaScheduling": DYNAMIC}).last_scheduled("2026-11-22T10:00:00Z")
    plan = plan_of([cluster("m1"), cluster("m2")], [failing], lambda draft: draft.label("m2", "tier=prod"))
    assert plan.counts["stuck"] == 0
    assert plan.drift is not None
    assert plan.drift[0].error


def test_drift_is_left_out_on_demand() -> None:
    plan = plan_of(
        [cluster("m1")], [settled(web(), m1=4)], lambda draft: draft.cordon("m1"), with_drift=False
    )
    assert plan.drift is None


def test_scaling_starts_replicas_and_stops_none() -> None:
    plan = plan_of(
        [cluster("m1").capacity(cpu=100)],
        [settled(web(), m1=4)],
        lambda draft: draft.scale("default/web", 30),
    )
    found = only(plan)
    assert (found.effect, found.schedule_type, found.stops, found.starts) == (Effect.MOVED, "Scale", 0, 26)


def test_a_workload_that_is_scaled_above_what_fits_is_stuck() -> None:
    plan = plan_of(
        [cluster("m1").capacity(cpu=10)],
        [settled(web(), m1=4)],
        lambda draft: draft.scale("default/web", 300),
    )
    assert only(plan).effect is Effect.STUCK


def test_a_new_taint_moves_nothing_unless_karmada_evicts() -> None:
    clusters, placed = [cluster("m1"), cluster("m2")], [settled(web(), m1=4)]

    def change(draft: Any) -> None:
        draft.taint("m1", "broken=yes:NoExecute")

    assert effects(plan_of(clusters, placed, change)) == {}
    evicting = plan_of(clusters, placed, change, evicts=True)
    assert (only(evicting).effect, only(evicting).when) == (Effect.MOVED, "after eviction")
    assert placement(only(evicting).after) == {"m2": 4}


def test_a_binding_without_an_applied_placement_is_never_evicted() -> None:
    made = settled(web(), m1=4)
    del made.manifest()["metadata"]["annotations"]["policy.karmada.io/applied-placement"]

    def change(draft: Any) -> None:
        draft.taint("m1", "broken=yes:NoExecute")

    plan = plan_of([cluster("m1"), cluster("m2")], [made.suspended()], change, evicts=True)
    assert effects(plan) == {}


def test_a_gate_that_changes_restarts_the_scheduler_which_looks_at_every_binding() -> None:
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=4)],
        gates_after=gate("SchedulingOvercommitProtection"),
    )
    assert effects(plan) == {}
    assert plan.not_derived is None


def test_a_reschedule_that_a_workload_rebalancer_requests_happens_at_once() -> None:
    rebalancer = {
        "apiVersion": "apps.karmada.io/v1alpha1",
        "kind": "WorkloadRebalancer",
        "metadata": {"name": "again"},
        "spec": {
            "workloads": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"}
            ]
        },
    }
    clusters = [cluster("m1").capacity(cpu=100), cluster("m2").capacity(cpu=100)]
    plan = plan_of(clusters, [settled(web(), m1=4)], lambda draft: draft.put(rebalancer))
    assert placement(only(plan).after) == {"m1": 2, "m2": 2}
    assert plan.changes[0].text == "reschedules 1 binding"


def test_a_template_without_labels_that_are_known_keeps_its_policy() -> None:
    before, after = policy_p(), policy_p(clusterAffinity={"clusterNames": ["m2"]})
    for each in (before, after):
        each["spec"]["resourceSelectors"] = [selector("p")]
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=4)],
        lambda draft: draft.put(after),
        policies=[before],
    )
    assert (only(plan).effect, only(plan).claim) == (Effect.MOVED, ClaimChange.KEPT)


def test_a_reschedule_that_was_requested_while_no_policy_claimed_the_binding_happens_when_one_does() -> None:
    """Events of a binding that no policy claims concern no scheduler, so the request is no drift either."""
    made = binding("web").replicas(4, cpu=1).placement({"replicaScheduling": DYNAMIC})
    waiting = settled(made, m1=4).reschedule_triggered("2026-11-22T11:00:00Z").manifest()
    del waiting["metadata"]["labels"]
    adopting = policy_p()
    adopting["spec"]["resourceSelectors"] = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
    clusters = [cluster("m1").capacity(cpu=100), cluster("m2").capacity(cpu=100)]
    plan = plan_of(clusters, [waiting], lambda draft: draft.put(adopting), policies=[])
    assert (only(plan).effect, only(plan).claim, plan.drift) == (Effect.MOVED, ClaimChange.ADOPTED, ())
    assert placement(only(plan).after) == {"m1": 2, "m2": 2}


@pytest.mark.parametrize("replicas", [4, 0])
def test_what_has_no_cluster_before_and_after_is_unchanged_and_pending(replicas: int) -> None:
    lost = web("lost", replicas, clusterAffinity={"clusterNames": ["m9"]})
    lost.condition(type="Scheduled", status="False", reason="NoClusterFit")
    follower = binding("settings").placement(None)
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=4), lost, follower],
        lambda draft: draft.cordon("m1"),
    )
    assert (plan.counts["unchanged"], plan.counts["pending"]) == (3, 1)
    assert not plan.violates(frozenset({"unplaced"}))
    assert "2 bindings keep their placement, 1 stays without a cluster" in plan_text(plan, Style())


def deployment(name: str = "web", **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": fields,
    }


def test_a_scaled_template_keeps_the_policy_that_was_not_read() -> None:
    clusters = [cluster("m1").capacity(cpu=100), cluster("m2").capacity(cpu=100)]
    plan = plan_of(
        clusters,
        [
            settled(web(), m1=4),
            settled(web("other"), m2=4),
            settled(web("svc"), m2=4).annotation("multiclusterservice.karmada.io/name", "svc"),
        ],
        lambda draft: draft.scale("default/web", 6),
        templates=[deployment(replicas=4), deployment("other", replicas=4)],
    )
    assert (only(plan).effect, only(plan).claim) == (Effect.MOVED, ClaimChange.KEPT)
    assert any("no policies were read" in note for note in plan.notes)


def test_a_rebalance_is_not_held_by_the_detector_which_writes_no_reschedule() -> None:
    plan = plan_of(
        [cluster("m1").capacity(cpu=100), cluster("m2").capacity(cpu=100)],
        [settled(web(), m1=4)],
        lambda draft: draft.rebalance("default/web"),
        templates=[deployment(replicas=8)],
    )
    assert placement(only(plan).after) == {"m1": 2, "m2": 2}


def test_a_template_of_which_only_the_metadata_were_read_is_not_judged() -> None:
    objects = PlanObjects()
    objects.add(cluster("m1").manifest())
    objects.add(deployment())
    objects.metadata_only.update(objects.templates)
    draft = Draft(objects)
    draft.put(policy_p())
    plan = make_plan(PlanInputs(objects, draft, rules(), rules()))

    assert only(plan).effect is Effect.NOT_JUDGED
    shown = " ".join(plan_text(plan, Style(100)).split())
    assert "No changes" not in shown
    assert "its template was not read as a whole" in shown


@pytest.mark.parametrize("kind", ["FederatedHPA", "CronFederatedHPA"])
def test_what_an_autoscaler_of_the_change_scales_is_not_judged(kind: str) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scaler = {
        "apiVersion": "autoscaling.karmada.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "s", "namespace": "default"},
        "spec": {"scaleTargetRef": target},
    }
    bindings = [settled(web(), m1=4), settled(web("other"), m1=4)]
    plan = plan_of([cluster("m1").capacity(cpu=100)], bindings, lambda draft: draft.put(scaler))
    assert effects(plan) == {"web": Effect.NOT_JUDGED}


def test_an_eviction_that_is_due_already_counts_on_both_sides() -> None:
    clusters = [cluster("m1").taint("gpu=bad:NoExecute"), cluster("m2")]
    placed = [settled(web("api"), m1=2, m2=2), settled(web("idle"), m1=2, m2=2)]

    plan = plan_of(clusters, placed, lambda draft: draft.scale("default/api", 8), evicts=True)

    assert placement(only(plan).after) == {"m2": 8}  # only the change counts as one
    assert [each.name for each in plan.drift or ()] == ["api-deployment", "idle-deployment"]


def test_a_new_workload_is_not_adopted_by_its_first_policy() -> None:
    new = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "new", "namespace": "default"},
        "spec": {"replicas": 1, "template": {"spec": {"containers": []}}},
    }
    plan = plan_of(
        [cluster("m1")], [], lambda draft: draft.put(policy_p()), lambda draft: draft.put(new), policies=[]
    )
    assert (only(plan).effect, only(plan).claim) == (Effect.PLACED, ClaimChange.KEPT)


@pytest.mark.parametrize("has_components", [False, True])
def test_the_capacity_for_components_is_said_not_to_be_judged(*, has_components: bool) -> None:
    made = web().replicas(0).spread("cluster", 1, 1)
    if has_components:
        made.component("jobmanager", 1, cpu="1").component("taskmanager", 4, cpu="3")
    plan = plan_of([cluster("m1"), cluster("m2")], [settled(made, m1=0)], lambda draft: draft.without("m1"))
    text = "not judged: whether there is capacity for the components of default/web"
    assert any(each.startswith(text) for each in plan.notes) is has_components


def test_static_assignments_of_a_quota_are_said_not_to_be_judged() -> None:
    spec = {"overall": {"cpu": "100"}, "staticAssignments": [{"clusterName": "m1", "hard": {"cpu": "1"}}]}
    quota = {
        "kind": "FederatedResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": spec,
    }
    plan = plan_of(
        [cluster("m1")], [settled(web(), m1=4)], lambda draft: draft.scale("default/web", 6), quotas=[quota]
    )
    assert any(
        each.startswith("not judged: static assignments of the quota default/q") for each in plan.notes
    )


def by(scheduler: str, found: dict[str, Any]) -> dict[str, Any]:
    """Return a policy of a scheduler."""
    return {**found, "spec": {**found["spec"], "schedulerName": scheduler}}


def test_a_policy_that_gets_another_scheduler_keeps_its_workloads_and_their_placements() -> None:
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=4)],
        lambda draft: draft.put(by("my-scheduler", policy_p())),
        policies=[policy_p()],
    )
    assert (plan.counts["moved"], plan.counts["adopted"], plan.counts["released"]) == (0, 0, 0)
    [note] = [each for each in plan.notes if "another scheduler" in each]
    assert note.startswith("1 policy gets another scheduler by being deleted and created")


def test_what_another_policy_selects_is_its_own_after_a_change_of_the_scheduler() -> None:
    general = policy("zz", {"replicaScheduling": DYNAMIC, "clusterAffinity": {"clusterNames": ["m2"]}})
    general["spec"]["resourceSelectors"] = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=4)],
        lambda draft: draft.put(by("my-scheduler", policy_p())),
        policies=[policy_p(), general],
    )
    assert (only(plan).effect, only(plan).claim) == (Effect.MOVED, ClaimChange.ADOPTED)
    assert str(only(plan).policy) == "ClusterPropagationPolicy zz"


def test_a_change_of_the_scheduler_and_of_the_placement_moves_what_the_new_placement_excludes() -> None:
    after = policy_p(clusterAffinity={"clusterNames": ["m2"]})
    plan = plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web(), m1=4)],
        lambda draft: draft.put(by("my-scheduler", after)),
        policies=[policy_p()],
    )
    assert (only(plan).effect, only(plan).claim) == (Effect.MOVED, ClaimChange.KEPT)
