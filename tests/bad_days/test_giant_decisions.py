"""Bindings that exceed limits get an error and do not affect others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.fake_apiserver import FakeApiServer, SchedulerProcess, binding, cluster, start_scheduler, wait_for

PATH = "spec.replicaRequirements.resourceRequest"


def _probed(process: SchedulerProcess, until: Callable[[], object]) -> Callable[[], bool]:
    """Return a probe that also requests /healthz; a late answer fails the test."""

    def look() -> bool:
        assert process.answers("/healthz", timeout=10) == 200, process.log[-2000:]
        return bool(until())

    return look


def test_a_giant_binding_gets_a_condition_and_others_are_placed(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        for number in range(1000):
            server.put(cluster(f"m{number:04}"))
        names = {f"example.com/r{number}": "1" for number in range(8000)}
        for number in range(3):
            server.put(binding(f"giant-{number}", replicas=2, requests=names, clusters={"m0007": 2}))
        terms = [{"affinityName": f"t{number}", "clusterNames": [f"gone-{number}"]} for number in range(300)]
        server.put(binding("many-terms", placement={"clusterAffinities": terms}))
        with start_scheduler(server, tmp_path) as scheduler:
            server.put(binding("normal", replicas=3))
            placed = _probed(scheduler, lambda: server.targets("normal"))
            wait_for(placed, "the normal one to be placed", scheduler, timeout=20)
            reported = _probed(
                scheduler,
                lambda: all(
                    server.condition(name) for name in ("giant-0", "giant-1", "giant-2", "many-terms")
                ),
            )
            wait_for(reported, "conditions of the others", scheduler, timeout=20)
            for number in range(3):
                condition = server.condition(f"giant-{number}")
                assert condition["reason"] == "SchedulerError"
                assert condition["message"] == f"{PATH}: 8000 resource names, at most 256 are supported"
                assert server.targets(f"giant-{number}") == {"m0007": 2}
            assert server.condition("many-terms")["reason"] == "NoClusterFit"
