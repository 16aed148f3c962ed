"""What counts as taken before members report it, and when it does no longer."""

from dataclasses import replace

import pytest

from karmada_scheduler.api.binding import Binding, BindingStatus, ClusterHealth, TargetCluster
from karmada_scheduler.cache.assumed import AssumedPlacements
from karmada_scheduler.core.available_replicas import with_footprint
from karmada_scheduler.testing import binding


class World:
    """The cache, and a time that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.assumed = AssumedPlacements(clock=lambda: self.seconds, ttl=300.0)

    def place(self, bound: Binding, **replicas: int) -> Binding:
        """Decide and write; return the binding as it is then."""
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
def world() -> World:
    return World()


WEB = binding("web").replicas(3, cpu=1).build()
API = binding("api").replicas(2, cpu=1).build()


def test_a_placement_counts_from_the_decision_on(world: World) -> None:
    world.assumed.assume(WEB, (TargetCluster("m1", 2), TargetCluster("m2", 1)))
    assert world.taken() == {"m1": [("web", 2)], "m2": [("web", 1)]}
    (workload,) = world.assumed.by_cluster()["m1"]
    assert workload.namespace == "default"
    assert workload.components[0].replica_requirements == WEB.spec.replica_requirements


def test_several_bindings_add_up_newest_last(world: World) -> None:
    world.place(WEB, m1=2)
    world.place(API, m1=2)
    placed = world.place(WEB, m1=3)
    assert world.taken() == {"m1": [("api", 2), ("web", 3)]}
    assert len(world.assumed) == 2
    assert placed.spec.clusters == (TargetCluster("m1", 3),)


def test_clusters_that_a_binding_leaves_are_free_once_that_is_written(world: World) -> None:
    placed = world.place(WEB, m1=2, m2=1)
    world.assumed.assume(placed, (TargetCluster("m2", 3),))
    assert world.taken() == {"m1": [("web", 2)], "m2": [("web", 3)]}
    world.assumed.confirm(WEB.key)
    assert world.taken() == {"m2": [("web", 3)]}


def test_a_binding_whose_clusters_are_cleared_takes_nothing(world: World) -> None:
    world.place(world.place(WEB, m1=3))
    assert world.taken() == {}
    assert len(world.assumed) == 0


def test_what_the_cache_holds_is_what_the_core_expects_after_the_write(world: World) -> None:
    world.place(API, m1=1, m2=1)
    placed = world.place(WEB, m1=2, m2=1)
    expected = with_footprint(
        world.assumed.by_cluster(), placed, (TargetCluster("m2", 2), TargetCluster("m3", 1))
    )
    world.place(placed, m2=2, m3=1)
    assert world.assumed.by_cluster() == expected


class TestRelease:
    def test_health_releases_one_cluster(self, world: World) -> None:
        placed = world.place(WEB, m1=2, m2=1)
        world.assumed.on_binding_change(placed, reporting(placed, m1="Healthy", m2="Unknown"))
        assert world.taken() == {"m2": [("web", 1)]}
        world.assumed.on_binding_change(
            reporting(placed, m1="Healthy", m2="Unknown"), reporting(placed, m1="Healthy", m2="Healthy")
        )
        assert world.taken() == {}
        assert len(world.assumed) == 0

    def test_health_that_is_no_news_releases_nothing(self, world: World) -> None:
        healthy = reporting(on(WEB, m1=1), m1="Healthy")
        world.place(healthy, m1=3)
        world.assumed.on_binding_change(healthy, reporting(on(WEB, m1=3), m1="Healthy"))
        assert world.taken() == {"m1": [("web", 3)]}

    @pytest.mark.parametrize("health", ["Unhealthy", "Unknown", ""])
    def test_anything_else_releases_nothing(self, world: World, health: str) -> None:
        placed = world.place(WEB, m1=3)
        world.assumed.on_binding_change(placed, reporting(placed, m1=health))
        assert world.taken() == {"m1": [("web", 3)]}

    def test_a_deletion_releases_all(self, world: World) -> None:
        placed = world.place(WEB, m1=2, m2=1)
        world.assumed.on_binding_change(placed, None)
        assert world.taken() == {}

    def test_another_binding_of_the_same_name_starts_anew(self, world: World) -> None:
        placed = world.place(WEB, m1=3)
        world.assumed.on_binding_change(placed, replace(WEB, uid="another"))
        assert world.taken() == {}

    def test_time_releases_all_and_a_new_placement_starts_it_anew(self, world: World) -> None:
        placed = world.place(WEB, m1=3)
        world.seconds += 200
        world.place(placed, m1=3)
        world.place(API, m2=2)
        world.seconds += 200
        assert world.taken() == {"m1": [("web", 3)], "m2": [("api", 2)]}
        world.seconds += 100
        assert world.taken() == {}

    def test_what_is_not_assumed_is_not_released(self, world: World) -> None:
        world.place(API, m1=2)
        world.assumed.on_binding_change(WEB, None)
        world.assumed.on_binding_change(WEB, reporting(WEB, m1="Healthy"))
        assert world.taken() == {"m1": [("api", 2)]}


class TestAWriteThatFails:
    def test_of_a_first_placement_leaves_nothing(self, world: World) -> None:
        world.assumed.assume(WEB, (TargetCluster("m1", 3),))
        world.assumed.forget(WEB.key)
        assert world.taken() == {}
        assert len(world.assumed) == 0

    def test_brings_back_what_was_assumed_before(self, world: World) -> None:
        placed = world.place(WEB, m1=3)
        world.assumed.assume(placed, (TargetCluster("m2", 3),))
        assert world.taken() == {"m1": [("web", 3)], "m2": [("web", 3)]}
        world.assumed.forget(WEB.key)
        assert world.taken() == {"m1": [("web", 3)]}

    def test_does_not_bring_back_what_was_released_meanwhile(self, world: World) -> None:
        placed = world.place(WEB, m1=2, m3=1)
        world.assumed.assume(placed, (TargetCluster("m2", 3),))
        world.assumed.on_binding_change(placed, reporting(placed, m1="Healthy"))
        world.assumed.forget(WEB.key)
        assert world.taken() == {"m3": [("web", 1)]}

    def test_does_not_bring_back_what_was_deleted_meanwhile(self, world: World) -> None:
        placed = world.place(WEB, m1=3)
        world.assumed.assume(placed, (TargetCluster("m2", 3),))
        world.assumed.on_binding_change(placed, None)
        world.assumed.forget(WEB.key)
        world.assumed.confirm(WEB.key)
        assert world.taken() == {}

    def test_says_nothing_about_a_placement_that_is_written(self, world: World) -> None:
        world.place(WEB, m1=3)
        world.assumed.forget(WEB.key)
        assert world.taken() == {"m1": [("web", 3)]}

    def test_of_what_was_brought_back_still_expires(self, world: World) -> None:
        placed = world.place(WEB, m1=3)
        world.seconds += 200
        world.assumed.assume(placed, (TargetCluster("m2", 3),))
        world.assumed.forget(WEB.key)
        world.seconds += 99
        assert world.taken() == {"m1": [("web", 3)]}
        world.seconds += 1
        assert world.taken() == {}


def test_who_holds_what_was_assumed_keeps_it(world: World) -> None:
    world.place(WEB, m1=3)
    held = world.assumed.by_cluster()
    world.place(API, m1=2)
    assert [each.components[0].name for each in held["m1"]] == ["web"]


def test_bindings_without_a_namespace_and_without_replicas_take_no_room(world: World) -> None:
    world.place(binding("web", namespace="").replicas(3, cpu=1).build(), m1=3)
    world.place(binding("configmap").build(), m1=0)
    assert world.taken() == {}


def test_components_are_assumed_whole_in_every_target(world: World) -> None:
    world.place(binding("flink").component("jm", 1).component("tm", 4).build(), m1=0)
    assert [each.name for each in world.assumed.by_cluster()["m1"][0].components] == ["jm", "tm"]
