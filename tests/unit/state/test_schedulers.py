"""Which schedulers exist, from Leases, Events, conditions and a process."""

from __future__ import annotations

from datetime import timedelta

import pytest

from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.state.model import SchedulerStatus
from karmada_advisor.state.schedulers import Schedulers, schedulers_of, seen_in_bindings, seen_in_event
from karmada_scheduler.api.well_known import DEFAULT_PROFILES_ANNOTATION, SCHEDULER_NAMES_ANNOTATION
from karmada_scheduler.structs import replace
from tests.unit.state.test_reading import DONE, NOW, lease, web

FRESH, OLD = "2026-11-24T09:59:58.000000Z", "2026-11-24T09:00:00.000000Z"
OURS = {SCHEDULER_NAMES_ANNOTATION: "ours, batch"}


def test_our_lease_names_its_profiles_and_the_stock_one_is_the_default_scheduler() -> None:
    found = schedulers_of([lease("anything", FRESH, **OURS), lease("karmada-scheduler", FRESH)], now=NOW)

    assert [found.of(name).status for name in ("ours", "batch", "default-scheduler")] == [
        SchedulerStatus.RUNNING
    ] * 3
    assert found.of("ours").source == "Lease karmada-system/anything"


def test_the_name_of_another_lease_counts_if_a_binding_names_it() -> None:
    found = schedulers_of([lease("custom", FRESH), lease("karmada-descheduler", FRESH)], now=NOW)

    assert found.of("custom").status is SchedulerStatus.RUNNING
    assert found.of("karmada-deschedular").nearest == ""


def test_a_lease_that_has_run_out_or_was_released_is_that_of_a_scheduler_that_is_down() -> None:
    released = lease("karmada-scheduler", OLD)
    released["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
    just_now = lease("karmada-scheduler", FRESH)
    just_now["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 15}
    assert not schedulers_of([just_now], now=NOW).of("default-scheduler").decides

    ended, stopped = (
        schedulers_of([each], now=NOW).of("default-scheduler")
        for each in (lease("karmada-scheduler", OLD), released)
    )

    assert ended.status is stopped.status is SchedulerStatus.DOWN
    assert "was renewed for the last time 60 min ago" in ended.source
    assert "was released 60 min ago" in stopped.source
    assert not ended.decides


def test_objects_that_are_kept_judge_a_lease_by_when_it_was_read() -> None:
    kept = Fleet("https://plane", is_live=True, at=NOW, leases=[lease("karmada-scheduler", FRESH)])

    assert kept.schedulers().of("default-scheduler").status is SchedulerStatus.RUNNING
    later = replace(kept, at=NOW + timedelta(seconds=30))
    assert later.schedulers().of("default-scheduler").status is SchedulerStatus.DOWN


def test_of_two_leases_the_one_that_is_renewed_counts() -> None:
    found = schedulers_of([lease("b", FRESH, **OURS), lease("a", OLD, **OURS)], now=NOW)

    assert found.of("ours").status is SchedulerStatus.RUNNING


def test_a_name_that_nobody_has_is_missing_with_the_nearest() -> None:
    found = schedulers_of([lease("x", FRESH, **OURS)], now=NOW)

    assert (found.of("our").status, found.of("our").nearest) == (SchedulerStatus.MISSING, "ours")
    assert found.of("zzz").nearest == ""


def test_a_scheduler_without_a_lease_is_known_by_what_it_has_left() -> None:
    known = schedulers_of([], now=NOW)
    condition = DONE | {"lastTransitionTime": OLD}

    decided = known.with_seen(seen_in_bindings([web().scheduler("quiet").condition(**condition).build()]))
    reported = known.with_seen(
        [seen_in_event("quiet", {"reason": "ScheduleBindingSucceed", "lastTimestamp": OLD})]
    )

    for each in (decided, reported):
        assert each.of("quiet").status is SchedulerStatus.SEEN
        assert each.of("quiet").since == OLD
        assert each.of("quite").nearest == "quiet"


def test_a_process_that_answered_once_does_not_win_over_its_lease() -> None:
    found = schedulers_of([lease("x", OLD, **OURS)], now=NOW, process={"ours": "pod-a", "alone": "pod-b"})

    assert found.of("ours").status is SchedulerStatus.DOWN
    assert found.of("alone").status is SchedulerStatus.RUNNING


def test_a_condition_about_an_earlier_generation_is_no_sign_of_the_present_name() -> None:
    renamed = web().scheduler("quiet").condition(**DONE).observed_generation(1).generation(2)

    assert seen_in_bindings([renamed.build()]) == []
    assert [each.name for each in seen_in_bindings([renamed.observed_generation(2).build()])] == ["quiet"]


def test_a_lease_of_this_project_says_whose_plugins_may_be_any() -> None:
    annotations = {**OURS, DEFAULT_PROFILES_ANNOTATION: "batch"}
    found = schedulers_of([lease("x", FRESH, **annotations), lease("karmada-scheduler", FRESH)], now=NOW)

    assert found.profiles == {"ours"}


def test_without_the_leases_nothing_is_known() -> None:
    for known in (Schedulers(), schedulers_of(None, now=NOW, problem="forbidden")):
        assert known.of("any").status is SchedulerStatus.NOT_KNOWN
        assert known.of("any").decides


@pytest.mark.parametrize(
    "spec",
    [None, {}, {"renewTime": "soon"}, {"renewTime": 7}, {"renewTime": FRESH, "leaseDurationSeconds": 10**30}],
)
def test_a_lease_that_cannot_be_read_tells_nothing_bad(spec: object) -> None:
    found = schedulers_of([{"metadata": {"name": "karmada-scheduler"}, "spec": spec}], now=NOW)

    assert found.of("default-scheduler").decides
