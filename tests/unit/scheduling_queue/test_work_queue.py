"""The work queue: order, de-duplication, retries."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from karmada_pyscheduler.metrics.families import Families
from karmada_pyscheduler.metrics.work_queues import WorkqueueMetrics
from karmada_pyscheduler.scheduling_queue.queue import MOST_COUNTED, KeyState
from karmada_pyscheduler.scheduling_queue.work_queue import WorkQueue
from karmada_scheduler.config.options import RetryLimits
from karmada_scheduler.rate_limit import TokenBucket


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(clock: Clock) -> WorkQueue[str]:
    return WorkQueue(limits=RetryLimits(), clock=clock)


def popped(queue: WorkQueue[str]) -> str | None:
    item = queue.pop()
    return None if item is None else item[0]


def test_keys_are_taken_in_the_order_in_which_they_were_added(queue: WorkQueue[str]) -> None:
    for key in "abc":
        queue.add(key)
    assert [popped(queue) for _ in range(4)] == ["a", "b", "c", None]


def test_a_queued_key_is_not_queued_twice(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("a")
    assert (popped(queue), popped(queue)) == ("a", None)


def test_due_keys_that_are_not_retained_are_dropped(queue: WorkQueue[str]) -> None:
    queue.add("busy")
    assert popped(queue) == "busy"
    for key in ("a", "b", "c", "busy"):
        queue.add(key)
    queue.retain(lambda key: key in "ac")
    queue.done("busy")
    assert [popped(queue) for _ in range(4)] == ["a", "c", "busy", None]
    assert not queue.holds("b")


def test_a_key_added_while_it_is_processed_is_due_when_it_is_done(queue: WorkQueue[str]) -> None:
    queue.add("a")
    assert popped(queue) == "a"
    queue.add("a")
    assert popped(queue) is None
    queue.done("a")
    assert popped(queue) == "a"


def test_a_key_is_held_while_it_waits_is_processed_or_is_delayed(queue: WorkQueue[str], clock: Clock) -> None:
    held = []
    for step in (
        lambda: queue.add("a"),
        queue.pop,
        lambda: queue.add_rate_limited("a"),
        lambda: queue.done("a"),
        lambda: setattr(clock, "now", clock.now + 1.0),
        queue.pop,
        lambda: queue.done("a"),
    ):
        step()
        held.append(queue.holds("a"))
    assert held == [True, True, True, True, True, True, False]


def test_a_key_that_is_done_without_a_new_event_is_not_due_again(queue: WorkQueue[str]) -> None:
    queue.add("a")
    popped(queue)
    queue.done("a")
    assert popped(queue) is None
    assert queue.processing == 0


def test_the_retry_delay_doubles_with_every_failure_up_to_the_limit(queue: WorkQueue[str]) -> None:
    delays = [queue.add_rate_limited("a") for _ in range(20)]
    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert delays[-1] == 1000.0


def test_forget_resets_the_backoff_of_a_key(queue: WorkQueue[str]) -> None:
    queue.add_rate_limited("a")
    queue.add_rate_limited("a")
    queue.forget("a")
    assert queue._requeues.get("a", 0) == 0
    assert queue.add_rate_limited("a") == 0.005


def test_a_failed_key_is_due_after_its_delay_and_not_before(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add_rate_limited("a")
    assert popped(queue) is None
    clock.now += 0.004
    assert popped(queue) is None
    clock.now += 0.002
    assert popped(queue) == "a"


def test_an_event_makes_a_failed_key_due_at_once(queue: WorkQueue[str]) -> None:
    for _ in range(10):
        queue.add_rate_limited("a")
    queue.add("a")
    assert popped(queue) == "a"


def test_a_key_without_a_delay_is_due_at_once(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 0)
    assert len(queue) == 1


def test_what_happens_to_keys_is_counted(clock: Clock) -> None:
    registry = CollectorRegistry()
    queue = WorkQueue[str](
        limits=RetryLimits(), clock=clock, metrics=WorkqueueMetrics(Families(registry)).of("q")
    )
    queue.add("a")
    queue.add("a")
    clock.now += 2
    queue.pop()
    clock.now += 3
    assert queue.unfinished() == [3]
    queue.add_rate_limited("a")
    queue.done("a")
    queue.done("a")
    names = ("adds_total", "retries_total", "queue_duration_seconds_sum", "work_duration_seconds_sum")
    labels = {"name": "q", "controller": "q"}
    assert [registry.get_sample_value(f"workqueue_{name}", labels) for name in names] == [1, 1, 2, 3]
    assert registry.get_sample_value("workqueue_work_duration_seconds_count", labels) == 1
    assert queue.unfinished() == []


def test_the_earlier_of_two_delays_of_a_key_counts(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add_after("a", 5)
    queue.add_after("a", 1)
    queue.add_after("a", 9)
    clock.now += 1
    assert popped(queue) == "a"
    queue.done("a")
    clock.now += 10
    assert popped(queue) is None


def test_the_time_to_the_next_key_follows_the_earliest_delay(queue: WorkQueue[str], clock: Clock) -> None:
    assert queue.seconds_to_next() is None
    queue.add_after("a", 3)
    clock.now += 1
    assert queue.seconds_to_next() == pytest.approx(2)
    clock.now += 1.75
    assert queue.seconds_to_next() == pytest.approx(0.25)
    queue.add("b")
    assert queue.seconds_to_next() == 0


def test_a_key_is_taken_with_the_seconds_that_it_waited(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add("a")
    clock.now += 1.5
    assert queue.pop() == ("a", 1.5)


def test_retries_of_all_keys_share_a_token_bucket(clock: Clock) -> None:
    queue: WorkQueue[str] = WorkQueue(limits=RetryLimits(qps=10, burst=2), clock=clock)
    assert [queue.add_rate_limited(key) for key in "abc"] == [0.005, 0.005, pytest.approx(0.1)]


def test_a_token_bucket_fills_at_its_rate_up_to_its_size(clock: Clock) -> None:
    bucket = TokenBucket(10, 2, clock())
    assert [bucket.reserve(clock()) for _ in range(3)] == [0, 0, pytest.approx(0.1)]
    clock.now += 60
    assert [bucket.reserve(clock()) for _ in range(3)] == [0, 0, pytest.approx(0.1)]


async def test_due_keys_are_not_dropped_once_a_consumer_takes_them(queue: WorkQueue[str]) -> None:
    for key in "ab":
        queue.add(key)
    assert (await queue.get())[0] == "a"
    queue.retain(lambda _: False)
    assert popped(queue) == "b"


async def test_waiting_for_a_key_ends_when_one_is_added(clock: Clock) -> None:
    queue = WorkQueue[str](limits=RetryLimits(), clock=clock)
    waiter = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    assert not waiter.done()
    queue.add("a")
    assert (await waiter)[0] == "a"


async def test_waiting_for_a_key_ends_when_one_that_was_added_again_is_done(clock: Clock) -> None:
    queue = WorkQueue[str](limits=RetryLimits(), clock=clock)
    queue.add("a")
    await queue.get()
    queue.add("a")
    waiter = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.done("a")
    assert (await waiter)[0] == "a"


async def test_waiting_for_a_key_ends_when_a_delay_has_passed() -> None:
    queue = WorkQueue[str](limits=RetryLimits(), clock=asyncio.get_running_loop().time)
    queue.add_after("a", 0.01)
    assert (await queue.get())[0] == "a"
    waiter = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add_after("b", 0.01)
    assert queue._changed.is_set()  # the waiter did not know of a delay
    assert (await waiter)[0] == "b"


async def test_events_may_be_posted_after_the_queue_was_found_empty_or_was_shut_down() -> None:
    queue: WorkQueue[str] = WorkQueue(limits=RetryLimits(), clock=lambda: 0.0)
    for key in "ab":
        queue.add(key)
    await queue.get()
    idle = asyncio.create_task(queue.wait_idle(timeout=60))
    await asyncio.sleep(0)
    assert not idle.done()
    await queue.get()
    getting = asyncio.create_task(queue.get())
    await idle
    getting.cancel()
    await asyncio.gather(getting, return_exceptions=True)
    for key in "cd":
        queue.add(key)
    await queue.get()
    idle = asyncio.create_task(queue.wait_idle(timeout=60))
    await asyncio.sleep(0)
    assert not idle.done()
    queue.shut_down()
    await idle


async def test_waiting_for_a_shorter_queue_ends_when_enough_keys_were_taken(queue: WorkQueue[str]) -> None:
    for key in "abcd":
        queue.add(key)
    await asyncio.wait_for(queue.wait_shorter_than(2), timeout=5)  # nobody takes keys
    await queue.get()
    waiter = asyncio.create_task(queue.wait_shorter_than(2))
    for left in (3, 2):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiter.done(), left
        await queue.get()
    for _ in range(3):
        await asyncio.sleep(0)
    assert waiter.done()


async def test_waiting_for_an_empty_queue_is_limited() -> None:
    queue: WorkQueue[str] = WorkQueue(limits=RetryLimits(), clock=lambda: 0.0)
    for key in "ab":
        queue.add(key)
    await queue.get()
    await asyncio.wait_for(queue.wait_idle(timeout=0.001), timeout=5)


def test_it_has_the_state_of_each_key(queue: WorkQueue[str], clock: Clock) -> None:
    assert queue.state_of("a") == KeyState("")
    for key in ("a", "b", "c"):
        queue.add(key)
    clock.now += 5
    assert queue.state_of("a") == KeyState("active", before=0, waited=5)
    assert queue.state_of("c") == KeyState("active", before=2, waited=5)
    popped(queue)
    assert queue.state_of("c") == KeyState("active", before=1, waited=5)
    assert queue.state_of("a") == KeyState("processing")
    queue.add_after("a", 30)
    queue.done("a")
    clock.now += 10
    assert queue.state_of("a") == KeyState("backoff", 20)
    clock.now += 20
    assert queue.state_of("a") == KeyState("backoff", 0)
    queue.seconds_to_next()
    assert queue.state_of("a") == KeyState("active", before=2, waited=0)


def test_positions_are_not_counted_in_a_very_long_queue(queue: WorkQueue[str]) -> None:
    for number in range(MOST_COUNTED + 1):
        queue.add(str(number))
    assert queue.state_of("7") == KeyState("active")
