"""The fuzzer reports differences, except those that are allowed."""

import datetime as dt
import json
from dataclasses import replace
from typing import Any

import pytest

from tools.live.compare import compare
from tools.live.compare.compare import Comparison
from tools.live.compare.fleet import APPLIED, POLICY_LABEL, Key
from tools.live.compare.model import Model
from tools.live.compare.policy_steps import is_odd
from tools.live.compare.state import State, state_of, without_plugins
from tools.oracle.generator.rng import Random
from tools.placements import tolerates

KEY = Key("rb", "b1")
BEGAN = dt.datetime(2026, 1, 2, 3, 4, 10, tzinfo=dt.UTC)
BEFORE, AFTER = "2026-01-02T03:04:05Z", "2026-01-02T03:04:11Z"
DUPLICATED = {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}
AGGREGATED = {
    "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
}


def state(
    *, placement: Any = DUPLICATED, claimed: bool = True, clusters: Any = (("m1", 2),), time: str = BEFORE
) -> State:
    """A scheduled Deployment with 2 replicas."""
    return state_of(
        {
            "metadata": {
                "name": "b1",
                "generation": 3,
                "labels": {POLICY_LABEL: "p"} if claimed else {},
                "annotations": {APPLIED: json.dumps(placement)},
            },
            "spec": {
                "resource": {"kind": "Deployment", "name": "web", "uid": "differs"},
                "replicas": 2,
                "placement": placement,
                "clusters": [{"name": name, "replicas": count} for name, count in clusters],
            },
            "status": {
                "schedulerObservedGeneration": 3,
                "lastScheduledTime": time,
                "conditions": [
                    {"type": "Scheduled", "status": "True", "reason": "Success", "message": "fine"}
                ],
            },
        }
    )


def compared(
    upstream: State, ours: State, *, before: tuple[State, State] | None = None
) -> tuple[list[str], list[str]]:
    """Return the fields that differ and the allowed differences met."""
    comparison = Comparison()
    first, second = before or (upstream, ours)
    found = comparison.of(BEGAN, ({KEY: first}, {KEY: second}), ({KEY: upstream}, {KEY: ours}))
    return [item.field for item in found], list(comparison.allowed_differences)


def test_equal_states_are_equal() -> None:
    assert compared(state(), state()) == ([], [])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("clusters", (("m1", 1),)),
        ("applied", {}),
        ("applied", None),
        ("condition", ("False", "Unschedulable", "no capacity")),
        ("observed", "older"),
        ("term", "t1"),
    ],
)
def test_every_differing_field_is_a_difference(field: str, value: object) -> None:
    assert compared(state(), replace(state(), **{field: value})) == ([field], [])  # type: ignore[arg-type]


def test_a_binding_that_only_one_plane_has_is_different() -> None:
    found = Comparison().of(BEGAN, ({}, {}), ({KEY: state()}, {}))
    assert [(item.field, item.upstream, item.ours) for item in found] == [("existence", True, False)]


def test_the_order_of_clusters_counts_unless_the_division_is_aggregated() -> None:
    one, other = (("m1", 1), ("m2", 1)), (("m2", 1), ("m1", 1))
    assert compared(state(clusters=one), state(clusters=other)) == (["clusters"], [])
    aggregated = state(placement=AGGREGATED, clusters=one), state(placement=AGGREGATED, clusters=other)
    assert compared(*aggregated) == ([], [compare.ORDER])


def test_a_decision_without_a_change_needs_no_new_time() -> None:
    before = state(), state()
    assert compared(state(time=AFTER), state(), before=before) == ([], [compare.SETTLED])


def test_a_reordering_by_upstream_needs_no_new_time_from_ours() -> None:
    one, other = (("m1", 1), ("m2", 1)), (("m2", 1), ("m1", 1))
    comparison = Comparison()
    before = (
        {KEY: state(placement=AGGREGATED, clusters=other)},
        {KEY: state(placement=AGGREGATED, clusters=one)},
    )
    after = {KEY: state(clusters=one, time=AFTER)}, {KEY: state(clusters=one)}
    comparison.of(BEGAN, before, before)
    assert comparison.of(BEGAN, before, after) != []  # ours was not decided for its new placement
    ours = {KEY: state(clusters=one)}
    assert comparison.of(BEGAN, ({KEY: state(clusters=other)}, ours), after) == []
    assert comparison.allowed_differences[compare.REORDERED] == 1
    moved = {KEY: state(clusters=(("m1", 1), ("m3", 1)))}
    assert [item.field for item in comparison.of(BEGAN, (moved, ours), after)] == ["lastScheduledTime moved"]


