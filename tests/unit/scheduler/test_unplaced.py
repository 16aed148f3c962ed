"""Unplaced bindings: reasons, ages, and restarts."""

import logging
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.scheduler.unplaced import REASONS, UnplacedBindings
from karmada_scheduler import logs
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.framework.runtime.waiting_bindings import PendingPermit, WaitingBindings
from tests import manifests

CREATED = "2026-01-01T00:00:00Z"
FAILED = "2026-01-01T01:00:00Z"
NOW = 1767225600.0 + 2 * 3600
"""Two hours after the creation, one after the failure."""

HOUR = 3600.0
WEB = BindingKey("ResourceBinding", "demo", "web")


class UnplacedHarness:
    """The counts of a process that has just started, behind a binding cache; another harness is a restart."""

    def __init__(self) -> None:
        self.now = NOW
        self.bindings = BindingCache()
        self.waiting = WaitingBindings()
        self.gated: set[BindingKey] = set()
        self.unplaced = UnplacedBindings(
            {"ours"}, waiting=self.waiting, gated=self.gated, now=lambda: self.now
        )
        self.bindings.add_listener(self.unplaced.changed)
        self._version = 0

    def put(
        self,
        name: str = "web",
        *,
        condition: Any = None,
        metadata: Mapping[str, Any] | None = None,
        generation: int = 1,
        observed: int = 1,
        **spec: Any,
    ) -> None:
        """Put the next version of a binding into the cache."""
        self._version += 1
        manifest = manifests.binding(name, version=self._version, generation=generation, **spec)
        manifest["metadata"] |= {"creationTimestamp": CREATED, **(metadata or {})}
        if condition is not None:
            manifest["status"] = {"conditions": [condition], "schedulerObservedGeneration": observed}
        self.bindings.put(Binding.from_manifest(manifest))

    def counts(self) -> dict[str, int]:
        return {reason: count for reason, (count, _) in self.unplaced.report().items() if count}

    def age(self, reason: str) -> float:
        return self.unplaced.report()[reason][1]


@pytest.fixture
def harness() -> UnplacedHarness:
    return UnplacedHarness()


def failed(reason: object = "NoClusterFit", since: object = FAILED) -> dict[str, Any]:
    return {"type": "Scheduled", "status": "False", "reason": reason, "lastTransitionTime": since}


SUCCEEDED = {"type": "Scheduled", "status": "True", "reason": "Success", "lastTransitionTime": FAILED}
PLACED = [{"name": "m1", "replicas": 2}]


@pytest.mark.parametrize("reason", ["NoClusterFit", "Unschedulable", "SchedulerError", "QuotaExceeded"])
def test_a_failed_binding_is_unplaced_for_the_reason_and_since_the_transition_of_its_condition(
    harness: UnplacedHarness, reason: str
) -> None:
    harness.put(condition=failed(reason))
    assert harness.counts() == {reason: 1}
    assert harness.age(reason) == HOUR


def test_a_binding_that_was_never_scheduled_is_pending_since_its_creation(harness: UnplacedHarness) -> None:
    harness.put()
    assert harness.counts() == {"pending": 1}
    assert harness.age("pending") == 2 * HOUR


def test_a_reason_without_bindings_is_reported_with_age_zero(harness: UnplacedHarness) -> None:
    assert harness.unplaced.report() == dict.fromkeys(REASONS, (0, 0.0))


def test_the_age_of_a_reason_is_that_of_its_oldest_binding(harness: UnplacedHarness) -> None:
    harness.put("a", condition=failed())
    harness.put("b", condition=failed(since="2026-01-01T00:30:00Z"))
    harness.put("c", condition=failed(since="2026-01-01T01:30:00Z"))
    assert harness.unplaced.report()["NoClusterFit"] == (3, 1.5 * HOUR)


def test_a_failed_binding_that_keeps_its_clusters_is_unplaced(harness: UnplacedHarness) -> None:
    harness.put(condition=failed("Unschedulable"), clusters=PLACED)
    assert harness.counts() == {"Unschedulable": 1}


