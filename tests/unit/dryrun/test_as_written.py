"""A dry run stores decisions, and what Guard plugins add to them, as the scheduler does."""

from __future__ import annotations

from datetime import UTC, datetime

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.binding_manifest import read_tasks
from karmada_scheduler.core.decision import Decision, Guarded
from karmada_scheduler.dryrun.result import as_written, manifest_as_written
from karmada_scheduler.framework.diagnosis import UnschedulableError
from karmada_scheduler.framework.guard_point import EvictionTask
from karmada_scheduler.testing import BindingBuilder, binding

ON_M2 = (TargetCluster("m2", 2),)
AT = datetime(2026, 11, 26, 12, tzinfo=UTC)


def on_m1() -> BindingBuilder:
    return binding("web").replicas(2).on(m1=2)


def written(asked: BindingBuilder, guarded: Guarded) -> Binding:
    made = asked.build()
    return as_written(made, Decision(made.key, targets=ON_M2, applied_placement="{}", guarded=guarded), AT)


def test_an_annotation_that_a_guard_removes_is_gone() -> None:
    asked = on_m1().annotation("example.com/held", "since noon").annotation("example.com/team", "shop")
    found = written(asked, Guarded(annotations={"example.com/held": None, "example.com/moves": "1"}))
    assert "example.com/held" not in found.annotations
    assert found.annotations["example.com/team"] == "shop"
    assert found.annotations["example.com/moves"] == "1"


def test_a_cluster_whose_task_is_cancelled_may_get_a_new_one() -> None:
    asked = on_m1()
    name = asked.build().spec.responsible_scheduler
    manifest = asked.manifest()
    manifest["spec"]["gracefulEvictionTasks"] = [{"fromCluster": "m1", "producer": name, "reason": "Before"}]
    made = Binding.from_manifest(manifest)
    guarded = Guarded(tasks=(EvictionTask("m1", "Again"),), cancelled=frozenset({"m1"}))
    found = as_written(made, Decision(made.key, targets=ON_M2, applied_placement="{}", guarded=guarded), AT)
    assert [each.manifest["reason"] for each in found.spec.graceful_eviction_tasks] == ["Again"]


def test_new_tasks_go_before_those_that_are_stored() -> None:
    found = written(on_m1().evicted_from("m3"), Guarded(tasks=(EvictionTask("m1"),)))
    assert [each.from_cluster for each in found.spec.graceful_eviction_tasks] == ["m1", "m3"]
    assert found.spec.graceful_eviction_tasks == read_tasks(
        [dict(each.manifest) for each in found.spec.graceful_eviction_tasks]
    )


def test_a_decision_that_keeps_the_clusters_stores_only_annotations() -> None:
    made = on_m1().build()
    guarded = Guarded(refused_by="Hold", tasks=(EvictionTask("m1"),), annotations={"example.com/held": "yes"})
    found = as_written(made, Decision(made.key, guarded=guarded), AT)
    assert found.spec == made.spec
    assert found.annotations == {**made.annotations, "example.com/held": "yes"}


def test_the_five_parts_of_a_decision_are_stored() -> None:
    made = on_m1().build()
    found = as_written(
        made, Decision(made.key, targets=ON_M2, applied_placement="{}", affinity_name="near"), AT
    )
    assert found.spec.clusters == ON_M2
    assert found.applied_placement_json == "{}"
    assert found.status.scheduler_observing_affinity_name == "near"
    assert found.status.last_scheduled_time == AT
    assert found.generation == found.status.scheduler_observed_generation == made.generation + 1
    assert found.status.condition("Scheduled") == {
        "type": "Scheduled",
        "status": "True",
        "reason": "Success",
        "message": "Binding has been scheduled successfully.",
        "lastTransitionTime": "2026-11-26T12:00:00Z",
    }


def test_a_failed_decision_stores_its_condition_and_no_time() -> None:
    made = binding("web").replicas(2).build()
    found = as_written(made, Decision(made.key, error=UnschedulableError("nothing left")), AT)
    condition = found.status.condition("Scheduled")
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert found.status.last_scheduled_time is None
    assert found.generation == made.generation


def test_the_manifest_of_a_stored_decision_reads_as_the_stored_binding() -> None:
    for asked in (on_m1(), on_m1().evicted_from("m3"), binding("web").replicas(2)):
        manifest = asked.manifest()
        made = Binding.from_manifest(manifest)
        for decision in (
            Decision(made.key, targets=ON_M2, applied_placement="{}", affinity_name="near"),
            Decision(made.key, error=UnschedulableError("nothing left")),
        ):
            stored = as_written(made, decision, AT)
            assert Binding.from_manifest(manifest_as_written(manifest, stored)) == stored