def test_a_new_time_only_from_ours_is_a_difference() -> None:
    before = state(), state()
    assert compared(state(), state(time=AFTER), before=before) == (["lastScheduledTime moved"], [])


def test_a_new_time_only_from_upstream_is_a_difference_for_a_division() -> None:
    before = state(placement=AGGREGATED), state(placement=AGGREGATED)
    after = state(placement=AGGREGATED, time=AFTER), state(placement=AGGREGATED)
    assert compared(*after, before=before) == (["lastScheduledTime moved"], [])


def test_a_new_time_only_from_upstream_is_a_difference_if_ours_wrote_too() -> None:
    before = state(), replace(state(), generation=2)
    assert compared(state(time=AFTER), state(), before=before) == (["lastScheduledTime moved"], [])


def test_a_time_moved_within_one_second_is_no_difference() -> None:
    same = state(time="2026-01-02T03:04:10Z")
    assert compared(state(time=AFTER), same, before=(same, same)) == ([], [])


def test_ours_may_observe_an_unclaimed_binding_sooner() -> None:
    late = replace(state(claimed=False), observed="older")
    assert compared(late, state(claimed=False)) == ([], [compare.OBSERVED])
    assert compared(state(claimed=False), late) == (["observed"], [])


def test_the_plugins_that_refuse_clusters_are_counted_together() -> None:
    one = "0/3 clusters are available: 1 cluster(s) had untolerated taint {k: v:NoSchedule}, 2 cluster(s) did not have region property."
    other = (
        "0/3 clusters are available: 3 cluster(s) did not match the placement cluster affinity constraint."
    )
    assert without_plugins(one) == without_plugins(other) == "0/3 clusters are available: 3 refused"
    assert without_plugins("0/3 clusters are available: no cluster exists.") != without_plugins(other)
    assert without_plugins("anything else") == "anything else"


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "k1", "operator": "Exists"}, True),
        ({"key": "k1", "operator": "Equal", "value": "a"}, True),
        ({"key": "k1", "operator": "Equal", "value": "b"}, False),
        ({"key": "k1", "operator": "Exists", "effect": "NoSchedule"}, False),
        ({"key": "k2", "operator": "Exists"}, False),
    ],
)
def test_a_taint_is_tolerated_as_in_kubernetes(toleration: dict[str, str], *, tolerated: bool) -> None:
    taint = {"key": "k1", "value": "a", "effect": "NoExecute"}
    assert tolerates({"clusterTolerations": [toleration]}, taint) is tolerated


def test_ties_of_a_division_are_broken_as_the_scheduler_breaks_them() -> None:
    from karmada_scheduler.core.algorithms.webster import prefers_descending_names

    uids = [f"{number:08x}-aaaa" for number in range(50)]
    assert len({is_odd(uid) is prefers_descending_names(uid) for uid in uids}) == 1


def test_failed_and_unfit_claimed_bindings_may_be_tried_again_when_clusters_change() -> None:
    def with_reason(reason: str, *, claimed: bool = True) -> State:
        return replace(state(claimed=claimed), condition=("False", reason, "because"))

    states = {
        Key("rb", "placed"): state(),
        Key("rb", "unfit"): with_reason("NoClusterFit"),
        Key("rb", "unclaimed"): with_reason("NoClusterFit", claimed=False),
    }
    model = Model(Random(1), {}, states=states, failed={Key("rb", "failed")})
    assert model.to_be_tried == {Key("rb", "unfit"), Key("rb", "failed")}


def test_a_failure_that_is_over_may_be_reported_as_a_success() -> None:
    failed = replace(state(), condition=("False", "Unschedulable", "no capacity"))
    assert compared(failed, state(time=AFTER)) == ([], [compare.OVER])
    assert compared(failed, failed) == ([], [])


@pytest.mark.parametrize(
    ("upstream", "ours"),
    [
        ({"observed": "older"}, {"observed": "older"}),
        ({"clusters": ()}, {"clusters": ()}),
        ({}, {"condition": ("False", "NoClusterFit", "0 refused")}),
    ],
)
def test_another_condition_is_a_difference_unless_the_failure_is_over(
    upstream: dict[str, Any], ours: dict[str, Any]
) -> None:
    failed = replace(state(), condition=("False", "Unschedulable", "no capacity"), **upstream)
    assert "condition" in compared(failed, replace(state(), **ours))[0]
    assert "clusters" in compared(failed, replace(state(), **{**ours, "clusters": (("m9", 2),)}))[0]
