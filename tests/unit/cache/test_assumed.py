"""Assumed placements: when they begin, and when they are released."""

import pytest

from karmada_pyscheduler.cache.assumed import AssumedPlacements
from karmada_scheduler.api.binding import Binding, BindingStatus, ClusterHealth, TargetCluster
from karmada_scheduler.core.available_replicas import with_footprint
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import binding


class AssumedHarness:
    """Assumed placements with a clock that tests set."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.assumed = AssumedPlacements(clock=lambda: self.seconds, ttl=300.0)

    def place(self, bound: Binding, **replicas: int) -> Binding:
        """Assume a placement and confirm it; return the binding with its new targets."""
        targets = tuple(TargetCluster(name, count) for name, count in replicas.items())
        self.assumed.assume(bound, targets)
        self.assumed.confirm(bound.key)
        return on(bound, **replicas)

    def taken(self) -> dict[str, list[tuple[str, int]]]:
        return {
            cluster: [(each.components[0].name, each.components[0].replicas) for each in workloads]
            for cluster, workloads in self.assumed.by_cluster().items()
        }


def on(bound: Binding, **replicas: int) -> Binding:
    targets = tuple(TargetCluster(name, count) for name, count in replicas.items())
    return replace(bound, spec=replace(bound.spec, clusters=targets))


def reporting(bound: Binding, **health: str) -> Binding:
    reports = tuple(ClusterHealth(name, text) for name, text in health.items())
    return replace(bound, status=BindingStatus(aggregated_status=reports))


@pytest.fixture
def harness() -> AssumedHarness:
    return AssumedHarness()


WEB = binding("web").replicas(3, cpu=1).build()
API = binding("api").replicas(2, cpu=1).build()


def test_a_placement_is_assumed_from_the_decision_on(harness: AssumedHarness) -> None:
    harness.assumed.assume(WEB, (TargetCluster("m1", 2), TargetCluster("m2", 1)))
    assert harness.taken() == {"m1": [("web", 2)], "m2": [("web", 1)]}
    (workload,) = harness.assumed.by_cluster()["m1"]
    assert workload.namespace == "default"
    assert workload.components[0].replica_requirements == WEB.spec.replica_requirements


def test_several_bindings_add_up_newest_last(harness: AssumedHarness) -> None:
    harness.place(WEB, m1=2)
    harness.place(API, m1=2)
    placed = harness.place(WEB, m1=3)
    assert harness.taken() == {"m1": [("api", 2), ("web", 3)]}
    assert len(harness.assumed) == 2
    assert placed.spec.clusters == (TargetCluster("m1", 3),)


def test_clusters_that_a_binding_leaves_are_released_when_the_result_is_written(
    harness: AssumedHarness,
) -> None:
    placed = harness.place(WEB, m1=2, m2=1)
    harness.assumed.assume(placed, (TargetCluster("m2", 3),))
    assert harness.taken() == {"m1": [("web", 2)], "m2": [("web", 3)]}
    harness.assumed.confirm(WEB.key)
    assert harness.taken() == {"m2": [("web", 3)]}


def test_a_binding_whose_clusters_are_cleared_takes_nothing(harness: AssumedHarness) -> None:
    harness.place(harness.place(WEB, m1=3))
    assert harness.taken() == {}
    assert len(harness.assumed) == 0


def test_an_assumed_workload_equals_what_the_core_computes(harness: AssumedHarness) -> None:
    harness.place(API, m1=1, m2=1)
    placed = harness.place(WEB, m1=2, m2=1)
    expected = with_footprint(
        harness.assumed.by_cluster(), placed, (TargetCluster("m2", 2), TargetCluster("m3", 1))
    )
    harness.place(placed, m2=2, m3=1)
    assert harness.assumed.by_cluster() == expected


class TestRelease:
    def test_health_releases_one_cluster(self, harness: AssumedHarness) -> None:
        placed = harness.place(WEB, m1=2, m2=1)
        harness.assumed.on_binding_change(placed, reporting(placed, m1="Healthy", m2="Unknown"))
        assert harness.taken() == {"m2": [("web", 1)]}
        harness.assumed.on_binding_change(
            reporting(placed, m1="Healthy", m2="Unknown"), reporting(placed, m1="Healthy", m2="Healthy")
        )
        assert harness.taken() == {}
        assert len(harness.assumed) == 0

    def test_a_binding_that_is_seen_for_the_first_time_releases_what_it_reports(
        self, harness: AssumedHarness
    ) -> None:
        placed = harness.place(WEB, m1=2, m2=1)
        harness.assumed.on_binding_change(None, reporting(placed, m1="Healthy"))
        assert harness.taken() == {"m2": [("web", 1)]}

    def test_unchanged_health_releases_nothing(self, harness: AssumedHarness) -> None:
        healthy = reporting(on(WEB, m1=1), m1="Healthy")
        harness.place(healthy, m1=3)
        harness.assumed.on_binding_change(healthy, reporting(on(WEB, m1=3), m1="Healthy"))
        assert harness.taken() == {"m1": [("web", 3)]}

    @pytest.mark.parametrize("health", ["Unhealthy", "Unknown", ""])
    def test_another_health_than_healthy_releases_nothing(self, harness: AssumedHarness, health: str) -> None:
        placed = harness.place(WEB, m1=3)
        harness.assumed.on_binding_change(placed, reporting(placed, m1=health))
        assert harness.taken() == {"m1": [("web", 3)]}

    def test_a_deletion_releases_all(self, harness: AssumedHarness) -> None:
        placed = harness.place(WEB, m1=2, m2=1)
        harness.assumed.on_binding_change(placed, None)
        assert harness.taken() == {}

    def test_another_binding_of_the_same_name_has_nothing_assumed(self, harness: AssumedHarness) -> None:
        placed = harness.place(WEB, m1=3)
        harness.assumed.on_binding_change(placed, replace(WEB, uid="another"))
        assert harness.taken() == {}

    def test_assumptions_expire_and_a_new_placement_restarts_the_time(self, harness: AssumedHarness) -> None:
        placed = harness.place(WEB, m1=3)
        harness.seconds += 200
        harness.place(placed, m1=3)
        harness.place(API, m2=2)
        harness.seconds += 200
        assert harness.taken() == {"m1": [("web", 3)], "m2": [("api", 2)]}
        harness.seconds += 100
        assert harness.taken() == {}

    def test_changes_of_other_bindings_release_nothing(self, harness: AssumedHarness) -> None:
        harness.place(API, m1=2)
        harness.assumed.on_binding_change(WEB, None)
        harness.assumed.on_binding_change(WEB, reporting(WEB, m1="Healthy"))
        assert harness.taken() == {"m1": [("api", 2)]}


class TestFailedWrite:
    def test_a_failed_first_placement_leaves_nothing_assumed(self, harness: AssumedHarness) -> None:
        harness.assumed.assume(WEB, (TargetCluster("m1", 3),))
        harness.assumed.forget(WEB.key)
        assert harness.taken() == {}
        assert len(harness.assumed) == 0

    def test_a_failed_write_restores_the_previous_assumption(self, harness: AssumedHarness) -> None:
        placed = harness.place(WEB, m1=3)
        harness.assumed.assume(placed, (TargetCluster("m2", 3),))
        assert harness.taken() == {"m1": [("web", 3)], "m2": [("web", 3)]}
        harness.assumed.forget(WEB.key)
        assert harness.taken() == {"m1": [("web", 3)]}

    def test_an_assumption_that_was_released_meanwhile_is_not_restored(self, harness: AssumedHarness) -> None:
        placed = harness.place(WEB, m1=2, m3=1)
        harness.assumed.assume(placed, (TargetCluster("m2", 3),))
        harness.assumed.on_binding_change(placed, reporting(placed, m1="Healthy"))
        harness.assumed.forget(WEB.key)
        assert harness.taken() == {"m3": [("web", 1)]}

    def test_the_assumption_of_a_deleted_binding_is_not_restored(self, harness: AssumedHarness) -> None:
        placed = harness.place(WEB, m1=3)
        harness.assumed.assume(placed, (TargetCluster("m2", 3),))
        harness.assumed.on_binding_change(placed, None)
        harness.assumed.forget(WEB.key)
        harness.assumed.confirm(WEB.key)
        assert harness.taken() == {}

    def test_a_written_placement_stays_assumed(self, harness: AssumedHarness) -> None:
        harness.place(WEB, m1=3)
        harness.assumed.forget(WEB.key)
        assert harness.taken() == {"m1": [("web", 3)]}

    def test_a_restored_assumption_expires_at_its_original_time(self, harness: AssumedHarness) -> None:
        placed = harness.place(WEB, m1=3)
        harness.seconds += 200
        harness.assumed.assume(placed, (TargetCluster("m2", 3),))
        harness.assumed.forget(WEB.key)
        harness.seconds += 99
        assert harness.taken() == {"m1": [("web", 3)]}
        harness.seconds += 1
        assert harness.taken() == {}


def test_references_to_assumed_workloads_stay_unchanged(harness: AssumedHarness) -> None:
    harness.place(WEB, m1=3)
    held = harness.assumed.by_cluster()
    harness.place(API, m1=2)
    assert [each.components[0].name for each in held["m1"]] == ["web"]


def test_bindings_without_a_namespace_or_replicas_are_not_assumed(harness: AssumedHarness) -> None:
    harness.place(binding("web", namespace="").replicas(3, cpu=1).build(), m1=3)
    harness.place(binding("configmap").build(), m1=0)
    assert harness.taken() == {}


def test_components_are_assumed_whole_in_every_target(harness: AssumedHarness) -> None:
    harness.place(binding("flink").component("jm", 1).component("tm", 4).build(), m1=0)
    assert [each.name for each in harness.assumed.by_cluster()["m1"][0].components] == ["jm", "tm"]
