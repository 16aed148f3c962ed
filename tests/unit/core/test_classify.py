"""Whether a binding has to be scheduled, and why."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.well_known import POLICY_ID_LABEL
from karmada_scheduler.core.classify import (
    Classification,
    ScheduleType,
    classify,
    needs_none,
    placement_changed,
    placement_of,
)
from karmada_scheduler.framework import SchedulingError
from karmada_scheduler.testing import BindingBuilder, binding, gates

NO_GATES = gates()
EARLIER, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
NAME = "ResourceBinding(default/web-deployment)"


def done(builder: BindingBuilder) -> Classification:
    return classify(builder.build(), is_gone={"leaving"}.__contains__, gates=NO_GATES)


def placed_as_wanted(replicas: int = 4, **held: int) -> BindingBuilder:
    """A divided binding whose placement is applied and whose replicas are placed."""
    return (
        binding("web")
        .replicas(replicas)
        .dynamic_weight()
        .on(**held or {"m1": 4})
        .applied()
        .last_scheduled(EARLIER)
    )


FIRST_OR_EDITED = f"Start to schedule {NAME} as placement changed", "ReconcileSchedule"
SCALED = f"Reschedule {NAME} as replicas scaled down or scaled up", "ScaleSchedule"
TRIGGERED = f"Reschedule {NAME} as explicitly triggered reschedule", "ReconcileSchedule"
IS_DUPLICATED = f"Start to schedule {NAME} as scheduling type is duplicated", "ReconcileSchedule"
DELETED = f"Reschedule {NAME} as some scheduled clusters are deleted", "ReconcileSchedule"
NOTHING = f"Don't need to schedule {NAME}", ""


def web(replicas: int) -> BindingBuilder:
    return binding("web").replicas(replicas)


CLASSIFIED = {
    "never scheduled": (web(4).dynamic_weight(), ScheduleType.FIRST, FIRST_OR_EDITED),
    "placed by another client": (web(4).dynamic_weight().on(m1=4), ScheduleType.RECONCILE, FIRST_OR_EDITED),
    "nothing to do": (placed_as_wanted(), ScheduleType.AVOID, NOTHING),
    "scaled up": (placed_as_wanted(5), ScheduleType.SCALE, SCALED),
    "scaled down during an eviction": (placed_as_wanted(3).evicted_from("m2"), ScheduleType.SCALE, SCALED),
    "shrunk by an eviction": (placed_as_wanted(7).evicted_from("m2"), ScheduleType.FAILOVER, SCALED),
    "explicitly": (placed_as_wanted().reschedule_triggered(LATER), ScheduleType.RECONCILE, TRIGGERED),
    "duplicated": (web(2).duplicated().on(m1=2).applied(), ScheduleType.RECONCILE, IS_DUPLICATED),
    "no strategy is duplicated": (web(2).on(m1=2).applied(), ScheduleType.RECONCILE, IS_DUPLICATED),
    "no workload counts as duplicated": (
        binding("web").dynamic_weight().on("m1").applied(),
        ScheduleType.RECONCILE,
        IS_DUPLICATED,
    ),
    "duplicated on a leaving cluster": (
        web(2).duplicated().on(leaving=2).applied(),
        ScheduleType.FAILOVER,
        IS_DUPLICATED,
    ),
    "duplicated under eviction": (
        web(2).duplicated().on(m1=2).evicted_from("m2").applied(),
        ScheduleType.FAILOVER,
        IS_DUPLICATED,
    ),
    "on a leaving cluster": (placed_as_wanted(leaving=4), ScheduleType.FAILOVER, DELETED),
}


@pytest.mark.parametrize(("builder", "type_", "reason_and_label"), CLASSIFIED.values(), ids=CLASSIFIED)
def test_a_binding_is_classified(
    builder: BindingBuilder, type_: ScheduleType, reason_and_label: tuple[str, str]
) -> None:
    is_routine = reason_and_label is IS_DUPLICATED
    assert done(builder) == Classification(type_, *reason_and_label, is_routine)


@pytest.mark.parametrize(
    ("builder", "needs"),
    [
        pytest.param(placed_as_wanted(), False, id="nothing is left to do"),
        pytest.param(placed_as_wanted(5), True, id="replicas are missing"),
        pytest.param(placed_as_wanted().label(POLICY_ID_LABEL), True, id="no policy claims it"),
        pytest.param(placed_as_wanted().deleting(), True, id="it is being deleted"),
        pytest.param(
            placed_as_wanted().scheduler("theirs"),
            True,
            id="of another scheduler",
        ),
    ],
)
def test_a_binding_of_ours_may_need_no_scheduling(builder: BindingBuilder, *, needs: bool) -> None:
    found = builder.build()
    names = {"default-scheduler"}
    assert needs_none(found, names, is_gone=set().__contains__, gates=NO_GATES) is not needs


def test_log_texts_name_the_kind_of_binding() -> None:
    builder = binding("role", namespace="").dynamic_weight().on(m1=0).applied().last_scheduled(EARLIER)
    builder = builder.replicas(0, cpu=1).reschedule_triggered(LATER)
    expected = "Start to schedule ClusterResourceBinding(role) as explicitly triggered reschedule"
    assert done(builder).reason == expected


@pytest.mark.parametrize("moment", [EARLIER, None])
def test_a_reschedule_that_is_not_later_is_ignored(moment: str | None) -> None:
    builder = placed_as_wanted()
    if moment:
        builder.reschedule_triggered(moment)
    assert done(builder).type is ScheduleType.AVOID


@pytest.mark.parametrize(
    ("builder", "gate", "changed"),
    [
        pytest.param(binding("w").replicas(5), False, False, id="no-strategy"),
        pytest.param(
            binding("w").replicas(5).duplicated().on(m1=5, m2=5), False, False, id="duplicated-equal"
        ),
        pytest.param(
            binding("w").replicas(5).duplicated().on(m1=3, m2=5), False, True, id="duplicated-one-differs"
        ),
        pytest.param(binding("w").replicas(5).duplicated(), False, False, id="duplicated-nowhere"),
        pytest.param(binding("w").replicas(5).aggregated().on(m1=2, m2=3), False, False, id="divided-equal"),
        pytest.param(binding("w").replicas(5).aggregated().on(m1=3, m2=3), False, True, id="divided-differs"),
        pytest.param(binding("w").component("a", 1).duplicated(), True, True, id="components-nowhere"),
        pytest.param(binding("w").component("a", 1).duplicated(), False, False, id="components-gate-off"),
        pytest.param(
            binding("w").component("a", 1).duplicated().on("m1"), True, False, id="components-placed"
        ),
        pytest.param(binding("w").replicas(0).aggregated(), True, False, id="no-components-nowhere"),
        pytest.param(
            binding("w")
            .replicas(5)
            .placement({"replicaScheduling": {"replicaSchedulingType": "Other"}})
            .on(m1=1),
            False,
            False,
            id="unknown-strategy",
        ),
    ],
)
def test_replicas_are_compared_with_the_targets(builder: BindingBuilder, gate: bool, changed: bool) -> None:
    on = gates(MultiplePodTemplatesScheduling=gate)
    found = classify(builder.applied().build(), is_gone=lambda _: False, gates=on)
    assert (found.metric_type == "ScaleSchedule") is changed


def affinities(**names_by_term: str) -> dict[str, Any]:
    terms = [{"affinityName": term, "clusterNames": [name]} for term, name in names_by_term.items()]
    return {"clusterAffinities": terms}


TWO_TERMS = affinities(a="m1", b="m2")


@pytest.mark.parametrize(
    ("placement", "applied", "observing", "changed"),
    [
        pytest.param({}, None, "", True, id="never-applied"),
        pytest.param({}, "", "", True, id="empty-annotation"),
        pytest.param({}, "{}", "", False, id="empty-placement"),
        pytest.param({}, "null", "", False, id="null-is-the-empty-placement"),
        pytest.param({}, '{"unknown":1}', "", False, id="unknown-fields"),
        pytest.param({"clusterTolerations": []}, "{}", "", False, id="empty-list-is-missing"),
        pytest.param({}, "{", "", True, id="corrupt"),
        pytest.param({}, "[]", "", True, id="no-object"),
        pytest.param({}, '{"clusterTolerations":1}', "", True, id="wrong-type"),
        pytest.param({"clusterAffinity": {}}, "{}", "", True, id="affinity"),
        pytest.param({"clusterTolerations": [{"key": "k"}]}, "{}", "", True, id="tolerations"),
        pytest.param({"spreadConstraints": [{"minGroups": 1}]}, "{}", "", True, id="spread"),
        pytest.param({"replicaScheduling": {}}, "{}", "", True, id="strategy"),
        pytest.param({"workloadAffinity": {}}, "{}", "", True, id="workload-affinity-with-a-single-affinity"),
        pytest.param(TWO_TERMS, TWO_TERMS, "", False, id="equal-terms"),
        pytest.param(affinities(a="m9", b="m2"), TWO_TERMS, "", True, id="no-term-in-force"),
        pytest.param(affinities(a="m9", b="m2"), TWO_TERMS, "a", True, id="term-in-force-edited"),
        pytest.param(affinities(b="m2"), TWO_TERMS, "a", True, id="term-in-force-deleted"),
        pytest.param({}, TWO_TERMS, "a", True, id="all-terms-deleted"),
        pytest.param(TWO_TERMS, affinities(b="m2"), "a", True, id="term-in-force-new"),
        pytest.param(affinities(a="m1", b="m9"), TWO_TERMS, "a", False, id="other-term-edited"),
        pytest.param(affinities(a="m1"), TWO_TERMS, "a", False, id="other-term-deleted"),
        pytest.param(affinities(c="m3", a="m1", b="m2"), TWO_TERMS, "a", False, id="other-term-added"),
        pytest.param(affinities(b="m2", a="m1"), TWO_TERMS, "a", False, id="terms-reordered"),
        pytest.param(
            {**TWO_TERMS, "workloadAffinity": {}},
            TWO_TERMS,
            "a",
            False,
            id="workload-affinity-with-a-term-in-force",
        ),
        pytest.param(
            {**TWO_TERMS, "clusterTolerations": [{"key": "k"}]},
            TWO_TERMS,
            "a",
            True,
            id="tolerations-next-to-terms",
        ),
        *(
            pytest.param({**TWO_TERMS, field: value}, TWO_TERMS, "a", True, id=f"{field}-next-to-terms")
            for field, value in (
                ("clusterAffinity", {"clusterNames": ["m1"]}),
                ("spreadConstraints", [{"minGroups": 1}]),
                ("replicaScheduling", {"replicaSchedulingType": "Duplicated"}),
            )
        ),
    ],
)
def test_a_placement_has_changed_if_that_makes_a_difference_now(
    placement: dict[str, Any], applied: dict[str, Any] | str | None, observing: str, changed: bool
) -> None:
    builder = binding("web").placement(placement).observing(observing)
    if applied is not None:
        builder.applied(applied)
    built = builder.build()
    assert placement_changed(built, placement_of(built)) is changed


@pytest.mark.parametrize(
    ("builder", "text"),
    [
        (binding("web"), "failed to get placement from resourceBinding(default/web-deployment)"),
        (binding("role", namespace=""), "failed to get placement from clusterResourceBinding(role)"),
    ],
)
def test_a_binding_without_placement_is_an_error(builder: BindingBuilder, text: str) -> None:
    with pytest.raises(SchedulingError) as caught:
        done(builder.placement(None))
    assert str(caught.value) == text


def test_an_annotation_with_other_key_order_is_read_not_compared() -> None:
    written = '{"replicaScheduling":{"replicaSchedulingType":"Duplicated"},"clusterAffinity":{"clusterNames":["m1"]}}'
    built: Binding = binding("web").names("m1").duplicated().applied(written).build()
    assert not placement_changed(built, placement_of(built))
