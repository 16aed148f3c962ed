"""Nothing asks for a decision."""

from datetime import UTC, datetime
from typing import Any

import pytest

from karmada_advisor.explain.explain import explain
from karmada_advisor.explain.model import NextState
from karmada_advisor.state.model import HeldBy, StateName
from karmada_advisor.state.schedulers import schedulers_of
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import BindingBuilder, binding, cluster
from tests.unit.explain.asking import causes, codes, explained, inputs_of, outcome, placement, primary

SCHEDULED = "2026-11-22T10:00:00Z"


def placed(name: str = "web", **replicas: int) -> BindingBuilder:
    """Return a divided binding that was scheduled."""
    made = binding(name).replicas(sum(replicas.values()), cpu=1).dynamic_weight().on(**replicas)
    return made.applied().last_scheduled(SCHEDULED)


def test_a_new_cluster_is_not_used_because_nothing_asks_and_a_rebalance_would_use_it() -> None:
    fleet = [cluster(name).capacity(cpu=100) for name in ("m1", "m2", "m3")]
    asked = placed(m1=3, m2=3)

    found = primary(asked, *fleet, why_not="m3")

    assert found.code == "NothingAsks"
    assert found.evidence["class"] == "Avoid"
    assert found.evidence["onRebalance"] == {"m1": 2, "m2": 2, "m3": 2}
    assert primary(asked, *fleet).code == "NothingAsks"
    explanation = explained(asked, *fleet)
    assert outcome(explanation) is NextState.PLACED
    assert explanation.trigger is not None
    assert not any(rule.holds for rule in explanation.trigger.rules)
    assert "a WorkloadRebalancer would give m1 2, m2 2, m3 2" in explanation.schedule


def test_a_new_cluster_is_used_at_once_by_a_duplicated_binding() -> None:
    asked = binding("web").replicas(2).duplicated().on(m1=2, m2=2).applied().last_scheduled(SCHEDULED)

    explanation = explained(asked, cluster("m1"), cluster("m2"), cluster("m3"))

    assert placement(explanation) == {"m1": 2, "m2": 2, "m3": 2}
    assert explanation.causes == ()
    assert explanation.trigger is not None
    assert "as scheduling type is duplicated" in explanation.trigger.reason
    assert [rule.id for rule in explanation.trigger.rules if rule.holds] == ["R4"]


def test_an_uncordoned_cluster_is_not_used_because_nothing_asks() -> None:
    found = primary(placed(m2=4), cluster("m1"), cluster("m2"), why_not="m1")

    assert found.code == "NothingAsks"
    assert found.evidence["onRebalance"] == {"m1": 2, "m2": 2}


def test_an_uncordoned_cluster_is_used_by_a_binding_that_fitted_nowhere() -> None:
    asked = binding("web").replicas(2, cpu=1).dynamic_weight().names("m1").applied()
    asked.condition(
        type="Scheduled", status="False", reason="NoClusterFit", message="0/1 clusters are available"
    )

    explanation = explained(asked, cluster("m1"), cluster("m2"))

    assert placement(explanation) == {"m1": 2}
    assert explanation.causes == ()


def test_an_unschedulable_binding_that_fits_again_waits_for_its_retry() -> None:
    asked = binding("web").replicas(2, cpu=1).dynamic_weight().applied()
    asked.condition(type="Scheduled", status="False", reason="Unschedulable", message="not enough")

    found = primary(asked, cluster("m1"))

    assert found.code == "BackingOff"
    assert found.evidence["condition"] == "Unschedulable"


def test_a_binding_that_fits_since_a_crd_is_installed_is_not_retried_by_timer() -> None:
    """karmada-io/karmada#3479"""
    asked = binding("web").replicas(2).duplicated().applied()
    message = "0/1 clusters are available: 1 cluster(s) did not have the API resource."
    asked.condition(type="Scheduled", status="False", reason="NoClusterFit", message=message)

    found = primary(asked, cluster("m1"))

    assert found.code == "NotRetried"


def test_a_wider_policy_does_not_move_what_is_placed() -> None:
    """karmada-io/karmada#1411"""
    asked = binding("web").replicas(6, cpu=1).dynamic_weight().names("m1").on(m1=6).applied()
    asked.names("m1", "m2").last_scheduled(SCHEDULED)

    found = primary(asked, cluster("m1"), cluster("m2"), why_not="m2")

    assert found.code == "SteadyKeeps"
    assert found.evidence["class"] == "Reconcile"
    assert found.evidence["onRebalance"] == {"m1": 3, "m2": 3}
    assert primary(asked, cluster("m1"), cluster("m2")).code == "SteadyKeeps"


def test_a_present_cluster_that_no_longer_matches_loses_its_replicas_at_the_next_decision() -> None:
    """karmada-io/karmada#4028"""

    def asked(replicas: int) -> BindingBuilder:
        made = binding("web").replicas(replicas, cpu=1).dynamic_weight().on(m1=8)
        made.affinity(labelSelector={"matchLabels": {"tier": "prod"}})
        return made.applied().last_scheduled(SCHEDULED)

    fleet = [cluster("m1"), cluster("m2").labels(tier="prod")]

    explanation = explained(asked(8), *fleet)

    assert codes(explanation.causes)[0] == "NothingAsks"
    assert placement(explanation) == {"m1": 8}
    assert any("m1 is refused now" in warning and "8 replicas" in warning for warning in explanation.warnings)
    assert placement(explained(asked(10), *fleet)) == {"m2": 10}


