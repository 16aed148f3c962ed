"""The priority queue: who comes first, who waits where, and what frees whom."""

import pytest

from karmada_scheduler.scheduling_queue.priority_queue import PrioritySchedulingQueue


class World:
    """A queue and its clock."""

    def __init__(self) -> None:
        self.now = 50.0
        self.queue: PrioritySchedulingQueue[str] = PrioritySchedulingQueue(clock=lambda: self.now)

    def pop(self) -> str | None:
        item = self.queue.pop()
        return None if item is None else item[0]

    def fail(self, key: str, *, unschedulable: bool = False) -> None:
        """Take a key, let it fail and return it."""
        assert self.pop() == key
        self.queue.add_rate_limited(key, unschedulable=unschedulable)
        self.queue.done(key)

    def seconds_until_due(self) -> float:
        """Advance to when a key may become due, again and again, until one does; return how long it took."""
        start = self.now
        while (wait := self.queue.seconds_to_next()) != 0:
            assert wait is not None
            self.now += wait
        return self.now - start


@pytest.fixture
def world() -> World:
    return World()


def test_the_higher_priority_comes_first(world: World) -> None:
    for key, priority in (("low", -5), ("high", 100), ("none", 0)):
        world.queue.add(key, priority)
    assert [world.pop() for _ in range(4)] == ["high", "none", "low", None]


def test_among_equals_what_came_first_comes_first(world: World) -> None:
    for key in "cab":
        world.queue.add(key, 7)
        world.now += 0.1
    assert [world.pop() for _ in range(3)] == ["c", "a", "b"]


def test_a_key_that_is_due_is_not_queued_twice_and_takes_its_new_priority(world: World) -> None:
    world.queue.add("a", 1)
    world.queue.add("b", 2)
    world.queue.add("a", 3)
    assert len(world.queue) == 2
    assert [world.pop() for _ in range(3)] == ["a", "b", None]


def test_an_event_while_a_key_is_processed_brings_it_back_when_it_is_done(world: World) -> None:
    world.queue.add("a")
    world.pop()
    world.queue.add("a")
    assert world.pop() is None
    world.queue.done("a")
    assert world.pop() == "a"


@pytest.mark.parametrize(("failures", "pause"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (40, 10)])
def test_the_pause_doubles_from_one_second_to_ten(world: World, failures: int, pause: int) -> None:
    world.queue.add("a")
    for _ in range(failures):
        world.seconds_until_due()
        world.fail("a")
    assert world.seconds_until_due() == pause


def test_a_pause_ends_at_the_next_full_second(world: World) -> None:
    world.now += 0.3
    world.queue.add("a")
    world.fail("a")
    assert world.seconds_until_due() == pytest.approx(1.7)


def test_the_pause_counts_from_activation_so_a_long_wait_in_the_queue_uses_it_up(world: World) -> None:
    world.queue.add("a")
    world.now += 30
    world.fail("a")
    assert world.seconds_until_due() <= 1


def test_what_does_not_fit_waits_five_minutes_and_to_the_next_look(world: World) -> None:
    world.queue.add("a")
    world.fail("a", unschedulable=True)
    assert world.queue.pending() == {"active": 0, "backoff": 0, "unschedulable": 1}
    assert 300 < world.seconds_until_due() <= 330


@pytest.mark.parametrize("unschedulable", [False, True], ids=["backoff", "unschedulable"])
def test_an_event_frees_a_waiting_key_at_once_and_its_failures_are_forgotten(
    world: World, unschedulable: bool
) -> None:
    world.queue.add("a")
    world.fail("a", unschedulable=unschedulable)
    world.queue.add("a")
    assert world.queue.pending() == {"active": 1, "backoff": 0, "unschedulable": 0}
    world.fail("a")
    assert world.seconds_until_due() == 1


def test_an_event_during_processing_wins_over_the_failure(world: World) -> None:
    world.queue.add("a")
    world.pop()
    world.queue.add("a")
    world.queue.add_rate_limited("a", unschedulable=True)
    world.queue.done("a")
    assert world.queue.pending() == {"active": 1, "backoff": 0, "unschedulable": 0}


def test_of_finished_pauses_the_lower_priority_that_ended_does_not_wait_for_a_higher_that_did_not(
    world: World,
) -> None:
    world.queue.add("low", 0)
    world.fail("low")
    world.queue.add("high", 9)
    world.fail("high")
    world.now += 1
    world.fail("high")
    assert world.pop() == "low"


def test_pauses_that_end_together_are_released_by_priority(world: World) -> None:
    for key, priority in (("low", 0), ("high", 9)):
        world.queue.add(key, priority)
        world.fail(key)
    world.now += 1
    assert [world.pop(), world.pop()] == ["high", "low"]


def test_one_flush_is_complete_before_a_key_is_handed_out_so_the_higher_priority_comes_first(
    world: World,
) -> None:
    """As Karmada 1.19 does; in 1.18 the worker may take the first that is released."""
    for key, priority in (("low", 0), ("high", 9)):
        world.now += 0.4
        world.queue.add(key, priority)
        world.fail(key)
    for key, priority in (("filler", 1), ("full", 5)):
        world.queue.add(key, priority)
        world.fail(key, unschedulable=True)
    world.now += 330
    assert [world.pop() for _ in range(4)] == ["high", "full", "filler", "low"]


def test_a_success_leaves_nothing_behind(world: World) -> None:
    world.queue.add("a")
    world.pop()
    world.queue.forget("a")
    world.queue.done("a")
    assert world.queue.pending() == {"active": 0, "backoff": 0, "unschedulable": 0}
    assert world.queue.seconds_to_next() is None
    assert world.queue.processing == 0


def test_a_key_says_how_long_it_was_due(world: World) -> None:
    world.queue.add("a")
    world.now += 2.5
    assert world.queue.pop() == ("a", 2.5)
