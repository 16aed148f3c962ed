"""Which change adds which bindings to the queue: a missed one loses a workload, one too many costs a decision."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.policy import Policy
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.core.cluster_changes import ClusterChanges
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import cluster
from tests import manifests

OURS = frozenset({"ours"})
TERMS = {
    "clusterAffinities": [
        {"affinityName": "first", "clusterNames": ["m1"]},
        {"affinityName": "second", "clusterNames": ["m2"], "overflowAffinities": [{"clusterNames": ["m3"]}]},
    ]
}
SCHEDULED = {"type": "Scheduled", "status": "True"}
OWN_TASK = {"fromCluster": "m9", "producer": "ours", "reason": "x"}
OTHERS_TASK = {**OWN_TASK, "producer": "TaintManager"}


def made(
    *,
    generation: int = 2,
    observed: int = 2,
    term: str = "",
    scheduled: bool = True,
    claimed: bool = True,
    uid: str = "uid",
    items: list[dict[str, Any]] | None = None,
    **spec: Any,
) -> Binding:
    manifest = manifests.binding(generation=generation, **spec)
    manifest["metadata"]["uid"] = uid
    if not claimed:
        manifest["metadata"]["labels"] = {}
    manifest["status"] = {
        "schedulerObservedGeneration": observed,
        "schedulerObservingAffinityName": term,
        "aggregatedStatus": items or [],
        "conditions": [SCHEDULED] if scheduled else [{**SCHEDULED, "status": "False"}],
    }
    return Binding.from_manifest(manifest)


@pytest.mark.parametrize(
    ("old", "new", "event"),
    [
        pytest.param(None, made(), requeue_rules.BINDING_ADD, id="it-is-new"),
        pytest.param(made(uid="a"), made(uid="b"), requeue_rules.BINDING_ADD, id="another-one-of-its-name"),
        pytest.param(made(claimed=False), made(), requeue_rules.BINDING_ADD, id="it-becomes-claimed"),
        pytest.param(
            made(schedulerName="other"), made(), requeue_rules.BINDING_ADD, id="it-becomes-our-scheduler's"
        ),
        pytest.param(
            made(suspension={"scheduling": True}), made(), requeue_rules.BINDING_ADD, id="it-is-resumed"
        ),
        pytest.param(
            made(), made(generation=3), requeue_rules.BINDING_UPDATE, id="its-generation-has-changed"
        ),
        pytest.param(
            made(generation=3), made(), requeue_rules.BINDING_UPDATE, id="its-generation-has-gone-back"
        ),
        pytest.param(made(), made(items=[{"clusterName": "m1"}]), None, id="its-status-has-changed"),
        pytest.param(made(), made(claimed=False, generation=3), None, id="it-is-not-claimed"),
        pytest.param(made(), made(schedulerName="other", generation=3), None, id="it-is-another-scheduler's"),
        pytest.param(made(), made(suspension={"scheduling": True}, generation=3), None, id="it-is-suspended"),
        pytest.param(made(), None, None, id="it-is-gone"),
    ],
)
def test_a_binding_is_added_when_it_becomes_ours_or_its_generation_changes(
    old: Binding | None, new: Binding | None, event: str | None
) -> None:
    assert requeue_rules.on_binding(old, new, OURS) == event


@pytest.mark.parametrize(
    ("before", "after", "is_added"),
    [
        pytest.param({}, {"items": [{"clusterName": "m1"}]}, True, id="a-copy-reports"),
        pytest.param({}, {}, False, id="nothing-is-reported"),
        pytest.param({}, {"items": [{"clusterName": "m1"}], "observed": 2}, False, id="it-is-observed"),
    ],
)
def test_a_binding_that_leaves_gracefully_is_added_when_a_copy_reports(
    before: dict[str, Any], after: dict[str, Any], is_added: bool
) -> None:
    leaving = {"observed": 1, "gracefulEvictionTasks": [OTHERS_TASK, OWN_TASK]}
    event = requeue_rules.on_binding(made(**{**leaving, **before}), made(**{**leaving, **after}), OURS)
    assert event == (requeue_rules.BINDING_UPDATE if is_added else None)


@pytest.mark.parametrize("tasks", [[], [OTHERS_TASK]])
def test_a_report_adds_no_binding_without_a_task_of_this_scheduler(tasks: list[dict[str, Any]]) -> None:
    old, new = (
        made(observed=1, gracefulEvictionTasks=tasks, items=items) for items in ([], [{"clusterName": "m1"}])
    )
    assert requeue_rules.on_binding(old, new, OURS) is None


@pytest.mark.parametrize(
    ("change", "versions"),
    [
        pytest.param({"labels": {"tier": "gold"}}, 2, id="labels"),
        pytest.param({"generation": 2}, 2, id="spec"),
        pytest.param({"generation": 0}, 2, id="spec-of-a-backup"),
        pytest.param({"uid": "other"}, 2, id="another-cluster-of-its-name"),
        pytest.param({"deleting": True}, 1, id="deletion"),
        pytest.param({"resource_version": "9"}, 0, id="status"),
    ],
)
def test_the_versions_of_a_changed_cluster_that_count(change: dict[str, Any], versions: int) -> None:
    old = replace(cluster("m1").build(), generation=1)
    new = replace(old, **change)
    assert requeue_rules.on_cluster(old, new) == (old, new)[2 - versions :]


def test_an_ended_deletion_is_no_second_change() -> None:
    old = cluster("m1").deleting().build()
    assert requeue_rules.on_cluster(old, replace(old, resource_version="9")) == ()
    assert requeue_rules.on_cluster(None, old) == requeue_rules.on_cluster(old, None) == ()


def test_a_cluster_gains_the_apis_that_it_did_not_serve() -> None:
    old = cluster("m1").serves({"apps/v1": ["Deployment"]}).build()
    new = cluster("m1").serves({"apps/v1": ["Deployment"], "batch/v1": ["Job"]}).build()
    assert requeue_rules.gained_apis(old, new) == {("batch/v1", "Job")}
    assert requeue_rules.gained_apis(new, old) == frozenset()
    assert requeue_rules.gained_apis(old, replace(new, deleting=True)) == frozenset()


@pytest.mark.parametrize(
    ("name", "placement", "may"),
    [
        ("m1", {}, True),
        ("m1", {"clusterAffinity": {"clusterNames": ["m1"]}}, True),
        ("m2", {"clusterAffinity": {"clusterNames": ["m1"]}}, False),
        ("m1", TERMS, True),
        ("m2", TERMS, True),
        ("m3", TERMS, True),
        ("m4", TERMS, False),
    ],
)
def test_a_cluster_may_be_taken_by_any_term_and_overflow_tier(
    name: str, placement: dict[str, Any], may: bool
) -> None:
    found = made(placement=placement).spec.placement
    assert found is not None
    assert requeue_rules.may_take(cluster(name).build(), found) == may


@pytest.mark.parametrize(
    ("name", "binding", "is_affected"),
    [
        ("m1", made(placement=TERMS, term="first"), True),
        ("m2", made(placement=TERMS, term="first"), False),
        ("m2", made(placement=TERMS, term="second"), True),
        ("m1", made(placement=TERMS), True),
        ("m2", made(placement=TERMS), False),
        ("m2", made(placement=TERMS, term="first", observed=1), True),
        ("m3", made(observed=1), False),
        ("m3", made(placement={}), True),
        ("m1", made(placement=None), False),
    ],
)
def test_a_change_of_a_cluster_concerns_the_bindings_whose_affinity_in_use_matches(
    name: str, binding: Binding, is_affected: bool
) -> None:
    changed = cluster(name).build()
    assert requeue_rules.is_affected(binding, changed) == is_affected
    changes = ClusterChanges()
    changes.add(changed, replace(changed, generation=7))
    assert changes.concerns(binding) == is_affected


@pytest.mark.parametrize(
    ("binding", "is_concerned"),
    [
        pytest.param(made(placement=TERMS, term="first", scheduled=False), True, id="unplaced"),
        pytest.param(made(placement=TERMS, term="first"), False, id="placed"),
        pytest.param(
            made(placement=TERMS, term="first", scheduled=False, claimed=False), False, id="not-claimed"
        ),
        pytest.param(made(scheduled=False), False, id="no-affinity-matches"),
    ],
)
@pytest.mark.parametrize("cause", ["spec", "api"])
def test_a_cluster_that_opens_concerns_the_unplaced_bindings_that_may_be_placed_on_it(
    cause: str, binding: Binding, is_concerned: bool
) -> None:
    old = cluster("m3").serves({"apps/v1": ["StatefulSet"]}).build()
    if cause == "spec":
        new = replace(old, generation=7)
    else:
        new = cluster("m3").serves({"apps/v1": ["StatefulSet", "Deployment"]}).build()
    changes = ClusterChanges()
    changes.add(old, new)
    assert changes
    assert changes.concerns(binding) == is_concerned


def test_an_api_concerns_no_binding_of_another_kind() -> None:
    changes = ClusterChanges()
    changes.add(cluster("m3").serves({}).build(), cluster("m3").serves({"batch/v1": ["Job"]}).build())
    assert not changes.concerns(made(placement=TERMS, term="first", scheduled=False))


def test_a_cluster_that_is_being_deleted_opens_for_nobody() -> None:
    changes = ClusterChanges()
    changes.add(cluster("m3").build(), cluster("m3").deleting().build())
    assert not changes.concerns(made(placement=TERMS, term="first", scheduled=False))
    changes = ClusterChanges()
    changes.add(None, cluster("m3").deleting().build())
    assert not changes.concerns(made(placement=TERMS, term="first", scheduled=False))


def test_a_cluster_that_appears_concerns_the_bindings_that_waited_for_it() -> None:
    changes = ClusterChanges()
    assert not changes
    changes.add(None, cluster("m9").build())
    assert changes.concerns(made(clusters=[{"name": "m9", "replicas": 2}]))
    assert not changes.concerns(made(clusters=[{"name": "m1", "replicas": 2}]))


def test_all_unplaced_bindings_are_concerned_if_it_is_not_known_what_has_changed() -> None:
    changes = ClusterChanges()
    changes.add_all_unplaced()
    assert changes
    assert changes.concerns(made(scheduled=False))
    assert not changes.concerns(made())
    assert not changes.concerns(made(scheduled=False, claimed=False))
    assert not changes.concerns(made(scheduled=False, placement=None))


def policy(label: str, *, generation: int = 1) -> Policy:
    manifest = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {
            "name": "p", "namespace": "demo", "uid": "uid-p", "generation": generation,
            "labels": {"propagationpolicy.karmada.io/permanent-id": label},
        },
        "spec": {"placement": {}},
    }  # fmt: skip
    return Policy.from_manifest(manifest)


def test_a_policy_adds_its_bindings_when_it_appears_changes_or_disappears() -> None:
    first, second = policy("p"), policy("p", generation=2)
    assert requeue_rules.on_policy(None, first) == "p"
    assert requeue_rules.on_policy(first, second) == requeue_rules.on_policy(second, first) == "p"
    assert requeue_rules.on_policy(second, None) == "p"
    assert requeue_rules.on_policy(second, second) is None
    assert requeue_rules.on_policy(None, policy("")) is None
    assert requeue_rules.on_policy(None, None) is None
