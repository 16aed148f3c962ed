"""The state of a binding follows from stored objects alone, and the first rule that matches names it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from karmada_advisor.state.model import BindingState, HeldBy, Placed, StateName
from karmada_advisor.state.reading import Facts, state_of, unreadable
from karmada_advisor.state.schedulers import Schedulers, schedulers_of
from karmada_advisor.views.state import headline
from karmada_scheduler.testing import BindingBuilder, binding

NOW = datetime(2026, 11, 24, 10, 0, tzinfo=UTC)
SCHEDULED = "2026-11-24T09:00:00Z"
DONE = {
    "type": "Scheduled",
    "status": "True",
    "reason": "Success",
    "message": "Binding has been scheduled successfully.",
}


def failed(reason: str, message: str) -> dict[str, str]:
    return {"type": "Scheduled", "status": "False", "reason": reason, "message": message}


def web(replicas: int = 4) -> BindingBuilder:
    return binding("web").replicas(replicas, cpu=1).dynamic_weight()


def placed(replicas: int = 4, *, condition: Mapping[str, str] = DONE, **clusters: int) -> BindingBuilder:
    """Return a binding of which everything is done, unless the condition says something else."""
    made = web(replicas).on(**(clusters or {"m1": 4})).applied().last_scheduled(SCHEDULED)
    return made.condition(**condition).observed_generation(1)


def lease(name: str, renewed: str, **annotations: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "karmada-system", "annotations": annotations},
        "spec": {"holderIdentity": "pod", "leaseDurationSeconds": 15, "renewTime": renewed},
    }


RUNNING = schedulers_of([lease("karmada-scheduler", "2026-11-24T09:59:58.000000Z")], now=NOW)
DOWN = schedulers_of([lease("karmada-scheduler", "2026-11-24T09:52:00.000000Z")], now=NOW)


def ready(name: str) -> dict[str, Any] | None:
    return {"metadata": {"name": name}} if name.startswith("m") else None


def read(made: BindingBuilder, schedulers: Schedulers = RUNNING, **facts: Any) -> BindingState:
    known: dict[str, Any] = {"cluster_of": ready, "now": NOW, **facts}
    return state_of(made.build(), made.manifest(), Facts(schedulers, **known))


def test_a_binding_of_which_everything_is_done_is_placed() -> None:
    found = read(placed())

    assert (found.name, found.placed, found.is_good) == (StateName.PLACED, Placed.ALL, True)
    assert headline(found) == "PLACED   m1 4"


@pytest.mark.parametrize(
    ("made", "name", "words"),
    [
        (placed().deleting(), StateName.BEING_DELETED, "BEING DELETED"),
        (web().placement(None), StateName.NO_PLACEMENT, "NO PLACEMENT"),
        (web(), StateName.NOT_DECIDED_YET, "NOT PLACED, not decided yet"),
        (web().condition(**failed("NoClusterFit", "0/1")), StateName.NOT_PLACED, "NOT PLACED"),
        (placed(8, condition=failed("Unschedulable", "full")), StateName.STUCK, "PLACED IN PART, stuck"),
        (placed(condition=failed("Unschedulable", "full")), StateName.PLACED, "PLACED"),
        (placed(7).generation(2), StateName.OUT_OF_DATE, "PLACED IN PART, out of date"),
        (web().suspended(), StateName.HELD, "NOT PLACED, held"),
        (placed(8).suspended(), StateName.HELD, "PLACED IN PART, held"),
        (web(0).condition(**DONE).observed_generation(1), StateName.NOTHING_TO_PLACE, "NOTHING TO PLACE"),
        (web().condition(**DONE).observed_generation(1), StateName.NOT_PLACED, "NOT PLACED"),
        (placed(m9=4), StateName.PLACED, "PLACED"),
        (placed(x1=4), StateName.NOT_RUNNING, "PLACED, not running"),
    ],
)
def test_each_state_has_its_words(made: BindingBuilder, name: StateName, words: str) -> None:
    found = read(made)

    assert (found.name, found.words) == (name, words)
    assert found.is_good is (name in {StateName.PLACED, StateName.NOTHING_TO_PLACE})


def test_a_last_decision_without_a_time_has_none_in_its_text() -> None:
    made = web(7).on(m1=4).applied().condition(**DONE).observed_generation(1).generation(2)

    assert read(made).text.endswith("; the last decision was about generation 1")
    assert (
        "the last decision was at 2026-11-24T09:00:00Z, about generation 1"
        in read(placed(7).generation(2)).text
    )


def test_a_part_that_is_stored_says_of_how_many() -> None:
    found = read(placed(7).generation(2))

    assert headline(found).startswith(
        "PLACED IN PART, out of date   4 of 7: m1 4; it has changed since the last decision (generation 2)"
    )


def test_a_duplicated_binding_is_placed_in_part_if_a_cluster_has_too_few() -> None:
    made = placed().duplicated().replicas(7)

    assert read(made).placed is Placed.PART
    assert read(made.replicas(4)).placed is Placed.ALL


def test_fewer_stored_replicas_than_wanted_are_not_good_whatever_the_condition_says() -> None:
    found = read(placed(7))

    assert (found.name, found.placed, found.is_good) == (StateName.PLACED, Placed.PART, False)
    assert found.colour == "yellow"


def test_a_quota_holds_a_binding_without_clusters_and_one_with_clusters() -> None:
    refused = failed("QuotaExceeded", "exceeded quota: demo/team-a, requested sum: cpu 6, limit: 4.")
    first, again = read(web().condition(**refused)), read(placed(6, condition=refused))

    assert (first.name, first.held_by) == (again.name, again.held_by) == (StateName.HELD, HeldBy.QUOTA)
    assert headline(first) == (
        "NOT PLACED, held   refused by a quota: exceeded quota: demo/team-a, requested sum: cpu 6, limit: 4"
    )
    assert headline(again).startswith(
        "PLACED IN PART, held   4 of 6: m1 4; a change was not written, because a quota refused it"
    )
    assert first.message.endswith("limit: 4.")


def test_a_refusal_by_a_quota_is_over_once_fewer_replicas_are_wanted() -> None:
    refused = failed("QuotaExceeded", "exceeded quota")

    assert read(placed(4, condition=refused).generation(3)).name is StateName.PLACED


def test_a_guard_that_holds_a_move_is_named_with_its_reason() -> None:
    text = "held at Guard by PlacementGuard: the budget shop (1 bindings in 1h) is used up"
    found = read(placed(condition=failed("Unschedulable", text)).names("m2"))

    assert (found.name, found.held_by) == (StateName.HELD, HeldBy.GUARD)
    assert headline(found) == (
        "PLACED, held   m1 4; held by PlacementGuard: the budget shop (1 bindings in 1h) is used up"
    )


def test_a_gate_is_known_from_the_process_only() -> None:
    assert read(web(), gate="Night: only at night").held_by is HeldBy.GATE
    assert read(web()).name is StateName.NOT_DECIDED_YET
    assert read(placed(), gate="Night: only at night").name is StateName.PLACED


def test_who_has_suspended_scheduling_is_read_from_the_managers_of_the_field() -> None:
    made = web().suspended()
    made.manifest()["metadata"]["managedFields"] = [
        {"manager": "karmada", "fieldsV1": {"f:spec": {"f:clusters": {}}}},
        {
            "manager": "kubectl-edit",
            "time": "2026-11-24T08:00:00Z",
            "fieldsV1": {"f:spec": {"f:suspension": {"f:scheduling": {}}}},
        },
    ]

    found = read(made)

    assert found.held_by is HeldBy.SUSPENSION
    assert "set by kubectl-edit at 2026-11-24T08:00:00Z" in found.text
    assert found.since == "2026-11-24T08:00:00Z"


def test_nobody_decides_about_a_scheduler_that_does_not_exist_or_is_down() -> None:
    missing = read(web().scheduler("default-schedler"))
    down, behind = read(web(), DOWN), read(placed(7).generation(2), DOWN)

    assert missing.name is down.name is behind.name is StateName.NOBODY_DECIDES
    assert headline(missing) == (
        "NOT PLACED, nobody decides   no scheduler is named default-schedler; did you mean default-scheduler?"
    )
    assert "default-scheduler is down since 2026-11-24T09:52:00Z" in down.text
    assert "8 min ago" in down.text
    assert headline(behind).startswith("PLACED IN PART, nobody decides   4 of 7: m1 4; ")
    assert not missing.is_good


def test_a_settled_binding_does_not_need_its_scheduler_now() -> None:
    assert read(placed(), DOWN).name is StateName.PLACED


def test_schedulers_that_are_not_known_are_not_missing() -> None:
    assert read(web(), Schedulers()).name is StateName.NOT_DECIDED_YET


def test_an_eviction_is_a_move_with_its_end() -> None:
    task = {
        "fromCluster": "m2",
        "producer": "TaintManager",
        "reason": "TaintUntolerated",
        "gracePeriodSeconds": 600,
        "creationTimestamp": "2026-11-24T09:55:00Z",
    }
    moving = placed()
    moving.manifest()["spec"]["gracefulEvictionTasks"] = [task]
    nowhere = web().condition(**failed("NoClusterFit", "0/2 clusters are available"))
    nowhere.manifest()["spec"]["gracefulEvictionTasks"] = [task]

    found = read(moving)
    assert (
        headline(found) == "PLACED, moving   m1 4; still runs on m2 until m1 is healthy, 5 min more at most"
    )
    assert (found.reason, found.rows[-1].name, found.rows[-1].wanted) == ("TaintUntolerated", "m2", None)
    lost = read(nowhere)
    assert lost.name is StateName.NOT_PLACED
    assert lost.text.endswith("still runs on m2 until its time is over, 5 min more at most")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "still runs on m2 until m1, m3 are healthy, 5 min more at most"),
        ({"suppressDeletion": True}, "still runs on m2 until suppressDeletion of its eviction task is false"),
        ({"suppressDeletion": False}, "is deleted now on m2 (suppressDeletion is false)"),
        ({"purgeMode": "Directly"}, "its Work is deleted at once on m2 (purgeMode Directly)"),
        ({"purgeMode": "Never", "suppressDeletion": True}, "still runs on m2 until suppressDeletion of its"),
    ],
    ids=str,
)
def test_an_eviction_says_what_ends_the_old_copy(fields: dict[str, Any], text: str) -> None:
    task = {"fromCluster": "m2", "gracePeriodSeconds": 600, "creationTimestamp": "2026-11-24T09:55:00Z"}
    moving = placed(m1=2, m3=2)
    moving.manifest()["spec"]["gracefulEvictionTasks"] = [task | fields]

    assert read(moving).text.startswith(text)


def test_suspended_dispatching_names_who_suspends_it() -> None:
    everywhere, some = placed(m1=2, m2=2), placed(m1=2, m2=2)
    everywhere.manifest()["spec"]["suspension"] = {"dispatching": True}
    some.manifest()["spec"]["suspension"] = {"dispatchingOnClusters": {"clusterNames": ["m2", "m7"]}}
    label = "propagationpolicy.karmada.io/permanent-id"
    policy = {
        "kind": "PropagationPolicy",
        "metadata": {"namespace": "default", "name": "pause", "labels": {label: "p1"}},
        "spec": {"suspension": {"dispatching": True}},
    }
    everywhere.label(label, "p1")

    found = read(everywhere, policies=[policy])
    assert found.reason == "DispatchingSuspended"
    assert (
        "dispatching is suspended by PropagationPolicy default/pause (spec.suspension.dispatching)"
        in found.text
    )
    found = read(some)
    assert "dispatching to m2 is suspended by the binding itself" in found.text
    assert [each.reason for each in found.rows] == ["", "DispatchingSuspended"]


def test_what_cannot_be_read_is_unknown() -> None:
    found = unreadable("spec.clusters: expected a list")

    assert headline(found) == "UNKNOWN   spec.clusters: expected a list"
    assert not found.is_good


@pytest.mark.parametrize(
    "status",
    [
        None,
        [],
        {"aggregatedStatus": "x"},
        {"aggregatedStatus": [1, {}]},
        {"conditions": [{"type": "Scheduled"}]},
    ],
)
def test_odd_status_is_no_error(status: Any) -> None:
    made = placed()
    manifest = {**made.manifest(), "status": status, "metadata": {"managedFields": ["x", {"fieldsV1": 1}]}}

    assert state_of(made.build(), manifest, Facts(RUNNING, ready, now=NOW)).name is StateName.PLACED
