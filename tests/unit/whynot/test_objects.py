"""Outcomes of edits do not depend on the edits that were tried before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from karmada_advisor.fleet.rules import Rules
from karmada_advisor.whynot.objects import ObjectSet
from karmada_scheduler.dryrun.objects import ShownObjects, Workloads
from karmada_scheduler.framework.edits import Edit, ObjectRef, PatchAction, Side
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster


@contextmanager
def object_set(asked: BindingBuilder, *clusters: ClusterBuilder) -> Iterator[ObjectSet]:
    with Rules().dry_run(ShownObjects(Workloads(None))) as dry_run:
        built = asked.build()
        yield ObjectSet(
            built.key,
            dry_run,
            {
                ObjectRef("Cluster", "", each.build().name): (each.manifest(), each.build())
                for each in clusters
            },
            {ObjectRef(*built.key): (asked.manifest(), built)},
        )


def asked() -> BindingBuilder:
    return binding("web").replicas(6, cpu=1).dynamic_weight()


def fleet() -> list[ClusterBuilder]:
    return [cluster(name).capacity(cpu=9, memory="9Gi", pods=9) for name in ("m1", "m2", "m3")]


def taint(name: str, key: str = "k") -> Edit:
    return Edit(
        Side.CLUSTER, "addTaint", ObjectRef("Cluster", "", name), PatchAction.APPEND, ("spec", "taints"),
        value={"key": key, "effect": "NoSchedule"},
    )  # fmt: skip


def exclude(name: str) -> Edit:
    ref = ObjectRef(*asked().build().key)
    return Edit(
        Side.POLICY, "excludeCluster", ref, PatchAction.APPEND, ("spec", "placement", "clusterAffinity", "exclude"),
        value=name,
    )  # fmt: skip


def test_outcomes_do_not_depend_on_the_edits_that_were_tried_before() -> None:
    sequence: list[list[Edit]] = [
        [taint("m1")],
        [taint("m2")],
        [],
        [taint("m1"), taint("m2")],
        [taint("m1"), exclude("m3")],
        [exclude("m3")],
        [taint("m1", "other")],
        [taint("m2"), exclude("m3")],
        [taint("m1"), taint("m3")],
    ]
    with object_set(asked(), *fleet()) as reused:
        for edits in sequence:
            with object_set(asked(), *fleet()) as fresh:
                expected, found = fresh.outcome(edits), reused.outcome(edits)
            assert expected is not None
            assert found is not None
            assert found.scheduled == expected.scheduled
            used = {"m1", "m2", "m3"} - {str(each.target.name) for each in edits if each.op == "addTaint"}
            assert set(found.replicas) == used - {
                str(each.value) for each in edits if each.op == "excludeCluster"
            }


def test_the_snapshot_without_edits_follows_those_with_edits() -> None:
    with object_set(asked(), *fleet()) as objects:
        objects.outcome([taint("m1")])
        outcome = objects.outcome(())

    assert outcome is not None
    assert {each.name for each in outcome.scheduled.targets} == {"m1", "m2", "m3"}


def test_a_cluster_that_is_changed_in_the_same_way_is_parsed_once() -> None:
    with object_set(asked(), *fleet()) as objects:
        first, second = objects.outcome([taint("m1")]), objects.outcome([taint("m1"), exclude("m3")])

    assert first is not None
    assert second is not None
    assert first.snapshot.get("m1") is second.snapshot.get("m1")
