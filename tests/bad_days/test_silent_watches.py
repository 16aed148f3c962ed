"""A watch that the API server refuses for long is reported by the metric, the log, and finally ``/readyz``."""

from __future__ import annotations

from pathlib import Path

from tests.fake_apiserver import FakeApiServer, SchedulerProcess, cluster, start_scheduler, status, wait_for


def _age(scheduler: SchedulerProcess, kind: str) -> float:
    return scheduler.metric(f'karmada_scheduler_watch_age_seconds{{kind="{kind}"}}')


def test_the_age_of_a_refused_watch_grows_and_the_reason_is_logged_again(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        refused = server.fault(method="WATCH", path="clusters$", answer=status(403, "Forbidden", "no watch"))
        with start_scheduler(server, tmp_path) as scheduler:
            wait_for(lambda: _age(scheduler, "Cluster") > 2.5, "the age to grow", scheduler)
            server.send(
                "ResourceBinding", b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1000"}}}'
            )
            wait_for(lambda: _age(scheduler, "ResourceBinding") < 1, "a bookmark to count", scheduler)
            assert _age(scheduler, "Cluster") > 2.5
            wait_for(lambda: scheduler.log.count("no watch") > 1, "the error to be repeated", scheduler)
            server.heal(refused)
            wait_for(lambda: _age(scheduler, "Cluster") < 1, "the watch to be accepted", scheduler)
            server.put(cluster("m1"))
            sample = 'karmada_scheduler_watch_events_total{event="ADDED",kind="Cluster"}'
            wait_for(lambda: scheduler.metric(sample) == 1, "its events to come", scheduler)
