"""What has no place: why, since when, and what of it survives restarts and bad days."""

import logging
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from karmada_scheduler import logs
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.framework.runtime.waiting_bindings import PendingPermit, WaitingBindings
from karmada_scheduler.metrics.metrics import Metrics
from karmada_scheduler.scheduler.unplaced import REASONS, UnplacedBindings
from tests import manifests

CREATED = "2026-01-01T00:00:00Z"
FAILED = "2026-01-01T01:00:00Z"
NOW = 1767225600.0 + 2 * 3600
"""Two hours after the creation, one after the failure."""

HOUR = 3600.0
WEB = BindingKey("ResourceBinding", "demo", "web")


class World:
    """A binding cache that is followed, as by a process that has just begun; begun anew it is a restart."""

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
        """Bring the next version of a binding."""
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
def world() -> World:
    return World()


def failed(reason: object = "NoClusterFit", since: object = FAILED) -> dict[str, Any]:
    return {"type": "Scheduled", "status": "False", "reason": reason, "lastTransitionTime": since}


SUCCEEDED = {"type": "Scheduled", "status": "True", "reason": "Success", "lastTransitionTime": FAILED}
PLACED = [{"name": "m1", "replicas": 2}]


@pytest.mark.parametrize("reason", ["NoClusterFit", "Unschedulable", "SchedulerError", "QuotaExceeded"])
def test_a_failed_binding_counts_under_the_reason_of_its_condition_since_its_transition(
    world: World, reason: str
) -> None:
    world.put(condition=failed(reason))
    assert world.counts() == {reason: 1}
    assert world.age(reason) == HOUR


def test_a_binding_that_was_never_decided_is_pending_since_its_creation(world: World) -> None:
    world.put()
    assert world.counts() == {"pending": 1}
    assert world.age("pending") == 2 * HOUR


def test_every_reason_is_reported_with_an_age_of_zero_where_there_is_none(world: World) -> None:
    assert world.unplaced.report() == dict.fromkeys(REASONS, (0, 0.0))


def test_the_oldest_of_a_reason_counts(world: World) -> None:
    world.put("a", condition=failed())
    world.put("b", condition=failed(since="2026-01-01T00:30:00Z"))
    world.put("c", condition=failed(since="2026-01-01T01:30:00Z"))
    assert world.unplaced.report()["NoClusterFit"] == (3, 1.5 * HOUR)


def test_a_binding_that_keeps_its_clusters_because_the_last_decision_failed_counts(world: World) -> None:
    world.put(condition=failed("Unschedulable"), clusters=PLACED)
    assert world.counts() == {"Unschedulable": 1}


@pytest.mark.parametrize(
    "binding",
    [
        pytest.param({"condition": SUCCEEDED, "clusters": PLACED}, id="placed"),
        pytest.param({"clusters": PLACED}, id="placed-and-not-told-yet"),
        pytest.param({"condition": SUCCEEDED}, id="scheduled-with-nothing-to-place"),
        pytest.param({"condition": failed(), "placement": None}, id="no-placement"),
        pytest.param({"condition": failed(), "schedulerName": "theirs"}, id="another-scheduler"),
        pytest.param({"condition": failed(), "suspension": {"scheduling": True}}, id="suspended"),
        pytest.param({"condition": failed(), "metadata": {"deletionTimestamp": FAILED}}, id="being-deleted"),
        pytest.param({"condition": failed(), "metadata": {"labels": {}}}, id="no-policy"),
    ],
)
def test_a_binding_that_has_a_place_or_asks_us_for_none_does_not_count(
    world: World, binding: dict[str, Any]
) -> None:
    world.put(**binding)
    assert world.counts() == {}
    world.put(condition=failed())
    world.put(**binding)
    assert world.counts() == {}, "nor one that has come to that"


def test_a_binding_that_lost_its_clusters_is_pending_from_then_on(world: World) -> None:
    world.put(condition=SUCCEEDED, clusters=PLACED)
    world.now += 5
    world.put(condition=SUCCEEDED, generation=2)
    world.now += 7
    world.put(condition=SUCCEEDED, generation=2, metadata={"annotations": {"a": "b"}})
    assert world.counts() == {"pending": 1}
    assert world.age("pending") == 7


def test_a_binding_that_is_resumed_is_pending_from_then_on(world: World) -> None:
    world.put(suspension={"scheduling": True})
    world.put(generation=2)
    world.now += 3
    assert world.age("pending") == 3


def test_a_binding_that_is_deleted_is_gone_and_one_by_its_name_counts_from_its_own_creation(
    world: World,
) -> None:
    world.put(condition=failed())
    world.bindings.remove(WEB, 100)
    assert world.counts() == {}
    world._version = 100
    world.put(metadata={"uid": "another", "creationTimestamp": "2026-01-01T01:59:00Z"})
    assert world.unplaced.report()["pending"] == (1, 60)


def test_a_binding_that_is_replaced_unseen_counts_from_its_own_creation(world: World) -> None:
    world.put()
    world.put(metadata={"uid": "another", "creationTimestamp": "2026-01-01T01:59:00Z"})
    assert world.age("pending") == 60


def test_a_restart_changes_no_count_and_no_age() -> None:
    before, after = World(), World()
    before.put(condition=SUCCEEDED, clusters=PLACED)
    before.put("new")
    for world in (before, after):
        world.put(condition=failed(), clusters=PLACED)
        world.put("new")
        world.put("gone")
        world.bindings.remove(BindingKey("ResourceBinding", "demo", "gone"), 100)
    assert before.unplaced.report() == after.unplaced.report()


