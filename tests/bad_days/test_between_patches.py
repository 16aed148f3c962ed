"""A leader that ends between its two patches: the next one reports what is stored, and moves nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fake_apiserver import (
    FakeApiServer,
    SchedulerProcess,
    binding,
    cluster,
    start_scheduler,
    status,
    wait_for,
)
from tests.fake_apiserver.objects import DUPLICATED, DYNAMIC, settled

NOWHERE = {"clusterAffinity": {"clusterNames": ["moon"]}, "replicaScheduling": DYNAMIC}
EVERYWHERE = {"replicaScheduling": DYNAMIC}


def _failed(reason: str) -> dict[str, Any]:
    condition = {"type": "Scheduled", "status": "False", "reason": reason, "message": "before"}
    return {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}


def _before(found: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a settled binding after a change of its spec."""
    found["spec"] |= spec
    found["metadata"]["generation"] = 2
    return found


@contextmanager
def _next_leader(server: FakeApiServer, folder: Path) -> Iterator[SchedulerProcess]:
    """Start the next leader, and look at the end that it has written no result."""
    server.heal()
    server.delete("Lease", "my-scheduler", "karmada-system")
    with server.lock:
        before = len(server.requests)
    with start_scheduler(server, folder) as scheduler:
        yield scheduler
        with server.lock:
            patches = [each for each in server.requests[before:] if each.verb == "PATCH"]
        assert [each.path for each in patches if "bindings" in each.path and "status" not in each.path] == []


def _end_between_patches(server: FakeApiServer, folder: Path, names: list[str]) -> None:
    """Let a leader store the result of each binding, and no status."""
    server.fault(method="PATCH", path="/status$", answer=status(503, "ServiceUnavailable"))
    before = {name: server.patches(name) for name in names}
    with start_scheduler(server, folder) as scheduler:
        for name, count in before.items():
            wait_for(lambda: server.patches(name) > count, f"the result of {name}", scheduler)  # noqa: B023
        scheduler.kill()


def _state(server: FakeApiServer, name: str) -> tuple[str, bool]:
    """Return the reason of the condition, and whether the generation is observed."""
    found = server.get("ResourceBinding", name) or {}
    observed = (found.get("status") or {}).get("schedulerObservedGeneration")
    return str(server.condition(name).get("reason")), observed == found["metadata"]["generation"]


def test_the_result_of_every_kind_of_decision_is_reported(tmp_path: Path) -> None:
    placed = {
        "first": binding("first", replicas=3),
        "failed before": binding("failed-before", replicas=3, status=_failed("NoClusterFit")),
        "unschedulable before": {
            **_before(settled("unschedulable-before", {"m1": 1}), replicas=4),
            "status": _failed("Unschedulable"),
        },
        "scaled": _before(settled("scaled", {"m1": 2, "m2": 1}), replicas=6),
        "duplicated": _before(
            settled(
                "duplicated", {"m1": 1, "m2": 1}, replicas=1, placement={"replicaScheduling": DUPLICATED}
            ),
            replicas=2,
        ),
        "edited": _before(settled("edited", {"m1": 3}, placement=NOWHERE), placement=EVERYWHERE),
        "reschedule requested": _before(
            settled("reschedule-requested", {"m1": 3}), rescheduleTriggeredAt="2026-02-01T00:00:00Z"
        ),
        "on a deleted cluster": settled("on-a-deleted-cluster", {"m3": 3}),
        "evicted": _before(settled("evicted", {"m1": 2, "m2": 2}), clusters=[{"name": "m2", "replicas": 2}]),
    }
    fits_nowhere = {
        "cleared": _before(settled("cleared", {"m1": 3}), placement=NOWHERE),
        "without replicas": binding("without-replicas", replicas=0, placement=NOWHERE, requests={"cpu": "1"}),
    }
    # The generation of a binding that fits nowhere is observed with its next success, as upstream.
    expected = dict.fromkeys(placed, ("Success", True)) | dict.fromkeys(fits_nowhere, ("NoClusterFit", False))
    names = {kind: kind.replace(" ", "-") for kind in expected}
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        server.put(cluster("m2"))
        leaving = cluster("m3")
        leaving["metadata"]["finalizers"] = ["karmada.io/cluster-controller"]
        server.put(leaving)
        server.delete("Cluster", "m3", force=False)
        for manifest in (placed | fits_nowhere).values():
            server.put(manifest)
        _end_between_patches(server, tmp_path, [*names.values()])
        stored = {kind: server.targets(name) for kind, name in names.items()}
        assert all(stored[kind] for kind in placed)
        with _next_leader(server, tmp_path) as scheduler:
            for kind, name in names.items():
                wait_for(lambda: _state(server, name) == expected[kind], kind, scheduler)  # noqa: B023
            assert {kind: server.targets(name) for kind, name in names.items()} == stored
            unplaced = 'karmada_scheduler_unplaced_bindings{{reason="{}"}}'.format
            # The metric follows the events of the statuses.
            wait_for(
                lambda: (
                    (scheduler.metric(unplaced("NoClusterFit")), scheduler.metric(unplaced("Unschedulable")))
                    == (2, 0)
                ),
                "the two to be counted, and no other",
                scheduler,
            )


def test_a_failure_that_a_former_leader_reports_late_is_corrected(tmp_path: Path) -> None:
    def fail(found: dict[str, Any]) -> None:
        found["status"]["conditions"] = _failed("SchedulerError")["conditions"]

    names = ["divided", "duplicated", "nowhere"]
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        server.put(binding("divided", replicas=2))
        server.put(binding("duplicated", replicas=2, placement={"replicaScheduling": DUPLICATED}))
        server.put(binding("nowhere", replicas=2, placement=NOWHERE))
        with start_scheduler(server, tmp_path) as scheduler:
            reasons = {"divided": "Success", "duplicated": "Success", "nowhere": "NoClusterFit"}
            for _ in range(2):
                for name in names:
                    wait_for(
                        lambda: server.condition(name).get("reason") == reasons[name],  # noqa: B023
                        f"the condition of {name}",
                        scheduler,
                    )
                    server.change("ResourceBinding", name, fail)
