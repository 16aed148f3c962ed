"""What the laws about answers require, and what they excuse; ``test_laws`` has a past that breaks each alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.core.available_replicas import NO_OPINION
from tools.apiserver_model import Request, Write
from tools.simulation.actions import placement
from tools.simulation.bindings import new_binding
from tools.simulation.capacity_law import CapacityLaw
from tools.simulation.environment import START
from tools.simulation.estimate_law import EstimateLaw
from tools.simulation.estimators import EstimatorCall, EstimatorCalls
from tools.simulation.network import Sent
from tools.simulation.plan import Plan
from tools.simulation.plugin_kit import Call
from tools.simulation.retry_law import RetryLaw
from tools.simulation.run import Run

KEY = BindingKey("ResourceBinding", "default", "b")


def retried(
    at: float | None, *, leads_since: float = 0.0, more: Callable[[RetryLaw], object] = lambda _: None
) -> list[str]:
    """Return the laws that are broken by an attempt that was to be made again at 15."""
    broken: list[str] = []
    law = RetryLaw(lambda name, _: broken.append(name))
    more(law)
    calls = [Call(10.0, KEY), Call(10.0, KEY, 7.0), Call(10.0, KEY, 5.0)]
    if at is not None:
        calls += [Call(at, KEY)]
    law.check("x", calls, leads_since=leads_since, end=100.0)
    return broken


def test_an_attempt_is_to_be_made_again_after_the_shortest_time_that_a_plugin_asked_for() -> None:
    assert not retried(15.1)
    assert retried(14.0) == ["in time"]
    assert retried(17.0) == ["in time"]
    assert retried(None) == ["in time"]


def test_an_attempt_may_be_earlier_after_a_change_and_is_not_missed_where_nobody_leads() -> None:
    assert not retried(12.0, more=lambda law: law.changed(KEY, 11.0))
    assert not retried(12.0, more=lambda law: law.changed(None, 11.0))
    assert retried(12.0, more=lambda law: law.changed(KEY, 13.0)) == ["in time"]
    assert not retried(None, leads_since=11.0)
    assert not retried(None, more=lambda law: law.failed("x", 10.1))
    assert retried(None, more=lambda law: law.failed("another", 10.1)) == ["in time"]


class CapacityPast:
    """Bindings with replicas of one CPU, and a cluster with nine."""

    def __init__(self) -> None:
        self.broken: list[str] = []
        self.law = CapacityLaw(300.0, lambda name, _: self.broken.append(name))
        summary = {"resourceSummary": {"allocatable": {"cpu": "9"}}}
        cluster = orjson.dumps({"metadata": {}, "spec": {}, "status": summary})
        self.law.on_cluster(Write(0, 1, START, "", "Cluster", ("", "m0"), "", None, cluster, None, "", b""))

    def places(
        self, name: str, replicas: int, at: float, *, strategy: str = "dynamic", by: str = "x"
    ) -> None:
        before = self.manifest(name, replicas, strategy)
        after = self.manifest(name, replicas, strategy, {"clusters": [{"name": "m0", "replicas": replicas}]})
        sent = Sent(0, by, at, "PATCH resourcebindings", Request("PATCH", "/", {}, b"", ""))
        self.law.check(self.write(name, before, after), sent)
        self.law.on_response(sent, at + 0.1, after)

    def changes(self, name: str, found: dict[str, Any]) -> None:
        self.law.on_foreign_write(self.write(name, found, found))

    @staticmethod
    def manifest(
        name: str, replicas: int, strategy: str = "dynamic", spec: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        found = new_binding(name, replicas, placement(strategy), cpu="1")
        found["metadata"]["uid"] = name
        found["spec"].update(spec or {})
        return found

    @staticmethod
    def write(name: str, before: dict[str, Any], after: dict[str, Any]) -> Write:
        raw = orjson.dumps(before), orjson.dumps(after)
        return Write(0, 9, START, "", "ResourceBinding", ("default", name), "", *raw, None, "", b"")


def test_what_was_placed_a_moment_before_counts_as_taken() -> None:
    past = CapacityPast()
    past.places("a", 6, 10.0)
    past.places("b", 3, 20.0)
    assert not past.broken
    past.places("c", 1, 30.0)
    assert past.broken == ["no overcommit"]


def test_a_placement_counts_until_it_is_reported_or_expires_and_for_its_own_process() -> None:
    on_m0 = {"clusters": [{"name": "m0", "replicas": 6}]}
    reported = CapacityPast.manifest("a", 6, spec=on_m0)
    reported["status"] = {"aggregatedStatus": [{"clusterName": "m0", "health": "Healthy"}]}
    grown = CapacityPast.manifest("a", 8, spec=on_m0)
    for at, by, found, broken in (
        (20.0, "x", None, ["no overcommit"]),
        (20.0, "x", grown, ["no overcommit"]),
        (20.0, "x", reported, []),
        (20.0, "y", None, []),
        (310.0, "x", None, []),
    ):
        past = CapacityPast()
        past.places("a", 6, 10.0)
        if found is not None:
            past.changes("a", found)
        past.places("b", 6, at, by=by)
        assert past.broken == broken


def test_replicas_that_are_not_divided_by_capacity_do_not_count() -> None:
    past = CapacityPast()
    past.places("a", 6, 10.0, strategy="duplicated")
    past.places("b", 6, 20.0)
    past.places("c", 9, 30.0, strategy="duplicated")
    assert not past.broken


def test_a_late_or_failed_call_lets_the_resource_summary_count_and_an_old_response_does_not_count() -> None:
    law = EstimateLaw(Run(Plan(seed="1")), None, None, lambda *_: None)  # type: ignore[arg-type]
    for call, possible in (
        (EstimatorCall(19.0, 19.1, 7), {7}),
        (EstimatorCall(17.0, 19.0, 7), {7, NO_OPINION}),
        (EstimatorCall(17.0), {NO_OPINION}),
        (EstimatorCall(19.0, 19.1), {NO_OPINION}),
        (EstimatorCall(1.0, 1.1, 7), {NO_OPINION}),
        (EstimatorCall(21.0, 21.1, 7), {NO_OPINION}),
    ):
        assert law._possible(EstimatorCalls({"m0": [call]}), "m0", 20.0) == possible