@pytest.mark.parametrize(
    "binding",
    [
        pytest.param({"condition": SUCCEEDED, "clusters": PLACED}, id="placed"),
        pytest.param({"clusters": PLACED}, id="placed-and-not-reported-yet"),
        pytest.param({"condition": SUCCEEDED}, id="scheduled-with-nothing-to-place"),
        pytest.param({"condition": failed(), "placement": None}, id="no-placement"),
        pytest.param({"condition": failed(), "schedulerName": "theirs"}, id="another-scheduler"),
        pytest.param({"condition": failed(), "suspension": {"scheduling": True}}, id="suspended"),
        pytest.param({"condition": failed(), "metadata": {"deletionTimestamp": FAILED}}, id="being-deleted"),
        pytest.param({"condition": failed(), "metadata": {"labels": {}}}, id="no-policy"),
    ],
)
def test_a_binding_that_is_placed_or_not_to_be_scheduled_is_not_unplaced(
    harness: UnplacedHarness, binding: dict[str, Any]
) -> None:
    harness.put(**binding)
    assert harness.counts() == {}
    harness.put(condition=failed())
    harness.put(**binding)
    assert harness.counts() == {}, "nor a binding that became one"


def test_a_binding_that_lost_its_clusters_is_pending_since_then(harness: UnplacedHarness) -> None:
    harness.put(condition=SUCCEEDED, clusters=PLACED)
    harness.now += 5
    harness.put(condition=SUCCEEDED, generation=2)
    harness.now += 7
    harness.put(condition=SUCCEEDED, generation=2, metadata={"annotations": {"a": "b"}})
    assert harness.counts() == {"pending": 1}
    assert harness.age("pending") == 7


def test_a_resumed_binding_is_pending_since_then(harness: UnplacedHarness) -> None:
    harness.put(suspension={"scheduling": True})
    harness.put(generation=2)
    harness.now += 3
    assert harness.age("pending") == 3


def test_a_new_binding_under_a_deleted_name_is_pending_since_its_own_creation(
    harness: UnplacedHarness,
) -> None:
    harness.put(condition=failed())
    harness.bindings.remove(WEB, 100)
    assert harness.counts() == {}
    harness._version = 100
    harness.put(metadata={"uid": "another", "creationTimestamp": "2026-01-01T01:59:00Z"})
    assert harness.unplaced.report()["pending"] == (1, 60)


def test_a_binding_that_was_replaced_without_a_delete_event_is_pending_since_its_own_creation(
    harness: UnplacedHarness,
) -> None:
    harness.put()
    harness.put(metadata={"uid": "another", "creationTimestamp": "2026-01-01T01:59:00Z"})
    assert harness.age("pending") == 60


def test_a_restart_changes_neither_counts_nor_ages() -> None:
    before, after = UnplacedHarness(), UnplacedHarness()
    before.put(condition=SUCCEEDED, clusters=PLACED)
    before.put("new")
    for harness in (before, after):
        harness.put(condition=failed(), clusters=PLACED)
        harness.put("new")
        harness.put("gone")
        harness.bindings.remove(BindingKey("ResourceBinding", "demo", "gone"), 100)
    assert before.unplaced.report() == after.unplaced.report()


@pytest.mark.parametrize("since", [None, "", "yesterday", 7, {}, "2026-13-01T00:00:00Z"])
def test_a_condition_with_an_invalid_time_counts_since_it_was_seen(
    harness: UnplacedHarness, since: object
) -> None:
    harness.put(condition=failed(since=since))
    harness.now += 4
    harness.put(condition=failed(since=since), generation=2)
    assert harness.unplaced.report()["NoClusterFit"] == (1, 4)


@pytest.mark.parametrize("created", [None, "", "yesterday", 7])
def test_a_binding_with_an_invalid_creation_time_counts_since_it_was_seen(
    harness: UnplacedHarness, created: object
) -> None:
    harness.put(metadata={"creationTimestamp": created})
    harness.now += 4
    assert harness.unplaced.report()["pending"] == (1, 4)


@pytest.mark.parametrize("reason", ["BindingFailedScheduling", "Success", "", None, 7, [], {}])
def test_an_unknown_reason_is_reported_as_other(harness: UnplacedHarness, reason: object) -> None:
    harness.put(condition=failed(reason))
    assert harness.counts() == {"other": 1}


def test_a_condition_without_a_status_is_a_failure(harness: UnplacedHarness) -> None:
    harness.put(condition={"type": "Scheduled"})
    assert harness.counts() == {"other": 1}


def test_ages_are_not_negative_when_the_clock_goes_back(harness: UnplacedHarness) -> None:
    harness.put(condition=failed())
    harness.put("new")
    harness.now = 0
    assert harness.unplaced.report()["NoClusterFit"] == (1, 0)
    assert harness.unplaced.report()["pending"] == (1, 0)


