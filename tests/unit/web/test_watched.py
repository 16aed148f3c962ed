"""The objects of a control plane as watches deliver them: in any order, twice, or not at all."""

from __future__ import annotations

import random
from collections import deque
from datetime import UTC, datetime
from typing import Any

from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.state.model import StateName
from karmada_advisor.web.index import BindingIndex
from karmada_advisor.web.watched import Surroundings, WatchedFleet, id_of
from karmada_pyscheduler.client.karmada import CLUSTERS, PROPAGATION_POLICIES, RESOURCE_BINDINGS
from karmada_scheduler.testing import binding, cluster

DONE = {"type": "Scheduled", "status": "True", "reason": "Success", "message": "scheduled"}


def _binding(name: str, version: int, *, uid: str = "1", on: str = "m1") -> dict[str, Any]:
    made = binding(name).replicas(1).on(**{on: 1}).condition(**DONE).observed_generation(1)
    return made.resource_version(str(version)).binding_uid(uid).manifest()


def _cluster(name: str, version: int, ready: str = "True") -> dict[str, Any]:
    manifest = cluster(name).condition("Ready", ready).manifest()
    manifest["metadata"]["resourceVersion"] = str(version)
    return manifest


def _fleet() -> WatchedFleet:
    fleet = WatchedFleet("https://karmada")
    fleet.put(CLUSTERS, _cluster("m1", 1), is_listed=True)
    fleet.put(RESOURCE_BINDINGS, _binding("web", 2), is_listed=True)
    fleet.surround(Surroundings())
    fleet.begin(fleet.rows(fleet.bindings))
    return fleet


def _states(fleet: WatchedFleet) -> dict[str, StateName]:
    deque(fleet.index_again(), 0)
    return {row.name: row.state for row in fleet.contents().index.rows}


def test_a_cluster_that_becomes_unready_changes_the_states_of_what_is_on_it() -> None:
    fleet = _fleet()
    assert _states(fleet) == {"web-deployment": StateName.PLACED}
    fleet.put(CLUSTERS, _cluster("m1", 3, "False"))
    assert _states(fleet) == {"web-deployment": StateName.NOT_RUNNING}
    fleet.put(CLUSTERS, _cluster("m1", 4))
    assert _states(fleet) == {"web-deployment": StateName.PLACED}
    fleet.remove(CLUSTERS, _cluster("m1", 5))
    assert _states(fleet) == {"web-deployment": StateName.NOT_RUNNING}


def test_rendered_rows_outlive_a_snapshot_and_not_what_they_say_of_clusters() -> None:
    fleet = _fleet()
    rows = fleet.contents().rendered_rows
    fleet.put(RESOURCE_BINDINGS, _binding("web", 7))
    assert fleet.contents().rendered_rows is rows
    fleet.put(CLUSTERS, _cluster("m1", 8, "False"))
    later = fleet.contents().rendered_rows
    assert later is not rows
    assert fleet.contents().rendered_rows is later


def test_what_a_watch_repeats_changes_nothing() -> None:
    fleet = _fleet()
    fleet.put(RESOURCE_BINDINGS, _binding("web", 7, uid="2", on="m2"))
    changes = fleet.changes
    fleet.put(RESOURCE_BINDINGS, _binding("web", 2))
    fleet.put(RESOURCE_BINDINGS, _binding("web", 7, uid="2"))
    fleet.remove(RESOURCE_BINDINGS, _binding("web", 5))
    assert fleet.changes == changes
    assert [each.spec.clusters[0].name for each in fleet.contents().objects.bindings] == ["m2"]
    fleet.remove(RESOURCE_BINDINGS, _binding("web", 8, uid="2"))
    assert _states(fleet) == {}


def test_a_list_counts_whatever_was_known_and_what_it_lacks_is_gone() -> None:
    fleet = _fleet()
    fleet.put(RESOURCE_BINDINGS, _binding("new", 9))
    restored = _binding("web", 1, on="m2")
    fleet.put(RESOURCE_BINDINGS, restored, is_listed=True)
    fleet.keep_only(RESOURCE_BINDINGS, {id_of(RESOURCE_BINDINGS, restored)})
    assert [each.resource_version for each in fleet.contents().objects.bindings] == ["1"]
    assert [row.name for row in fleet.contents().index.rows] == ["web-deployment"]


def test_an_object_that_cannot_be_read_is_a_problem_until_it_can() -> None:
    fleet = _fleet()
    broken = _binding("web", 3)
    broken["spec"]["clusters"] = "all of them"
    fleet.put(RESOURCE_BINDINGS, broken)
    assert _states(fleet) == {}
    assert len(fleet.problems) == 1
    fleet.put(RESOURCE_BINDINGS, _binding("web", 4))
    assert (_states(fleet), fleet.problems) == ({"web-deployment": StateName.PLACED}, [])


def test_a_snapshot_keeps_the_manifests_of_its_moment() -> None:
    fleet = _fleet()
    contents = fleet.contents()
    [key] = [each.key for each in contents.objects.bindings]
    fleet.put(RESOURCE_BINDINGS, _binding("web", 9, on="m2"))
    assert contents.objects.manifests[key]["metadata"]["resourceVersion"] == "2"
    assert contents.index.get(key) is fleet.contents().index.get(key)


def test_the_index_after_any_events_equals_one_that_is_built_from_scratch() -> None:
    dice = random.Random("watched")
    fleet, version = _fleet(), 10
    policy = {"metadata": {"name": "p", "namespace": "default", "resourceVersion": "10"}}
    fleet.put(PROPAGATION_POLICIES, policy)
    for _ in range(200):
        version += dice.choice([0, 1])
        name, on = f"web-{dice.randrange(5)}", f"m{dice.randrange(4)}"
        match dice.randrange(4):
            case 0:
                fleet.put(CLUSTERS, _cluster(on, version, dice.choice(["True", "False"])))
            case 1:
                fleet.remove(CLUSTERS, _cluster(on, version))
            case 2:
                fleet.remove(RESOURCE_BINDINGS, _binding(name, version, on=on))
            case _:
                fleet.put(RESOURCE_BINDINGS, _binding(name, version, on=on))
        deque(fleet.index_again(), 0)
        built = BindingIndex(fleet.rows(fleet.bindings))
        contents = fleet.contents()
        assert list(contents.index.rows) == list(built.rows)
        assert contents.index.counts() == built.counts()
        assert contents.index.groups == built.groups


def test_a_scheduler_that_is_missing_changes_the_states_of_its_bindings_in_steps() -> None:
    fleet = WatchedFleet("https://karmada")
    fleet.surround(Surroundings())
    for number in range(50):
        made = binding(f"web-{number}").replicas(1).scheduler("nobody").resource_version("2").manifest()
        fleet.put(RESOURCE_BINDINGS, made, is_listed=True)
    fleet.begin(fleet.rows(fleet.bindings))
    fleet.surround(Surroundings(Fleet("", at=datetime(2026, 11, 27, 10, tzinfo=UTC), leases=[])))
    assert fleet.contents().index.counts()[StateName.NOT_DECIDED_YET] == 50
    assert len(list(fleet.index_again())) == 3
    assert fleet.contents().index.counts()[StateName.NOBODY_DECIDES] == 50
