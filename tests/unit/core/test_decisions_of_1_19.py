"""What ``--decisions-of=1.19`` changes: where a reschedule begins, and the components of targets."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.config.features import RULES, FeatureGates
from karmada_scheduler.core.classify import ScheduleType, classify
from karmada_scheduler.core.condition import condition_for, retryable
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.guard_additions import result_patch
from karmada_scheduler.framework.diagnosis import FitError, KeptError, NotEnoughReplicasError
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster, decide, snapshot

OF_1_18, OF_1_19 = FeatureGates(), FeatureGates(rules=RULES["1.19"])
BEFORE, AFTER = "2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z"
BACKUP = cluster("b").capacity(cpu=8).allocated({"cpu": 7})
ROOMY, FULL = cluster("p").capacity(cpu=100), cluster("p").capacity(cpu=3)
TAINTED = cluster("p").capacity(cpu=100).taint("a=b:NoSchedule")


def in_backup(replicas: int = 6, *, is_requested: bool = True) -> BindingBuilder:
    """Return a binding with 6 replicas in its second term, by default with a reschedule that was requested since."""
    found = binding("web").replicas(replicas, cpu=1).aggregated().term("primary", "p").term("backup", "b")
    found.on(b=6).applied().observing("backup").last_scheduled(BEFORE)
    return found.reschedule_triggered(AFTER) if is_requested else found


def result(found: BindingBuilder, *clusters: ClusterBuilder, gates: FeatureGates = OF_1_19) -> Any:
    """Return the targets, the term and the reason that a decision stores; the targets are None if they stay."""
    decision = decide(found, *clusters, gates=gates)
    targets = None if decision.targets is None else {each.name: each.replicas for each in decision.targets}
    return targets, decision.affinity_name, condition_for(decision.error).reason


@pytest.mark.parametrize(
    ("replicas", "primary", "of_1_18", "of_1_19"),
    [
        pytest.param(
            6, ROOMY, ({"b": 6}, "backup", "Success"), ({"p": 6}, "primary", "Success"), id="return"
        ),
        pytest.param(10, FULL, (None, None, "Unschedulable"), (None, None, "Unschedulable"), id="neither"),
        pytest.param(10, TAINTED, (None, None, "Unschedulable"), (None, None, "NoClusterFit"), id="kept"),
    ],
)
def test_a_reschedule_begins_with_the_first_term(
    replicas: int, primary: ClusterBuilder, of_1_18: Any, of_1_19: Any
) -> None:
    assert result(in_backup(replicas), primary, BACKUP, gates=OF_1_18) == of_1_18
    assert result(in_backup(replicas), primary, BACKUP) == of_1_19


@pytest.mark.parametrize("strategy", ["duplicated", "static", "none"])
def test_it_returns_whatever_the_strategy_is(strategy: str) -> None:
    found = in_backup()
    match strategy:
        case "duplicated":
            found.duplicated().on(b=6)
        case "static":
            found.static_weights(p=1, b=1)
        case _:
            found = binding("settings").resource("v1", "ConfigMap").term("primary", "p").term("backup", "b")
            found.on("b").applied().observing("backup").last_scheduled(BEFORE).reschedule_triggered(AFTER)
    found.applied()
    assert result(found, ROOMY, BACKUP)[1:] == ("primary", "Success")
    assert result(found, ROOMY, BACKUP, gates=OF_1_18)[1:] == ("backup", "Success")


@pytest.mark.parametrize(
    ("scheduled", "triggered"), [(None, AFTER), (BEFORE, BEFORE), (AFTER, BEFORE), (BEFORE, None)]
)
def test_only_a_reschedule_after_the_last_success_begins_there(
    scheduled: str | None, triggered: str | None
) -> None:
    found = binding("web").replicas(6, cpu=1).aggregated().term("primary", "p").term("backup", "b")
    found.on(b=6).applied().observing("backup")
    if scheduled is not None:
        found.last_scheduled(scheduled)
    if triggered is not None:
        found.reschedule_triggered(triggered)
    assert result(found, ROOMY, BACKUP)[1] == "backup"


def test_it_begins_there_whatever_asks_for_the_decision() -> None:
    scaled = in_backup(7)
    asked = classify(scaled.build(), is_gone=snapshot(ROOMY, BACKUP).is_gone, gates=OF_1_19)
    assert asked.type is ScheduleType.SCALE
    assert result(scaled, ROOMY, BACKUP) == ({"p": 7}, "primary", "Success")


class TestAFailedReschedule:
    def test_removes_nothing_if_the_term_in_use_fails_for_another_reason_than_fit(self) -> None:
        decision = decide(in_backup(10), TAINTED, BACKUP, gates=OF_1_19)
        error = decision.error
        assert isinstance(error, KeptError)
        assert (
            str(error)
            == "0/2 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint, 1 cluster(s) had untolerated taint {a=b:NoSchedule}."
        )
        assert [type(each.error) for each in decision.failed_terms] == [FitError, NotEnoughReplicasError]
        assert retryable(error)
        assert (decision.targets, decision.applied_placement) == (None, None)

    def test_clears_the_placement_if_no_term_fits(self) -> None:
        gone = cluster("b").capacity(cpu=8).deleting()
        assert result(in_backup(10), TAINTED, gone) == ({}, None, "NoClusterFit")

    def test_keeps_it_if_the_first_term_fails_for_another_reason_as_upstream(self) -> None:
        gone = cluster("b").capacity(cpu=8).deleting()
        assert result(in_backup(10), FULL, gone) == (None, None, "Unschedulable")

    def test_has_upstreams_result_if_there_is_nothing_to_remove(self) -> None:
        assert result(in_backup(10).on(), TAINTED, BACKUP) == ({}, None, "NoClusterFit")

    def test_of_a_term_that_is_unknown_begins_and_ends_as_upstreams(self) -> None:
        assert result(in_backup(10).observing("another"), TAINTED, BACKUP) == ({}, None, "NoClusterFit")


MULTIPLE = {"MultiplePodTemplatesScheduling": True}
ON = FeatureGates(MULTIPLE, RULES["1.19"])
FRESH, OUTDATED = (("c0", 5), ("c1", 5)), (("c0", 2), ("c1", 2))
ONE_CLUSTER = cluster("m1").capacity(cpu=100)


def sets(strategy: str, *, parts: int = 2, one: bool = True) -> BindingBuilder:
    """Return a binding of a workload with components, for exactly one cluster unless ``one`` is false."""
    found = binding("job").names("m1")
    for number in range(parts):
        found.component(f"c{number}", 5, cpu=1)
    if one:
        found.spread("cluster", 1, 1)
    match strategy:
        case "duplicated":
            found.duplicated()
        case "divided":
            found.dynamic_weight()
    return found.applied()


def stored(found: BindingBuilder, components: tuple[tuple[str, int], ...]) -> Binding:
    manifest = found.on("m1").last_scheduled(BEFORE).manifest()
    if components:
        listed = [{"name": name, "replicas": replicas} for name, replicas in components]
        manifest["spec"]["clusters"][0]["components"] = listed
    return Binding.from_manifest(manifest)


def decided(found: BindingBuilder, before: Binding, gates: FeatureGates) -> Decision | None:
    """Return the decision about a binding; None if nothing asks for one."""
    asked = classify(before, is_gone=snapshot(ONE_CLUSTER).is_gone, gates=gates)
    if asked.type is ScheduleType.AVOID:
        return None
    found.build = lambda: before  # type: ignore[method-assign]
    return decide(found, ONE_CLUSTER, gates=gates)


def written(found: BindingBuilder, before: Binding, gates: FeatureGates = ON) -> Any:
    """Return the components that are written; None if no clusters are written."""
    decision = decided(found, before, gates)
    clusters = None if decision is None else result_patch(before, decision).clusters
    if clusters is None:
        return None
    return [
        tuple((each["name"], each["replicas"]) for each in target.get("components", ()))
        for target in clusters
    ]


@pytest.mark.parametrize("strategy", ["duplicated", "divided", ""])
def test_a_new_binding_has_the_components_of_its_workload(strategy: str) -> None:
    found = sets(strategy)
    assert written(found, found.build()) == [FRESH]


@pytest.mark.parametrize(
    ("found", "gates"),
    [
        pytest.param(sets("duplicated", parts=1), ON, id="one component"),
        pytest.param(sets("duplicated", one=False), ON, id="no constraint"),
        pytest.param(sets("duplicated"), OF_1_19, id="gate off"),
        pytest.param(sets("duplicated"), FeatureGates(MULTIPLE), id="1.18"),
    ],
)
def test_it_has_none_otherwise(found: BindingBuilder, gates: FeatureGates) -> None:
    assert written(found, found.build(), gates) == [()]


@pytest.mark.parametrize("before", [OUTDATED, ()], ids=["outdated", "missing"])
@pytest.mark.parametrize(
    ("strategy", "expected"), [("duplicated", [FRESH]), ("", [FRESH]), ("divided", None)]
)
def test_what_is_outdated_is_written_at_the_next_decision(
    strategy: str, before: tuple[tuple[str, int], ...], expected: Any
) -> None:
    found = sets(strategy)
    assert written(found, stored(found, before)) == expected


def test_what_is_right_is_not_written_again() -> None:
    found = sets("duplicated")
    assert written(found, stored(found, FRESH)) is None


def test_a_decision_of_1_18_keeps_what_is_stored() -> None:
    found = sets("duplicated")
    assert written(found, stored(found, OUTDATED), FeatureGates(MULTIPLE)) is None


@pytest.mark.parametrize(
    ("found", "gates"),
    [(sets("duplicated"), OF_1_19), (sets("duplicated", one=False), ON)],
    ids=["gate off", "no constraint"],
)
def test_it_is_dropped_where_it_does_not_belong_any_more(found: BindingBuilder, gates: FeatureGates) -> None:
    assert written(found, stored(found, FRESH), gates) == [()]


def test_further_fields_of_a_later_version_stay_on_the_target() -> None:
    found = sets("duplicated")
    manifest = found.on("m1").manifest()
    manifest["spec"]["clusters"] = [{"name": "m1", "components": "not a list", "zone": "z"}]
    before = Binding.from_manifest(manifest)
    decision = decided(found, before, ON)
    assert decision is not None
    clusters = result_patch(before, decision).clusters
    assert clusters is not None
    (target,) = clusters
    assert (target["zone"], len(target["components"])) == ("z", 2)
    assert before.spec.stored_components(TargetCluster("m1")) == ()
