"""The ledger of StrictPriority: whatever happens in whatever order, the capacity is whose it would be if it were shared afresh."""

from __future__ import annotations

from random import Random

import pytest

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.testing import FakeHandle, cluster, make, snapshot
from karmada_scheduler_plugins._capacity_ledger import MOST_ENQUEUED
from karmada_scheduler_plugins._held_capacity import EqualReplicas, Waiting, fit, places, rank_of, request_of
from karmada_scheduler_plugins.strict_priority import StrictPriority
from tests.unit.plugins.waiting_fleet import job

NAMES = ("m1", "m2", "m3")
CPU = 100


class Ledgers:
    """A ledger, clusters, bindings, and what was decided about them."""

    def __init__(self, random: Random, **args: int) -> None:
        self.random, self.free = random, dict.fromkeys(NAMES, 0)
        self.decided = dict[BindingKey, tuple[dict[str, int], Binding]]()
        self.jobs = [self._job(number) for number in range(12)]
        self.handle = FakeHandle()
        self.ledger = make(StrictPriority, args, handle=self.handle)._ledger
        self.report()

    def _job(self, number: int) -> Binding:
        return job(
            f"j{number}",
            1,
            self.random.choice((0, 0, 5, 10)),
            cpu=self.random.choice((1, 2, 5)),
            created=number,
        ).build()

    def report(self) -> None:
        self.handle.show(
            snapshot(
                *(
                    cluster(name).capacity(cpu=CPU).allocated({"cpu": CPU - free})
                    for name, free in self.free.items()
                )
            )
        )

    def step(self) -> None:
        random, each = self.random, self.random.choice(self.jobs)
        match random.choice(
            ("wait", "wait", "wait", "report", "report", "end", "decide", "undo", "reported", "pass")
        ):
            case "wait" if each.key not in self.decided:
                names = frozenset(random.sample(NAMES, random.randint(1, 3)))
                chosen = frozenset(random.sample(sorted(names), 1)) if random.random() < 0.3 else None
                self.handle.enqueued = [key for key in self.handle.enqueued if key != each.key]
                waiting = Waiting(
                    each,
                    rank_of(each),
                    request_of(each, sets=False),
                    random.randint(1, 40),
                    names,
                    chosen,
                    self.handle.time,
                )
                self.ledger.add(waiting, names)
            case "report":
                self.free[random.choice(NAMES)] = random.choice((0, 1, 7, 30, 60))
                self.report()
            case "end":
                self.ledger.remove(each.key)
            case "decide" if each.key not in self.decided:
                added = {random.choice(NAMES): random.randint(1, 5)}
                self.ledger.decide(each, added, request_of(each, sets=False))
                if self.ledger.decided.get(each.key):
                    self.decided[each.key] = added, each
            case "undo" if each.key in self.decided:
                self.ledger.undo(each.key)
                del self.decided[each.key]
            case "pass":
                self.handle.time += random.choice((1, 20, 200))
                self.ledger.tick()
        self.decided = {key: found for key, found in self.decided.items() if self.ledger.decided.get(key)}

    def check(self) -> None:
        """Share the capacity of each cluster afresh, and compare."""
        expected = dict[BindingKey, dict[str, int]]()
        for name in NAMES:
            left = {"cpu": self.free[name] * 1000, "pods": 1_000_000}
            for added, each in self.decided.values():
                for resource, amount in request_of(each, sets=False):
                    left[resource] -= amount * added.get(name, 0)
            for waiting in sorted(self.ledger.waiting.values(), key=lambda found: found.rank):
                count = min(waiting.missing, fit(left, waiting.request)) if name in waiting.clusters else 0
                if count:
                    expected.setdefault(waiting.binding.key, {})[name] = count
                if waiting.holds and waiting.counts(name):
                    for resource, amount in waiting.request:
                        left[resource] -= amount * count
            assert all(amount >= 0 for amount in left.values()) or self.decided
        for key, waiting in self.ledger.waiting.items():
            assert waiting.found == expected.get(key, {})
            assert waiting.total == sum(
                count for name, count in waiting.found.items() if waiting.counts(name)
            )
            pauses = self.handle.time < waiting.not_before
            assert key in self.handle.enqueued or waiting.total < waiting.missing or pauses


@pytest.mark.parametrize("seed", range(12))
def test_the_capacity_is_shared_as_if_afresh_after_any_change(seed: int) -> None:
    random = Random(seed)
    args = {"holdFrom": (1, 7), "holdSeconds": (0, 50, 500), "maxHeldPercent": (0, 5, 50)}
    ledgers = Ledgers(random, **{name: random.choice(values) for name, values in args.items()})
    for _ in range(120):
        ledgers.step()
        ledgers.check()
    assert len(ledgers.jobs) < MOST_ENQUEUED


def test_a_replica_takes_as_many_places_of_a_smaller_one_as_it_is_larger_and_at_least_one() -> None:
    large, small = (("cpu", 5000), ("pods", 1000)), (("cpu", 2000), ("pods", 1000))
    assert places(EqualReplicas(large, 2), small) == 6
    assert places(EqualReplicas(small, 2), large) == 2


def test_a_decision_of_before_the_first_waits_is_deducted() -> None:
    ledgers = Ledgers(Random(0))
    ledgers.ledger.decide(ledgers.jobs[0], {"m1": 3}, request_of(ledgers.jobs[0], sets=False))
    assert ledgers.ledger.named == {"m1"}
    ledgers.handle.time += 60
    ledgers.ledger.tick()
    assert not ledgers.ledger.decided
    assert not ledgers.ledger.named