def test_a_rebalancer_that_is_not_newer_than_the_last_scheduling_is_too_old() -> None:
    """karmada-io/karmada#5206"""
    asked = placed(m1=6).reschedule_triggered("2026-11-22T09:59:59Z")

    found = causes(asked, cluster("m1"), cluster("m2"))

    assert codes(found) == ["RebalancerTooOld", "NothingAsks"]
    assert found[0].evidence["requested"] == "2026-11-22T09:59:59Z"
    assert found[0].evidence["lastScheduled"] == SCHEDULED
    assert found[0].evidence["resolution"] == "1s"


def test_a_rebalancer_from_before_the_recovery_of_a_cluster_has_acted() -> None:
    """karmada-io/karmada#6774"""
    recovered = cluster("m1")
    recovered.manifest()["status"]["conditions"][0]["lastTransitionTime"] = "2026-11-22T10:30:00Z"
    asked = placed(m2=6).reschedule_triggered("2026-11-22T09:59:59Z")

    found = primary(asked, recovered, cluster("m2"), why_not="m1")

    assert found.code == "NothingAsks"
    assert found.evidence["rebalancedAt"] == "2026-11-22T09:59:59Z"


def test_the_edit_of_a_lazy_policy_waits_for_the_template() -> None:
    """karmada-io/karmada#4931"""
    asked = placed(m1=6).names("m1").applied().label("propagationpolicy.karmada.io/permanent-id", "p")
    policy = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {
            "namespace": "default",
            "name": "web",
            "labels": {"propagationpolicy.karmada.io/permanent-id": "p"},
        },
        "spec": {
            "activationPreference": "Lazy",
            "placement": {"clusterAffinity": {"clusterNames": ["m1", "m2"]}},
        },
    }

    found = primary(asked, cluster("m1"), cluster("m2"), policies=[policy])

    assert found.code == "PolicyLazy"
    assert found.evidence["policy"] == "PropagationPolicy default/web"
    found = primary(asked, cluster("m1"), cluster("m2"), policies=[policy], why_not="m2")
    assert found.code == "PolicyLazy"


def test_a_suspended_binding_says_who_suspended_it() -> None:
    """karmada-io/karmada#6354"""
    asked = binding("web").replicas(2).suspended()
    written: dict[str, object] = {"f:spec": {"f:suspension": {"f:scheduling": {}}}}
    asked.manifest()["metadata"]["managedFields"] = [{"manager": "kubectl-patch", "fieldsV1": written}]

    explanation = explained(asked, cluster("m1"))

    assert explanation.state.held_by is HeldBy.SUSPENSION
    assert codes(explanation.causes) == ["Suspended"]
    assert explanation.causes[0].evidence["setBy"] == "kubectl-patch"
    assert not explanation.is_good


def test_a_binding_of_another_scheduler_names_it() -> None:
    asked = binding("web").replicas(2).scheduler("other")

    explanation = explained(asked, cluster("m1"), scheduler_names=frozenset({"default-scheduler"}))

    assert outcome(explanation) is None
    assert explanation.causes[0].code == "OtherScheduler"
    assert explanation.causes[0].evidence["schedulerName"] == "other"


def test_of_a_scheduler_that_nobody_runs_the_first_cause_is_that_it_is_missing() -> None:
    asked = binding("web").replicas(2).scheduler("my-schedular")

    found = inputs_of(asked, cluster("m1"), scheduler_names=frozenset({"my-scheduler"}))
    nobody = replace(found, facts=replace(found.facts, schedulers=schedulers_of([], now=datetime.now(UTC))))

    assert codes(explain(nobody).causes) == ["SchedulerMissing", "OtherScheduler"]


def test_a_binding_whose_policy_was_deleted_stays_as_it_is() -> None:
    """karmada-io/karmada#7253"""
    asked = placed(m1=6).label("propagationpolicy.karmada.io/permanent-id", "")

    explanation = explained(asked, cluster("m1"), policies=[])

    assert explanation.state.name is StateName.NOT_CLAIMED
    assert codes(explanation.causes) == ["Released"]
    assert placement(explanation) == {"m1": 6}


@pytest.mark.parametrize("policies", [None, []])
def test_a_binding_without_policy_id_is_not_claimed_whether_or_not_policies_were_read(
    policies: list[Any] | None,
) -> None:
    asked = placed(m1=6).label("propagationpolicy.karmada.io/permanent-id", "").replicas(7)

    explanation = explained(asked, cluster("m1"), policies=policies)

    assert explanation.state.name is StateName.NOT_CLAIMED
    assert outcome(explanation) is None


def test_a_binding_without_placement_follows_those_that_require_it() -> None:
    """karmada-io/karmada#3569"""
    asked = binding("web").placement(None)
    asked.manifest()["spec"]["requiredBy"] = [{"namespace": "default", "name": "app-deployment"}]

    found = primary(asked, cluster("m1"))

    assert found.code == "NoPlacement"
    assert found.evidence["requiredBy"] == ["default/app-deployment"]
