"""The fake API server works as other tests require."""

from pathlib import Path

from tests.fake_apiserver import FakeApiServer, binding, cluster, start_scheduler, wait_for


def test_the_real_scheduler_places_a_binding_and_reports_it(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        server.put(cluster("m2", labels={"zone": "a"}))
        server.put(binding("early", replicas=2))
        with start_scheduler(server, tmp_path) as scheduler:
            wait_for(
                lambda: server.targets("early") == {"m1": 1, "m2": 1}, "the early one to be placed", scheduler
            )
            server.put(binding("late", replicas=4))
            wait_for(lambda: server.targets("late") == {"m1": 2, "m2": 2}, "the late one", scheduler)
            wait_for(lambda: server.condition("late").get("status") == "True", "its condition", scheduler)
            assert server.lease()["holderIdentity"]
            assert scheduler.stop() == 0
            assert server.lease()["holderIdentity"] == ""
