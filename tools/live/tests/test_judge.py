"""The judge finds nothing in records without a fault, and each broken invariant in records that break it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake_apiserver.objects import cluster
from tools.live.tests.made_records import Made, made


@pytest.fixture
def records(tmp_path: Path) -> Made:
    return made(tmp_path)


def broken(records: Made) -> set[str]:
    return {each.invariant for each in records.result().violations}


def test_records_without_a_fault_break_nothing(records: Made) -> None:
    result = records.result()
    assert not result.violations
    assert result.figures["accepted writes to bindings"] == 6
    assert result.figures["changes of targets, all justified"] == 3
    assert result.figures["bindings judged at rest"] == 3


def test_a_write_without_a_resource_version_is_not_guarded(records: Made) -> None:
    records.write("chaos-1", "chaos/a", named=None, note="x")
    assert broken(records) == {"guarded"}


def test_a_write_that_was_refused_unread_is_not_judged_by_its_body(records: Made) -> None:
    records.request("chaos-1", "patch", "resourcebindings", "chaos/a", code=403)
    result = records.result()
    assert not result.violations
    assert result.figures["requests that were refused unread"] == 1


def test_a_write_by_the_last_leader_is_fenced(records: Made) -> None:
    records.now = 55.0
    records.write("chaos-0", "chaos/a", note="x")
    found = records.result().violations
    assert {each.invariant for each in found} == {"fenced"}
    assert any("another one had the Lease" in each.text for each in found)
    assert any("while chaos-1 had the Lease" in each.text for each in found)


def test_a_write_that_is_refused_is_judged_by_its_sender_too(records: Made) -> None:
    records.now = 55.0
    body = {"metadata": {"resourceVersion": "1"}, "spec": {}}
    records.request("chaos-0", "patch", "resourcebindings", "chaos/a", code=409, requestObject=body)
    assert broken(records) == {"fenced"}


def test_a_write_long_after_the_last_renewal_is_fenced_though_nobody_else_leads(records: Made) -> None:
    records.now = 65.0
    records.write("chaos-1", "chaos/c", note="x")
    (found,) = records.result().violations
    assert (found.invariant, "15.0 s after its last renewal" in found.text) == ("fenced", True)


def test_a_write_that_the_network_held_since_the_old_term_is_not_fenced(records: Made) -> None:
    records.now = 5.0
    records.add("faults", fault="held network", target="scheduler-0", phase="begin")
    records.now = 55.0
    records.add("faults", fault="held network", target="scheduler-0", phase="end")
    records.write("chaos-0", "chaos/a", note="x")
    result = records.result()
    assert not result.violations
    assert result.figures["writes accepted in another one's term, sent before it"] == 1


def test_a_network_that_held_another_replica_excuses_nothing(records: Made) -> None:
    records.now = 5.0
    records.add("faults", fault="held network", target="scheduler-1", phase="begin")
    records.now = 55.0
    records.add("faults", fault="held network", target="scheduler-1", phase="end")
    records.write("chaos-0", "chaos/a", note="x")
    assert broken(records) == {"fenced"}


def test_a_placement_that_was_emptied_while_clusters_fit_is_harm(records: Made) -> None:
    records.write("chaos-1", "chaos/c", clusters=[])
    assert broken(records) == {"no harm", "converged"}


def test_a_placement_by_clusters_of_a_moment_ago_is_no_harm(records: Made) -> None:
    records.now = 51.0
    records.store("clusters", "m3", cluster("m3"))
    records.write(
        "chaos-1", "chaos/c", clusters=[{"name": name, "replicas": 2} for name in ("m1", "m2", "m3")]
    )
    records.now = 52.0
    records.store("clusters", "m3", None)
    records.now = 53.0
    result = records.result()
    assert {each.invariant for each in result.violations} == {"converged"}
    assert result.figures["changes of targets, all justified"] == 4


def test_a_change_of_targets_by_a_controller_is_not_judged(records: Made) -> None:
    records.now = 51.0
    version = records.write("controllers", "chaos/c", clusters=[{"name": "m1", "replicas": 2}])
    records.write("chaos-1", "chaos/c", clusters=[{"name": name, "replicas": 2} for name in ("m1", "m2")])
    assert version
    assert not records.result().violations


@pytest.mark.parametrize(("user", "key"), [("chaos-1", "chaos/d"), ("upstream", "chaos/c")])
def test_a_write_to_the_other_scheduler_s_binding_is_found(records: Made, user: str, key: str) -> None:
    records.write(user, key, note="x")
    assert broken(records) == {"separate"}


def test_a_binding_without_its_decision_is_not_converged(records: Made) -> None:
    records.now = 60.0
    value = records.stored["chaos/c"]
    records.store("bindings", "chaos/c", {**value, "spec": {**value["spec"], "replicas": 5}})
    assert broken(records) == {"converged"}


def test_a_binding_without_its_status_is_not_converged(records: Made) -> None:
    records.now = 60.0
    value = records.stored["chaos/c"]
    records.store("bindings", "chaos/c", {**value, "metadata": {**value["metadata"], "generation": 2}})
    assert broken(records) == {"converged"}


def test_a_write_at_rest_is_not_quiet(records: Made) -> None:
    records.now = 165.0
    records.lease("chaos-1", "two")
    records.write("chaos-1", "chaos/c", note="x")
    assert broken(records) == {"quiet"}


def test_many_requests_at_rest_are_not_quiet(records: Made) -> None:
    for number in range(100):
        records.now = 161.0 + number / 4
        records.request("chaos-0", "get", "clusters", f"m{number}")
    assert broken(records) == {"quiet"}


def test_a_request_that_is_repeated_without_a_pause_is_not_polite(records: Made) -> None:
    for number in range(40):
        records.now = 20.0 + number / 100
        records.request("chaos-0", "get", "resourcebindings", "chaos/a")
    assert broken(records) == {"polite"}


def test_two_leaders_and_a_replica_that_is_not_ready_are_not_alive(records: Made) -> None:
    records.final = {"leads": ["scheduler-0", "scheduler-1"], "ready": {"scheduler-0": 503}}
    found = records.result().violations
    assert [each.invariant for each in found] == ["alive", "alive"]


def test_a_replica_may_end_by_a_fault_or_for_the_lease_but_not_otherwise(records: Made) -> None:
    records.add("processes", event="killed", name="scheduler-0", pid=1)
    records.add(
        "processes", event="ended", name="scheduler-0", pid=2, status=1, log="leaderelection lost: ..."
    )
    records.add("processes", event="ended", name="karmada-webhook", pid=3, status=1, log="")
    assert not Made(records.folder / "other").files
    records.add("processes", event="ended", name="scheduler-1", pid=4, status=1, log="Traceback ...")
    (found,) = records.result().violations
    assert (found.invariant, "scheduler-1" in found.text) == ("restarts", True)


def test_a_replica_that_fails_its_liveness_probe_is_found(records: Made) -> None:
    records.add("processes", event="liveness", name="scheduler-1", pid=4)
    assert broken(records) == {"restarts"}


def test_an_accepted_write_that_the_watch_has_not_seen_makes_the_records_incomplete(records: Made) -> None:
    answer = {**records.stored["chaos/c"], "metadata": {"resourceVersion": "9999"}}
    body = {"metadata": {"resourceVersion": "1"}, "spec": {}}
    records.request(
        "chaos-1", "patch", "resourcebindings", "chaos/c", requestObject=body, responseObject=answer
    )
    assert broken(records) == {"records"}


def test_a_lost_watch_makes_the_records_incomplete_if_an_object_differs_afterwards(records: Made) -> None:
    records.add("clusters", gap=500)
    for name in ("m1", "m2"):
        records.list_again("clusters", name)
    records.revision = 400
    records.store("clusters", "m3", cluster("m3"))
    records.revision = 500
    records.store("clusters", "m3", None)
    assert broken(records) == {"records"}


def test_an_object_that_is_gone_after_a_lost_watch_makes_the_records_incomplete(records: Made) -> None:
    records.add("clusters", gap=500)
    records.list_again("clusters", "m1")
    assert "records" in broken(records)


def test_a_lost_watch_after_which_nothing_differs_has_missed_nothing(records: Made) -> None:
    records.add("clusters", gap=500)
    for name in ("m1", "m2"):
        records.list_again("clusters", name)
    assert not records.result().violations


def test_a_write_whose_response_was_an_error_belongs_to_its_sender(records: Made) -> None:
    records.now = 51.0
    before = records.revision_of("chaos/c")
    value = records.stored["chaos/c"]
    records.store("bindings", "chaos/c", {**value, "spec": {**value["spec"], "clusters": []}})
    body = {"metadata": {"resourceVersion": str(before)}, "spec": {"clusters": []}}
    records.request("chaos-1", "patch", "resourcebindings", "chaos/c", code=504, requestObject=body)
    assert broken(records) == {"no harm", "converged"}


def test_a_change_by_an_unknown_writer_is_counted(records: Made) -> None:
    records.now = 51.0
    value = records.stored["chaos/c"]
    records.store("bindings", "chaos/c", {**value, "spec": {**value["spec"], "clusters": []}})
    records.place("chaos-1", "chaos/c")
    result = records.result()
    assert not result.violations
    assert result.figures["changes of targets by unknown writers that are not decisions"] == 1


def test_a_line_of_the_audit_log_that_was_cut_off_is_left_out(records: Made) -> None:
    records.result()
    log = records.folder / "plane" / "logs" / "audit.log"
    log.write_bytes(log.read_bytes()[:-30])
    from tools.live.records import read_audit

    assert len(list(read_audit(log))) == len(records.audit) - 1
