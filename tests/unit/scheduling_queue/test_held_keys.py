"""Held keys in both queues: they come last, and in a line one waits behind the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada_pyscheduler.scheduling_queue import held_keys
from karmada_pyscheduler.scheduling_queue.held_keys import HeldKeys
from karmada_pyscheduler.scheduling_queue.priority_queue import PrioritySchedulingQueue
from karmada_pyscheduler.scheduling_queue.queue import BACKOFF, KeyState, SchedulingQueue
from karmada_pyscheduler.scheduling_queue.work_queue import WorkQueue
from karmada_scheduler.config.options import RetryLimits

LINE = "a budget"


class Harness:
    """A queue and its clock."""

    def __init__(self, make: Callable[[Callable[[], float]], SchedulingQueue[str]]) -> None:
        self.now = 1000.0
        self.queue = make(lambda: self.now)

    def pop(self) -> str | None:
        item = self.queue.pop()
        return None if item is None else item[0]

    def hold(self, key: str, delay: float, *, line: str | None = LINE, priority: int = 0) -> None:
        """Decide about a key, which is held."""
        if self.queue.state_of(key).state != "processing":
            self.queue.add(key, priority)
            assert self.pop() == key
        self.queue.hold(key, delay, line=line, priority=priority)
        self.queue.done(key)

    def decide(self, key: str) -> None:
        """Take a key, whose decision is let through."""
        assert self.pop() == key
        self.queue.release(key)
        self.queue.done(key)


@pytest.fixture(
    params=[
        lambda clock: WorkQueue[str](limits=RetryLimits(), clock=clock),
        lambda clock: PrioritySchedulingQueue[str](clock=clock),
    ],
    ids=["work queue", "priority queue"],
)
def harness(request: Any) -> Harness:
    return Harness(request.param)


def test_a_held_key_is_due_after_its_delay(harness: Harness) -> None:
    harness.hold("a", 20)
    assert harness.queue.seconds_to_next() == 20
    assert harness.queue.state_of("a") == KeyState(BACKOFF, 20)
    assert (harness.queue.delayed, len(harness.queue), harness.queue.holds("a")) == (1, 0, True)
    assert harness.pop() is None
    harness.now += 20
    assert harness.queue.seconds_to_next() == 0
    harness.decide("a")
    assert (harness.queue.seconds_to_next(), harness.queue.delayed, harness.queue.holds("a")) == (
        None,
        0,
        False,
    )


def test_of_a_line_only_the_first_key_is_tried_until_it_is_let_through(harness: Harness) -> None:
    for key in "abc":
        harness.hold(key, 20)
    harness.now += 20
    assert harness.pop() == "a"
    assert harness.pop() is None
    harness.queue.hold("a", 30, line=LINE)
    harness.queue.done("a")
    assert harness.pop() is None
    assert harness.queue.seconds_to_next() == 30
    harness.now += 30
    harness.decide("a")
    harness.decide("b")
    harness.decide("c")
    assert harness.pop() is None


def test_keys_of_different_lines_and_without_one_do_not_wait_for_each_other(harness: Harness) -> None:
    harness.hold("a", 20, line="one")
    harness.hold("b", 20, line="other")
    harness.hold("c", 20, line=None)
    harness.hold("d", 20, line=None)
    harness.now += 20
    assert [harness.pop() for _ in range(5)] == ["a", "b", "c", "d", None]


def test_the_highest_priority_is_the_first_of_a_line(harness: Harness) -> None:
    harness.hold("low", 20)
    harness.hold("high", 25, priority=7)
    harness.now += 20
    assert harness.pop() is None
    harness.now += 5
    harness.decide("high")
    harness.decide("low")


def test_a_key_that_is_held_again_keeps_its_place(harness: Harness) -> None:
    for key in "ab":
        harness.hold(key, 20)
    harness.hold("a", 21)  # an event has let it be decided
    harness.now += 21
    harness.decide("a")
    harness.decide("b")


def test_a_key_that_was_let_through_and_is_held_again_comes_last(harness: Harness) -> None:
    for key in "ab":
        harness.hold(key, 20)
    harness.queue.add("a")
    harness.decide("a")
    harness.hold("a", 20)
    harness.now += 20
    harness.decide("b")
    harness.decide("a")


def test_a_key_that_waits_for_something_else_leaves_its_line(harness: Harness) -> None:
    for key in "ab":
        harness.hold(key, 20)
    harness.hold("a", 40, line="another")
    harness.now += 20
    harness.decide("b")
    assert harness.queue.seconds_to_next() == 20


def test_the_next_key_of_a_line_is_due_when_the_first_one_is_not_needed_any_more(harness: Harness) -> None:
    harness.hold("a", 50)
    harness.hold("b", 20)
    harness.queue.release("a")
    assert harness.queue.seconds_to_next() == 20


def test_due_keys_come_first_and_a_held_one_each_second(harness: Harness) -> None:
    for key in ("a", "b", "c"):
        harness.hold(key, 20, line=None)
    harness.now += 20
    for number in range(50):
        harness.queue.add(f"new {number}")
    seen: list[str | None] = []
    for _ in range(25):
        seen.append(harness.pop())
        harness.now += 0.1
    assert [key for key in seen if key and not key.startswith("new")] == []
    while (popped := harness.pop()) is not None:
        seen.append(popped)
        harness.now += 0.1
    assert sorted(key for key in seen if key and not key.startswith("new")) == ["a", "b", "c"]
    assert len(seen) == 53
    held = [seen.index(key) for key in ("a", "b", "c")]
    assert held[0] >= 50  # it was added to the end of the queue, not in front of it


def test_an_event_about_a_held_key_lets_it_be_decided_at_once_and_once(harness: Harness) -> None:
    harness.hold("a", 20)
    harness.queue.add("a")
    harness.decide("a")
    harness.now += 20
    assert harness.pop() is None


def test_a_key_that_is_due_by_an_event_is_not_taken_twice(harness: Harness) -> None:
    harness.hold("a", 20)
    harness.now += 20
    harness.queue.add("a")
    assert [harness.pop(), harness.pop()] == ["a", None]


@pytest.mark.parametrize(("newer", "order"), [(9, ["held", "other"]), (1, ["other", "held"])])
def test_the_turn_of_a_held_key_leaves_the_priority_of_a_later_event(newer: int, order: list[str]) -> None:
    harness = Harness(lambda clock: PrioritySchedulingQueue[str](clock=clock))
    harness.hold("held", 20, priority=3)
    harness.queue.add("other", 5)
    harness.queue.add("held", newer)
    harness.now += 20 + held_keys.BUSY_SECONDS
    assert [harness.pop(), harness.pop(), harness.pop()] == [*order, None]


def test_a_held_key_that_no_event_has_added_has_the_priority_with_which_it_was_held() -> None:
    harness = Harness(lambda clock: PrioritySchedulingQueue[str](clock=clock))
    harness.hold("held", 20, priority=7)
    harness.now += 20
    harness.queue.add("other", 5)
    harness.now += held_keys.BUSY_SECONDS
    assert [harness.pop(), harness.pop()] == ["held", "other"]


async def test_the_consumer_is_notified_when_the_turn_of_a_key_comes(harness: Harness) -> None:
    taken = asyncio.create_task(harness.queue.get())
    await asyncio.sleep(0)
    harness.queue.hold("a", 0.0)
    assert (await taken)[0] == "a"
    taken = asyncio.create_task(harness.queue.get())
    harness.queue.hold("b", 0.0, line=LINE)
    harness.queue.hold("c", 0.0, line=LINE)
    assert (await taken)[0] == "b"
    taken = asyncio.create_task(harness.queue.get())
    await asyncio.sleep(0)
    harness.queue.release("b")
    assert (await taken)[0] == "c"


def test_places_that_do_not_count_any_more_need_bounded_memory() -> None:
    held = HeldKeys[str]()
    held.hold("first", 1e9, line=LINE, priority=9)
    for number in range(1000):
        held.hold("other", float(number), line=LINE, priority=0)
        held.release("other")
    assert sum(map(len, held._lines.values())) <= held_keys._KEPT_OUTDATED + 4
    assert len(held) == 1


KEYS = st.sampled_from("abcdef")
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("hold"), KEYS, st.integers(0, 5), st.sampled_from((None, "x", "y")), st.integers(0, 2)
        ),
        st.tuples(st.just("release"), KEYS),
        st.tuples(st.just("suspend"), KEYS),
        st.tuples(st.just("take"), st.integers(0, 3)),
    ),
    max_size=60,
)


@given(STEPS)
def test_the_first_due_key_of_any_line_is_taken(steps: list[tuple[Any, ...]]) -> None:
    """The heaps agree with a list that is searched from beginning to end."""
    held, now, number = HeldKeys[str](), 0.0, 0
    known: dict[str, list[Any]] = {}  # key to line, minus priority, number, due
    for kind, *rest in steps:
        if kind == "hold":
            key, delay, line, priority = rest
            held.hold(key, now + delay, line=line, priority=priority)
            if key in known and known[key][:2] == [line or key, -priority]:
                known[key][3] = now + delay
            else:
                known[key] = [line or key, -priority, number, now + delay]
                number += 1
        elif kind == "take":
            now += rest[0]
            firsts: dict[str, tuple[Any, str]] = {}
            for key, (line, *_, due) in sorted(known.items(), key=lambda item: item[1][1:3]):
                firsts.setdefault(line, (due, key))
            due = sorted(each for each in firsts.values() if each[0] is not None and each[0] <= now)
            taken = held.take(now, is_idle=True)
            assert (taken is not None) == bool(due)
            if taken is not None:
                assert (known[taken[0]][3], taken[0]) in due
                assert known[taken[0]][3] == due[0][0]
                assert taken[1] == -known[taken[0]][1]
                known[taken[0]][3] = None
        elif kind == "release":
            held.release(rest[0])
            known.pop(rest[0], None)
        else:
            held.suspend(rest[0])
            if rest[0] in known:
                known[rest[0]][3] = None
        assert len(held) == len(known)
