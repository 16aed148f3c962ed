"""Metrics under upstream's names, labels and buckets."""

import re

import pytest

from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.scheduling_queue.work_queue import WorkQueue
from karmada_scheduler.config.options import RetryLimits
from karmada_scheduler.framework.result import Code

UPSTREAM = {
    "karmada_scheduler_schedule_attempts_total": {"result", "schedule_type"},
    "karmada_scheduler_e2e_scheduling_duration_seconds": {"result", "schedule_type"},
    "karmada_scheduler_scheduling_algorithm_duration_seconds": {"schedule_step"},
    "karmada_scheduler_queue_incoming_bindings_total": {"event"},
    "karmada_scheduler_framework_extension_point_duration_seconds": {"extension_point", "result"},
    "karmada_scheduler_plugin_execution_duration_seconds": {"plugin", "extension_point", "result"},
    "karmada_build_info": {
        "git_version",
        "git_commit",
        "git_short_commit",
        "git_tree_state",
        "build_date",
        "go_version",
        "compiler",
        "platform",
    },
    "workqueue_depth": {"name", "controller", "priority"},
    "workqueue_adds_total": {"name", "controller"},
    "workqueue_retries_total": {"name", "controller"},
    "workqueue_queue_duration_seconds": {"name", "controller"},
    "workqueue_work_duration_seconds": {"name", "controller"},
    "workqueue_unfinished_work_seconds": {"name", "controller"},
    "workqueue_longest_running_processor_seconds": {"name", "controller"},
    "karmada_scheduler_estimator_estimating_request_total": {"result", "type"},
    "karmada_scheduler_estimator_estimating_algorithm_duration_seconds": {"result", "type", "step"},
    "rest_client_requests_total": {"code", "method", "host"},
    "leader_election_master_status": {"name"},
}


def used() -> Metrics:
    """Return metrics with one observation of each kind."""
    metrics = Metrics()
    metrics.scheduling.attempts.labels("scheduled", "ScaleSchedule").inc()
    metrics.scheduling.e2e_duration.labels("scheduled", "ScaleSchedule").observe(0.003)
    metrics.scheduling.queue_incoming.labels("BindingAdd").inc()
    metrics.api_server.requests.labels("200", "GET", "localhost").inc()
    metrics.api_server.leader.labels("").set(1)
    observer = metrics.plugins
    for _ in range(2):
        observer.plugin("ClusterAffinity", "Filter", Code.SUCCESS, 0.00002)
        observer.extension_point("Filter", Code.UNSCHEDULABLE, 0.0001)
        observer.step("Filter", 0.001)
    metrics.estimators.request_ended("MaxAvailableReplicas", "success", 0.002)
    part = metrics.workqueues.of("scheduler-queue")
    queue: WorkQueue[str] = WorkQueue(limits=RetryLimits(), clock=lambda: 0.0, metrics=part)
    part.expose(depth=lambda: queue.depth, unfinished=queue.unfinished)
    queue.add("a")
    queue.add("a")
    queue.pop()
    queue.add("a")
    queue.add_rate_limited("b")
    return metrics


def labels_of(exposition: str, name: str) -> set[str]:
    """Return the label names of a family's samples, without those of its kind of metric."""
    lines = [
        line for line in exposition.splitlines() if re.match(rf"{name}(_bucket|_sum|_count)?[{{ ]", line)
    ]
    assert lines, f"{name} is not exposed"
    return set(re.findall(r'(\w+)="', " ".join(lines))) - {"le"}


@pytest.mark.parametrize(("name", "labels"), UPSTREAM.items(), ids=UPSTREAM)
def test_a_family_of_upstream_has_its_labels(name: str, labels: set[str]) -> None:
    assert labels_of(used().exposition().decode(), name) == labels


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("karmada_scheduler_e2e_scheduling_duration_seconds", ["0.001", "0.002", "16.384"]),
        ("karmada_scheduler_framework_extension_point_duration_seconds", ["0.0001", "0.0002", "0.2048"]),
        (
            "karmada_scheduler_plugin_execution_duration_seconds",
            ["1e-05", "1.5000000000000002e-05", "0.02216837820053101"],
        ),
        ("workqueue_queue_duration_seconds", ["1e-08"]),
    ],
)
def test_buckets_are_upstream_s_to_the_letter(name: str, bounds: list[str]) -> None:
    found = re.findall(rf'{name}_bucket{{[^}}]*le="([^"]+)"', used().exposition().decode())
    assert set(bounds) <= set(found)


def test_the_queue_is_counted_as_client_go_counts() -> None:
    exposition = used().exposition().decode()
    queue = 'controller="scheduler-queue",name="scheduler-queue"'
    assert f"workqueue_adds_total{{{queue}}} 2.0" in exposition
    assert f"workqueue_retries_total{{{queue}}} 1.0" in exposition
    assert f'workqueue_depth{{{queue},priority=""}} 1.0' in exposition


def test_observations_with_equal_labels_add_up() -> None:
    sample = used().registry.get_sample_value(
        "karmada_scheduler_plugin_execution_duration_seconds_count",
        {"plugin": "ClusterAffinity", "extension_point": "Filter", "result": "Success"},
    )
    assert sample == 2


def test_there_are_no_created_series() -> None:
    assert "_created" not in used().exposition().decode()


def test_the_priority_queue_s_sets_are_exposed() -> None:
    metrics = Metrics()
    metrics.scheduling.expose_pending(lambda: {"active": 3, "backoff": 2, "unschedulable": 1})
    assert 'scheduler_pending_bindings{queue="backoff"} 2.0' in metrics.exposition().decode()


def test_estimators_are_counted_by_state() -> None:
    metrics = Metrics()
    metrics.estimators.expose_states(lambda: {"connected": 3, "absent": 1})
    metrics.scheduling.assumed.set_function(lambda: 5)
    exposition = metrics.exposition().decode()
    assert 'karmada_scheduler_estimators{standing="absent"} 1.0' in exposition
    assert "karmada_scheduler_assumed_placements 5.0" in exposition
