"""``status``: which schedulers the bindings name, whether they decide, and what they have placed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karmada_advisor.cli.status import waited
from karmada_advisor.explain.fleet_status import FleetStatus, SchedulerUse, uses_of
from karmada_advisor.state.model import (
    BindingState,
    Placed,
    ReplicaCounts,
    SchedulerShown,
    SchedulerStatus,
    StateName,
    Target,
)
from karmada_advisor.state.schedulers import Schedulers
from karmada_advisor.views.status_text import status_text
from karmada_advisor.views.text import Style
from karmada_scheduler import command
from tests.document_schema import document_schema
from tests.unit.cli.test_explain_all import put
from tests.unit.explain.fleet import failed_billing, placed_checkout
from tests.unit.views.test_schema import problems

SCHEMA = Path(__file__).parents[3] / "docs" / "schemas" / "fleetstatus.v1alpha1.json"
PLACED = BindingState(StateName.PLACED, Placed.ALL, (Target("m1", 4),), 4)


def scheduler(name: str, status: SchedulerStatus) -> SchedulerShown:
    return SchedulerShown(name, status, "its Lease", "2026-11-22T10:00:00Z" if status.name == "DOWN" else "")


def status(*uses: SchedulerUse, not_read: dict[str, str] | None = None) -> FleetStatus:
    return FleetStatus("files", "2026-11-22T10:00:00Z", 3, ("m2",), uses, not_read or {})


def test_schedulers_are_counted_by_the_bindings_that_name_them_and_those_with_a_lease_are_listed() -> None:
    known = Schedulers(
        {each: scheduler(each, SchedulerStatus.RUNNING) for each in ("default-scheduler", "idle")}, problem=""
    )
    failed = BindingState(StateName.NOT_PLACED, wanted=3)
    states = [("default-scheduler", PLACED), ("default-scheduler", failed), ("nobody", PLACED)]

    stock, idle, nobody = uses_of(states, known)

    assert (stock.bindings, stock.replicas) == ({"not placed": 1, "placed": 1}, ReplicaCounts(7, 4, 0, 4))
    assert (idle.scheduler.name, idle.bindings, idle.replicas) == ("idle", {}, ReplicaCounts())
    assert (nobody.scheduler.status, nobody.bindings) == (SchedulerStatus.MISSING, {"placed": 1})


@pytest.mark.parametrize("standing", SchedulerStatus)
def test_only_schedulers_that_are_known_to_decide_are_good_and_those_that_nobody_names_do_not_count(
    standing: SchedulerStatus,
) -> None:
    shown = scheduler("my-scheduler", standing)

    assert status(SchedulerUse(shown, {"placed": 1}, ReplicaCounts())).is_good is (standing.name == "RUNNING")
    assert status(SchedulerUse(shown, {}, ReplicaCounts())).is_good


def test_the_text_has_a_row_for_each_scheduler_and_what_was_not_read() -> None:
    uses = (
        SchedulerUse(
            scheduler("a", SchedulerStatus.RUNNING), {"stuck": 1, "placed": 1200}, ReplicaCounts(9, 8, 5, 1)
        ),
        SchedulerUse(scheduler("b", SchedulerStatus.DOWN), {"placed": 1}, ReplicaCounts()),
    )

    shown = status_text(status(*uses, not_read={"Lease": "forbidden"}), Style(width=140)).splitlines()

    assert shown[0] == "3 clusters, 1 not ready: m2; as stored at files"
    assert shown[2].split() == [
        "SCHEDULER",
        "STATUS",
        "BINDINGS",
        "WANTED",
        "PLACED",
        "RUNNING",
        "NOT",
        "REPORTED",
        "STATES",
    ]
    assert shown[3].split()[:7] == ["a", "running", "1,201", "9", "8", "5", "1"]
    assert shown[3].endswith("1 stuck, 1,200 placed")
    assert shown[4].startswith("b          down since 2026-11-22T10:00:00Z")
    assert shown[-2:] == ["Not read:", "- Lease: forbidden"]
    assert "NOT REPORTED" in status_text(status(*uses), Style(width=60))


def test_of_files_without_leases_it_is_not_known_who_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = put(tmp_path, [placed_checkout(), failed_billing()])

    assert command.main(["status", *files, "-o", "json"]) == 1

    fields = json.loads(capsys.readouterr().out)
    assert (fields["kind"], fields["clusters"], fields["notReady"]) == ("FleetStatus", 8, [])
    [use] = fields["schedulers"]
    assert (use["scheduler"]["name"], use["scheduler"]["status"]) == ("default-scheduler", "not known")
    assert use["replicas"] == {"wanted": 30, "placed": 24, "running": 24, "unknown": 0}
    assert "Leases of schedulers" in fields["notRead"]
    assert list(problems(fields, document_schema(FleetStatus), document_schema(FleetStatus))) == []
    assert json.loads(SCHEMA.read_text()) == document_schema(FleetStatus)


def test_it_waits_until_every_scheduler_decides_or_the_time_is_over() -> None:
    good = status(SchedulerUse(scheduler("a", SchedulerStatus.RUNNING), {"placed": 1}, ReplicaCounts()))
    bad = status(SchedulerUse(scheduler("a", SchedulerStatus.MISSING), {"placed": 1}, ReplicaCounts()))
    now, answers = 0.0, [bad, bad, good]

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    def read() -> tuple[FleetStatus, list[str]]:
        return (answers.pop(0) if answers else bad), []

    assert waited(read, seconds=60, clock=lambda: now, sleep=sleep) == (good, [])
    assert now == 4
    assert waited(read, seconds=5, clock=lambda: now, sleep=sleep) == (bad, [])
    assert now == 9
    assert waited(read, seconds=0, clock=lambda: now, sleep=sleep) == (bad, [])
    assert now == 9
