"""Each law of StrictPriority has a history that breaks it alone, and a similar one that breaks none."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest

from tests.fake_apiserver.objects import binding, cluster
from tools.simulation.environment import START
from tools.simulation.guard_history import Written
from tools.simulation.hold_laws import SOON_SECONDS, HoldLaws

Object = dict[str, Any]

WAITS = "not enough. Waits for capacity: {place} of 2 by priority; {held}{first}"
NOTHING = "no capacity is held for it"


class HoldPast:
    """A history that a test tells: clusters m1 and m2 with ten CPUs each, nine of which are taken."""

    def __init__(self, **args: Any) -> None:
        self.broken: list[str] = []
        self.laws = HoldLaws(args, lambda law, _: self.broken.append(law))
        self.stored: dict[str, Object] = {}
        for name in ("m1", "m2"):
            self.report(name, 9)
            self.create(f"on-{name}", 9, at=0.0)
            self.write(f"on-{name}", 0.0, targets={name: 9})
        self.broken.clear()

    def report(self, name: str, used: int, at: float = 0.0) -> None:
        found = cluster(name, cpu="10")
        found["status"]["resourceSummary"]["allocated"]["cpu"] = str(used)
        self.laws.on_cluster(at, name, found)

    def create(
        self, name: str, replicas: int, at: float, *, priority: int = 0, cpu: int = 1, single: bool = False
    ) -> None:
        placement: Object = (
            {"spreadConstraints": [{"spreadByField": "cluster", "maxGroups": 1}]} if single else {}
        )
        found = binding(name, replicas=replicas, placement=placement, requests={"cpu": str(cpu)})
        found["metadata"]["creationTimestamp"] = (START + timedelta(seconds=at)).isoformat()
        found["spec"]["schedulePriority"] = {"priority": priority}
        self._store(name, found, at)

    def delete(self, name: str, at: float) -> None:
        self._store(name, None, at)

    def write(
        self,
        name: str,
        at: float,
        *,
        targets: Mapping[str, int] | None = None,
        text: str = "",
        status: str = "False",
    ) -> None:
        """Let the scheduler write clusters or a condition."""
        found = deepcopy(self.stored[name])
        if targets is not None:
            found["spec"]["clusters"] = [{"name": each, "replicas": count} for each, count in targets.items()]
        if text:
            condition = {"type": "Scheduled", "status": status, "message": text}
            found["status"] = {"conditions": [condition], "schedulerObservedGeneration": 1}
        self._store(name, found, at, sent=at)

    def wait(self, name: str, at: float, held: str = NOTHING, first: str = "", place: str = "1st") -> None:
        self.write(name, at, text=WAITS.format(place=place, held=held, first=first))

    def _store(self, name: str, found: Object | None, at: float, sent: float | None = None) -> None:
        before = self.stored.get(name)
        self.laws.on_write(
            Written(at, ("ResourceBinding", "default", name), before, found, sent, "a" if sent else "")
        )
        if found is None:
            del self.stored[name]
        else:
            self.stored[name] = found


def waiting(*, single: bool = False, **args: Any) -> HoldPast:
    """Return a history in which ``high`` has waited for five replicas since 10 s, and ``low`` is new."""
    past = HoldPast(**args)
    past.create("high", 5, 9.0, priority=10, single=single)
    past.wait("high", 10.0)
    past.create("low", 1, 12.0)
    return past


def test_a_lower_rank_gets_capacity_for_which_a_better_one_waits() -> None:
    past = waiting()
    past.write("low", 13.0, targets={"m1": 1})
    past.laws.rest()
    assert past.broken == ["no inversion"]


@pytest.mark.parametrize(
    "args", [{"holdFrom": 11}, {"holdSeconds": 2}, {"bestEffortNamespaces": ["default"]}]
)
def test_who_holds_nothing_is_passed(args: Object) -> None:
    past = waiting(**args)
    past.write("low", 13.0, targets={"m1": 1})
    past.laws.rest()
    assert not past.broken


def test_two_that_are_placed_at_the_same_time_are_no_inversion() -> None:
    past = waiting()
    past.delete("on-m1", 12.5)
    past.create("other", 9, 12.5)
    past.write("low", 13.0, targets={"m2": 1})
    past.write("high", 13.1, targets={"m1": 5})
    past.laws.rest()
    assert not past.broken


def test_one_that_needs_one_cluster_keeps_one_of_them() -> None:
    past = waiting(single=True)
    past.write("low", 13.0, targets={"m1": 1})
    past.laws.rest()
    assert not past.broken
    past.create("low-2", 1, 14.0)
    past.write("low-2", 15.0, targets={"m2": 1})
    past.laws.rest()
    assert past.broken == ["no inversion"]


def test_what_is_too_small_for_a_replica_is_open() -> None:
    past = HoldPast()
    past.create("high", 5, 9.0, priority=10, cpu=2)
    past.wait("high", 10.0)
    past.create("low", 1, 12.0)
    past.write("low", 13.0, targets={"m1": 1})
    past.laws.rest()
    assert not past.broken


def lacking(reported: float, better: str = "") -> HoldPast:
    """Return a history in which ``mid`` lacks most of 15 CPUs, and ``low`` gets one of the 9 that m1 has not given."""
    past = HoldPast()
    past.delete("on-m1", 1.0)
    past.report("m1", 0, 1.0)
    past.create("mid", 5, 9.0, priority=1, cpu=3)
    past.wait("mid", 10.0)
    past.create("job", 1, 20.0, priority=10)
    past.write("job", 20.5, targets={"m1": 1})
    past.report("m1", 1, reported)
    past.create("low", 1, 45.0)
    if better:
        past.create("better", 4, 45.0, priority=10, cpu=4)
    if better == "waits":
        past.wait("better", 45.0)
    past.write("low", 46.0, targets={"m1": 1})
    return past


def test_part_of_a_place_for_who_waits_is_not_given_away() -> None:
    past = lacking(reported=21.0)
    past.laws.rest()
    assert past.broken == ["no inversion"]


def test_what_was_reported_just_now_may_count_twice() -> None:
    past = lacking(reported=35.0)
    past.laws.rest()
    assert not past.broken


@pytest.mark.parametrize("better", ["waits", "is decided"])
def test_what_a_still_better_rank_leaves_is_not_the_capacity_of_who_waits(better: str) -> None:
    past = lacking(21.0, better)
    past.laws.rest()
    assert not past.broken


def test_the_first_is_placed_soon_after_it_fits() -> None:
    past = waiting(retrySeconds=1)
    past.delete("on-m1", 20.0)
    past.report("m1", 0)
    for seconds in range(int(SOON_SECONDS) + 2):
        past.laws.look(20.0 + seconds)
    assert not past.broken
    past.laws.look(20.0 + SOON_SECONDS + 2)
    assert past.broken == ["progress"]


def test_nobody_waits_at_rest_that_fits_besides_all_holds() -> None:
    past = waiting()
    past.wait("low", 13.0)
    past.laws.rest()
    assert not past.broken  # what is free may be held
    past.create("mid", 1, 14.0, priority=20)
    past.wait("mid", 15.0)
    past.laws.rest()
    assert past.broken == ["progress"]


def test_low_priorities_keep_no_more_than_their_limit_from_others() -> None:
    past = HoldPast(maxHeldPercent=5)
    past.delete("on-m1", 1.0)
    past.report("m1", 0)
    for name, replicas in (("a", 12), ("b", 12)):
        past.create(name, replicas, 2.0, single=name == "a")
        past.wait(name, 3.0)
    past.create("c", 1, 4.0)
    past.wait("c", 5.0)
    past.laws.rest()
    assert not past.broken  # the first may hold twelve
    past.delete("on-m2", 6.0)
    past.report("m2", 0)
    past.delete("b", 6.0)
    past.laws.rest()
    assert past.broken == ["bounded hold"]


@pytest.mark.parametrize(
    ("held", "first", "broken"),
    [
        ("2 of 5 replicas are held on m1, m2 since 00:00 UTC", "", []),
        ("3 of 5 replicas are held on m1, m2 since 00:00 UTC", "", ["honest"]),
        (NOTHING, "; first is default/first", []),
        (NOTHING, "; first is default/low", ["honest"]),
        (NOTHING, "; first is default/nobody", ["honest"]),
    ],
)
def test_what_a_text_says_is_true(held: str, first: str, broken: list[str]) -> None:
    past = waiting()
    past.create("first", 5, 8.0, priority=100)
    past.wait("first", 13.0)
    past.wait("high", 14.0, held=held, first=first, place="2nd")
    assert past.broken == broken


def test_a_text_names_no_hold_that_is_older_than_allowed() -> None:
    past = waiting(holdSeconds=100)
    past.wait("high", 160.0, held="2 of 5 replicas are held on m1, m2 since 00:00 UTC")
    assert not past.broken
    past.wait("high", 170.0, held="1 of 5 replicas are held on m1 since 00:00 UTC")
    assert past.broken == ["bounded hold"]


def test_no_waiting_binding_is_called_scheduled() -> None:
    past = waiting()
    past.write("low", 13.0, targets={}, text="Binding has been scheduled successfully.", status="True")
    assert past.broken == ["honest"]


def test_the_texts_of_holds_that_can_end_are_written_again() -> None:
    for seconds, expected in ((100, 1), (0, 0)):
        past = waiting(holdSeconds=seconds)
        past.wait("high", 50.0, held="2 of 5 replicas are held on m1, m2 since 00:00 UTC")
        past.write("high", 51.0, targets={"m1": 1})
        assert [past.laws.rewritten_since(at) for at in (50.0, 50.5)] == [expected, 0]