async def test_only_unplaced_bindings_are_reported_as_waiting_or_gated(
    harness: UnplacedHarness,
) -> None:
    for name in ("web", "gated", "other"):
        harness.put(name)
    harness.put("placed", condition=SUCCEEDED, clusters=PLACED)
    for name in ("web", "placed"):
        key = WEB._replace(name=name)
        found = harness.bindings.get(key)
        assert found is not None
        harness.waiting._waiting[key] = PendingPermit(found, frozenset(), {"Gate": 60})
    harness.gated |= {WEB._replace(name="gated"), WEB._replace(name="not there any more")}
    assert harness.counts() == {"waiting": 1, "gated": 1, "pending": 1}
    assert harness.age("waiting") == harness.age("gated") == 2 * HOUR
    harness.waiting._waiting.clear()
    harness.gated.clear()
    assert harness.counts() == {"pending": 3}


def test_a_report_in_another_thread_tolerates_changes(harness: UnplacedHarness) -> None:
    for number in range(2000):
        harness.put(f"web-{number}")
    reports: list[Mapping[str, tuple[int, float]]] = []
    scrape = threading.Thread(target=lambda: reports.extend(harness.unplaced.report() for _ in range(50)))
    scrape.start()
    number = 0
    while scrape.is_alive():
        number += 1
        harness.put(f"web-{number % 4000}", clusters=PLACED if number % 2 else [])
        key = WEB._replace(name=f"web-{number % 4000}")
        (harness.gated.discard if number % 3 else harness.gated.add)(key)
    assert len(reports) == 50


def test_an_unclaimed_binding_is_counted_and_logged_once_at_v2(
    harness: UnplacedHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logs.V2, logger="karmada_pyscheduler")
    harness.put(metadata={"labels": {}})
    harness.put(metadata={"labels": {manifests.POLICY_LABEL: ""}}, generation=2)
    assert harness.unplaced.unclaimed() == 1
    assert [(each.levelno, each.message.partition(",")[0]) for each in caplog.records] == [
        (logs.V2, "ResourceBinding(demo/web) is left alone: no policy claims it")
    ]
    harness.put()
    assert harness.unplaced.unclaimed() == 0
    assert harness.counts() == {"pending": 1}


@pytest.mark.parametrize(
    "binding",
    [
        pytest.param({"placement": None}, id="a-dependency-that-follows-another-binding"),
        pytest.param({"schedulerName": "theirs"}, id="another-scheduler"),
        pytest.param({"suspension": {"scheduling": True}}, id="suspended"),
    ],
)
def test_an_unclaimed_binding_that_is_not_assigned_to_this_scheduler_is_not_counted(
    harness: UnplacedHarness, caplog: pytest.LogCaptureFixture, binding: dict[str, Any]
) -> None:
    caplog.set_level(logging.DEBUG, logger="karmada_pyscheduler")
    harness.put(metadata={"labels": {}}, **binding)
    assert harness.unplaced.unclaimed() == 0
    assert not caplog.records


def test_a_deleted_unclaimed_binding_is_not_counted(harness: UnplacedHarness) -> None:
    harness.put(metadata={"labels": {}})
    harness.bindings.remove(WEB, 100)
    assert harness.unplaced.unclaimed() == 0


def test_unplaced_bindings_are_not_exposed_before_the_process_leads(harness: UnplacedHarness) -> None:
    harness.put(condition=failed())
    harness.put("free", metadata={"labels": {}})
    metrics = Metrics()
    before = metrics.exposition().decode()
    assert "karmada_scheduler_unplaced_bindings{" not in before
    assert "karmada_scheduler_unclaimed_bindings 0.0" in before
    metrics.scheduling.expose_unplaced(harness.unplaced.report, unclaimed=harness.unplaced.unclaimed)
    after = metrics.exposition().decode()
    assert 'karmada_scheduler_unplaced_bindings{reason="NoClusterFit"} 1.0' in after
    assert f'karmada_scheduler_unplaced_binding_age_seconds{{reason="NoClusterFit"}} {HOUR}' in after
    assert 'karmada_scheduler_unplaced_bindings{reason="gated"} 0.0' in after
    assert "karmada_scheduler_unclaimed_bindings 1.0" in after