@pytest.mark.parametrize("since", [None, "", "yesterday", 7, {}, "2026-13-01T00:00:00Z"])
def test_a_condition_whose_time_cannot_be_read_counts_from_when_it_was_seen(
    world: World, since: object
) -> None:
    world.put(condition=failed(since=since))
    world.now += 4
    world.put(condition=failed(since=since), generation=2)
    assert world.unplaced.report()["NoClusterFit"] == (1, 4)


@pytest.mark.parametrize("created", [None, "", "yesterday", 7])
def test_a_creation_that_cannot_be_read_keeps_no_binding_out(world: World, created: object) -> None:
    world.put(metadata={"creationTimestamp": created})
    world.now += 4
    assert world.unplaced.report()["pending"] == (1, 4)


@pytest.mark.parametrize("reason", ["BindingFailedScheduling", "Success", "", None, 7, [], {}])
def test_a_reason_that_is_not_ours_is_other(world: World, reason: object) -> None:
    world.put(condition=failed(reason))
    assert world.counts() == {"other": 1}


def test_a_condition_without_a_status_is_a_failure(world: World) -> None:
    world.put(condition={"type": "Scheduled"})
    assert world.counts() == {"other": 1}


def test_a_clock_that_goes_back_makes_no_age_negative(world: World) -> None:
    world.put(condition=failed())
    world.put("new")
    world.now = 0
    assert world.unplaced.report()["NoClusterFit"] == (1, 0)
    assert world.unplaced.report()["pending"] == (1, 0)


async def test_what_waits_at_permit_or_is_gated_counts_as_that_only_while_it_has_no_place(
    world: World,
) -> None:
    for name in ("web", "gated", "other"):
        world.put(name)
    world.put("placed", condition=SUCCEEDED, clusters=PLACED)
    for name in ("web", "placed"):
        key = WEB._replace(name=name)
        found = world.bindings.get(key)
        assert found is not None
        world.waiting._waiting[key] = PendingPermit(found, frozenset(), {"Gate": 60})
    world.gated |= {WEB._replace(name="gated"), WEB._replace(name="not there any more")}
    assert world.counts() == {"waiting": 1, "gated": 1, "pending": 1}
    assert world.age("waiting") == world.age("gated") == 2 * HOUR
    world.waiting._waiting.clear()
    world.gated.clear()
    assert world.counts() == {"pending": 3}


def test_a_report_in_another_thread_is_not_disturbed_by_changes(world: World) -> None:
    for number in range(2000):
        world.put(f"web-{number}")
    reports: list[Mapping[str, tuple[int, float]]] = []
    scrape = threading.Thread(target=lambda: reports.extend(world.unplaced.report() for _ in range(50)))
    scrape.start()
    number = 0
    while scrape.is_alive():
        number += 1
        world.put(f"web-{number % 4000}", clusters=PLACED if number % 2 else [])
        key = WEB._replace(name=f"web-{number % 4000}")
        (world.gated.discard if number % 3 else world.gated.add)(key)
    assert len(reports) == 50


def test_an_unclaimed_binding_is_counted_and_named_once_at_v2(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logs.V2, logger="karmada_scheduler")
    world.put(metadata={"labels": {}})
    world.put(metadata={"labels": {manifests.POLICY_LABEL: ""}}, generation=2)
    assert world.unplaced.unclaimed() == 1
    assert [(each.levelno, each.message.partition(",")[0]) for each in caplog.records] == [
        (logs.V2, "ResourceBinding(demo/web) is left alone: no policy claims it")
    ]
    world.put()
    assert world.unplaced.unclaimed() == 0
    assert world.counts() == {"pending": 1}


@pytest.mark.parametrize(
    "binding",
    [
        pytest.param({"placement": None}, id="a-dependency-that-follows-another-binding"),
        pytest.param({"schedulerName": "theirs"}, id="another-scheduler"),
        pytest.param({"suspension": {"scheduling": True}}, id="suspended"),
    ],
)
def test_an_unclaimed_binding_that_is_no_business_of_ours_is_not_counted(
    world: World, caplog: pytest.LogCaptureFixture, binding: dict[str, Any]
) -> None:
    caplog.set_level(logging.DEBUG, logger="karmada_scheduler")
    world.put(metadata={"labels": {}}, **binding)
    assert world.unplaced.unclaimed() == 0
    assert not caplog.records


def test_an_unclaimed_binding_that_is_deleted_is_not_counted_any_more(world: World) -> None:
    world.put(metadata={"labels": {}})
    world.bindings.remove(WEB, 100)
    assert world.unplaced.unclaimed() == 0


def test_nothing_is_exposed_before_the_process_leads(world: World) -> None:
    world.put(condition=failed())
    world.put("free", metadata={"labels": {}})
    metrics = Metrics()
    before = metrics.exposition().decode()
    assert "karmada_scheduler_unplaced_bindings{" not in before
    assert "karmada_scheduler_unclaimed_bindings 0.0" in before
    metrics.watch_unplaced(world.unplaced.report, unclaimed=world.unplaced.unclaimed)
    after = metrics.exposition().decode()
    assert 'karmada_scheduler_unplaced_bindings{reason="NoClusterFit"} 1.0' in after
    assert f'karmada_scheduler_unplaced_binding_age_seconds{{reason="NoClusterFit"}} {HOUR}' in after
    assert 'karmada_scheduler_unplaced_bindings{reason="gated"} 0.0' in after
    assert "karmada_scheduler_unclaimed_bindings 1.0" in after
