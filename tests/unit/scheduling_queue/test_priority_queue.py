"""The priority queue: order, backoff, and unschedulable keys."""

import asyncio
import random

import pytest

from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.scheduling_queue import priority_queue
from karmada_pyscheduler.scheduling_queue.priority_queue import PrioritySchedulingQueue
from karmada_pyscheduler.scheduling_queue.queue import KeyState
from karmada_pyscheduler.scheduling_queue.queue_sort import make_queue
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.config.flags import parse
from karmada_scheduler.config.options import Options
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller


class QueueHarness:
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
        """Advance the clock until a key is due; return the seconds."""
        start = self.now
        while (wait := self.queue.seconds_to_next()) != 0:
            assert wait is not None
            self.now += wait
        return self.now - start


@pytest.fixture
def harness() -> QueueHarness:
    return QueueHarness()


def test_the_higher_priority_comes_first(harness: QueueHarness) -> None:
    for key, priority in (("low", -5), ("high", 100), ("none", 0)):
        harness.queue.add(key, priority)
    assert [harness.pop() for _ in range(4)] == ["high", "none", "low", None]


def test_keys_of_equal_priority_are_taken_in_the_order_of_arrival(harness: QueueHarness) -> None:
    for key in "cab":
        harness.queue.add(key, 7)
        harness.now += 0.1
    assert [harness.pop() for _ in range(3)] == ["c", "a", "b"]


def test_a_due_key_that_is_added_again_takes_its_new_priority(harness: QueueHarness) -> None:
    harness.queue.add("a", 1)
    harness.queue.add("b", 2)
    harness.queue.add("a", 3)
    assert len(harness.queue) == 2
    assert [harness.pop() for _ in range(3)] == ["a", "b", None]


def test_due_keys_that_are_not_retained_are_dropped(harness: QueueHarness) -> None:
    for key, priority in (("a", 1), ("b", 2), ("c", 3), ("a", 4)):
        harness.queue.add(key, priority)
    harness.queue.retain(lambda key: key != "b")
    assert len(harness.queue) == 2
    assert [harness.pop() for _ in range(3)] == ["a", "c", None]


def test_keys_stay_in_order_when_others_are_dropped(harness: QueueHarness) -> None:
    generated = random.Random(1)
    priorities = {str(number): generated.randrange(1000) for number in range(100)}
    for key, priority in priorities.items():
        harness.queue.add(key, priority)
    harness.queue.retain(lambda key: int(key) % 3 != 0)
    kept = [key for key in priorities if int(key) % 3]
    taken = [harness.pop() for _ in kept]
    assert taken == sorted(kept, key=lambda key: -priorities[key])


def test_changed_priorities_of_keys_that_nobody_takes_need_bounded_memory(harness: QueueHarness) -> None:
    sizes = set()
    for priority in range(1000):
        harness.queue.add("a", priority)
        harness.queue.add("b", -priority)
        sizes.add(len(harness.queue._active))
    # One pass over the heap pays for many changes.
    assert max(sizes) == 2 * len(harness.queue) + priority_queue.KEPT_OUTDATED
    assert [harness.pop() for _ in range(3)] == ["a", "b", None]


def test_a_key_is_held_in_each_set_and_while_it_is_processed(harness: QueueHarness) -> None:
    held = []
    harness.queue.add("a")
    held.append(harness.queue.holds("a"))
    harness.fail("a")
    held.append(harness.queue.holds("a"))
    harness.seconds_until_due()
    harness.fail("a", unschedulable=True)
    held.append(harness.queue.holds("a"))
    harness.queue.add("a")
    harness.pop()
    held.append(harness.queue.holds("a"))
    harness.queue.done("a")
    assert held == [True] * 4
    assert not harness.queue.holds("a")


def test_a_key_with_an_event_while_it_is_processed_is_due_when_it_is_done(harness: QueueHarness) -> None:
    harness.queue.add("a")
    harness.pop()
    harness.queue.add("a")
    assert harness.pop() is None
    harness.queue.done("a")
    assert harness.pop() == "a"


@pytest.mark.parametrize("fails", [False, True], ids=["it succeeds", "it fails"])
@pytest.mark.parametrize(
    ("priorities", "first"),
    [((9,), "a"), ((1,), "b"), ((1, 9), "a"), ((9, 1), "b")],
    ids=["higher", "lower", "the last one is higher", "the last one is lower"],
)
def test_a_key_whose_priority_changes_while_it_is_processed_is_due_with_the_last_one(
    harness: QueueHarness, priorities: tuple[int, ...], first: str, fails: bool
) -> None:
    harness.queue.add("a", 4)
    assert harness.pop() == "a"
    harness.queue.add("b", 5)
    for priority in priorities:
        harness.queue.add("a", priority)
    if fails:
        harness.queue.add_rate_limited("a")
    harness.queue.done("a")
    assert harness.queue.state_of("a").priority == priorities[-1]
    assert harness.pop() == first


@pytest.mark.parametrize("unschedulable", [False, True], ids=["backoff", "unschedulable"])
@pytest.mark.parametrize(("priority", "first"), [(9, "a"), (1, "b")])
def test_a_failed_key_that_is_added_again_takes_its_new_priority(
    harness: QueueHarness, priority: int, first: str, unschedulable: bool
) -> None:
    harness.queue.add("a", 4)
    harness.fail("a", unschedulable=unschedulable)
    harness.queue.add("b", 5)
    harness.queue.add("a", priority)
    assert harness.pop() == first


@pytest.mark.parametrize(("failures", "pause"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (40, 10)])
def test_the_backoff_doubles_from_1_second_to_10(harness: QueueHarness, failures: int, pause: int) -> None:
    harness.queue.add("a")
    for _ in range(failures):
        harness.seconds_until_due()
        harness.fail("a")
    assert harness.seconds_until_due() == pause


def test_a_backoff_ends_at_the_next_full_second(harness: QueueHarness) -> None:
    harness.now += 0.3
    harness.queue.add("a")
    harness.fail("a")
    assert harness.seconds_until_due() == pytest.approx(1.7)


@pytest.mark.parametrize(("waited", "unschedulable", "due"), [(30.5, False, 0.5), (400, True, 20)])
def test_the_backoff_counts_from_activation_and_an_unschedulable_key_is_due_at_the_next_flush(
    waited: float, unschedulable: bool, due: float, harness: QueueHarness
) -> None:
    harness.queue.add("a")
    harness.now += waited
    harness.fail("a", unschedulable=unschedulable)
    assert harness.queue.seconds_to_next() == due
    assert harness.pop() is None
    harness.now += due
    assert harness.pop() == "a"


def test_the_next_moment_is_the_end_of_the_earliest_backoff(harness: QueueHarness) -> None:
    harness.queue.add("later")
    for _ in range(4):
        harness.seconds_until_due()
        harness.fail("later")
    assert harness.queue.seconds_to_next() == 8
    harness.queue.add("sooner")
    harness.fail("sooner")
    assert harness.queue.seconds_to_next() == 1
    harness.now += 1
    assert harness.pop() == "sooner"
    assert harness.queue.pending() == {"active": 0, "backoff": 1, "unschedulable": 0}


def test_a_requested_delay_counts_if_it_is_longer_than_the_backoff(harness: QueueHarness) -> None:
    harness.queue.add("a")
    for delay, pause in ((5.0, 5), (0.5, 2)):
        assert harness.pop() == "a"
        harness.queue.add_after("a", delay)
        harness.queue.done("a")
        assert harness.seconds_until_due() == pause


def test_a_key_that_was_not_taken_cannot_fail(harness: QueueHarness) -> None:
    harness.queue.add_rate_limited("a")
    harness.queue.add_after("b", 5)
    assert harness.queue.pending() == {"active": 0, "backoff": 0, "unschedulable": 0}


def test_an_unschedulable_key_waits_for_five_minutes_and_until_the_next_flush(harness: QueueHarness) -> None:
    harness.queue.add("a")
    harness.fail("a", unschedulable=True)
    assert harness.queue.pending() == {"active": 0, "backoff": 0, "unschedulable": 1}
    assert harness.queue.seconds_to_next() == 330
    for seconds in (30, 270):
        harness.now += seconds
        assert harness.pop() is None
    assert harness.queue.state_of("a") == KeyState("unschedulable", 0)
    harness.now += 30
    assert harness.pop() == "a"
    assert harness.queue.delayed == 0


@pytest.mark.parametrize("unschedulable", [False, True], ids=["backoff", "unschedulable"])
async def test_who_waits_for_a_key_gets_one_that_is_added_and_sees_one_that_fails(
    unschedulable: bool,
) -> None:
    queue = PrioritySchedulingQueue[str](clock=lambda: 0.0)
    waiter = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    assert queue._changed.is_set()
    assert (await waiter)[0] == "a"
    waiter = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    assert not queue._changed.is_set()
    queue.add_rate_limited("a", unschedulable=unschedulable)
    assert queue._changed.is_set()
    waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)


@pytest.mark.parametrize("unschedulable", [False, True], ids=["backoff", "unschedulable"])
def test_an_event_makes_a_failed_key_due_at_once_and_resets_its_backoff(
    harness: QueueHarness, unschedulable: bool
) -> None:
    harness.queue.add("a")
    harness.fail("a", unschedulable=unschedulable)
    harness.queue.add("a")
    assert harness.queue.pending() == {"active": 1, "backoff": 0, "unschedulable": 0}
    harness.fail("a")
    assert harness.seconds_until_due() == 1


def test_an_event_during_processing_wins_over_the_failure(harness: QueueHarness) -> None:
    harness.queue.add("a")
    harness.pop()
    harness.queue.add("a")
    harness.queue.add_rate_limited("a", unschedulable=True)
    harness.queue.done("a")
    assert harness.queue.pending() == {"active": 1, "backoff": 0, "unschedulable": 0}


def test_a_finished_backoff_does_not_wait_for_one_of_higher_priority(
    harness: QueueHarness,
) -> None:
    harness.queue.add("low", 0)
    harness.fail("low")
    harness.queue.add("high", 9)
    harness.fail("high")
    harness.now += 1
    harness.fail("high")
    assert harness.pop() == "low"


def test_backoffs_that_end_together_are_flushed_by_priority(harness: QueueHarness) -> None:
    for key, priority in (("low", 0), ("high", 9)):
        harness.queue.add(key, priority)
        harness.fail(key)
    harness.now += 1
    assert [harness.pop(), harness.pop()] == ["high", "low"]


def test_a_flush_is_complete_before_a_key_is_taken(
    harness: QueueHarness,
) -> None:
    """As Karmada 1.19 does; in 1.18 the worker may take the first that is released."""
    for key, priority in (("low", 0), ("high", 9)):
        harness.now += 0.4
        harness.queue.add(key, priority)
        harness.fail(key)
    for key, priority in (("filler", 1), ("full", 5)):
        harness.queue.add(key, priority)
        harness.fail(key, unschedulable=True)
    harness.now += 330
    assert [harness.pop() for _ in range(4)] == ["high", "full", "filler", "low"]


def test_a_success_leaves_no_state(harness: QueueHarness) -> None:
    harness.queue.add("a")
    harness.pop()
    harness.queue.forget("a")
    harness.queue.done("a")
    assert harness.queue.pending() == {"active": 0, "backoff": 0, "unschedulable": 0}
    assert harness.queue.seconds_to_next() is None
    assert harness.queue.processing == 0


def test_a_key_is_taken_with_the_seconds_since_it_was_due(harness: QueueHarness) -> None:
    harness.queue.add("a")
    harness.now += 2.5
    assert harness.queue.pop() == ("a", 2.5)


@pytest.mark.parametrize("offset", [0.0373, 0.1, 0.7, 3.3])
def test_a_tick_that_rounding_puts_just_before_a_full_second_makes_keys_due(offset: float) -> None:
    for number in range(2000):
        started = offset + number / 1000
        clock = [started]
        queue = PrioritySchedulingQueue[str](clock=lambda clock=clock: clock[0])  # type: ignore[misc]
        queue.add("a")
        assert queue.pop() is not None
        queue.add_rate_limited("a")
        queue.done("a")
        for _ in range(5):
            wait = queue.seconds_to_next()
            assert wait is not None
            clock[0] = max(clock[0] + wait, started + 1.0 if wait < 1e-6 else 0.0)
            if queue.pop() is not None:
                break
        else:
            pytest.fail(f"the key is never due; the queue started at {started!r}")


def test_it_has_the_state_of_each_key(harness: QueueHarness) -> None:
    queue = harness.queue
    assert queue.state_of("a") == KeyState("")
    queue.add("a", 3)
    queue.add("b")
    harness.pop()
    assert queue.state_of("a") == KeyState("processing")
    queue.add_rate_limited("a")
    queue.done("a")
    harness.fail("b", unschedulable=True)
    harness.now += 0.25
    assert queue.state_of("a") == KeyState("backoff", 0.75)
    assert queue.state_of("b") == KeyState("unschedulable", 299.75)


def test_a_due_key_has_its_position_its_priority_and_how_long_it_has_waited(harness: QueueHarness) -> None:
    queue = harness.queue
    for key, priority in (("a", 3), ("b", 0), ("c", 3)):
        queue.add(key, priority)
    harness.now += 2
    queue.add("d", 0)
    queue.add("d", 1)  # its entry with the earlier priority stays in the heap
    assert [queue.state_of(key) for key in "abcd"] == [
        KeyState("active", None, before, waited, priority)
        for before, waited, priority in ((0, 2, 3), (3, 2, 0), (1, 2, 3), (2, 0, 1))
    ]


def test_positions_are_not_known_if_a_plugin_compares_bindings() -> None:
    queue: PrioritySchedulingQueue[str] = PrioritySchedulingQueue(
        clock=lambda: 0.0, sort_key=lambda key, _priority, _since: key
    )
    queue.add("a")
    assert queue.state_of("a") == KeyState("active", None, None, 0.0, 0)


def test_positions_are_not_counted_in_a_very_long_queue(
    harness: QueueHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(priority_queue, "MOST_COUNTED", 2)
    for key, before in (("a", 0), ("b", 1), ("c", None)):
        harness.queue.add(key)
        assert harness.queue.state_of(key).before == before


def test_a_position_is_not_known_if_the_key_is_taken_while_another_thread_reads(
    harness: QueueHarness,
) -> None:
    harness.queue.add("a")
    harness.queue._active.clear()  # the loop has taken the entry, and not yet the item
    assert harness.queue.state_of("a").before is None


def test_positions_are_known_if_a_plugin_has_sort_keys() -> None:
    queue: PrioritySchedulingQueue[str] = PrioritySchedulingQueue(
        clock=lambda: 0.0, sort_key=lambda key, _priority, _since: (-ord(key),)
    )
    for key in "abc":
        queue.add(key)
    assert [queue.state_of(key).before for key in "abc"] == [2, 1, 0]


@pytest.mark.parametrize(
    ("flags", "has_priorities"),
    [
        (["--decisions-of=1.19"], True),
        (["--decisions-of=1.18"], False),
        (["--decisions-of=1.19", "--feature-gates=PriorityBasedScheduling=false"], False),
    ],
)
def test_the_decisions_of_1_19_come_with_its_queue_and_metrics(
    flags: list[str], has_priorities: bool
) -> None:
    metrics = Metrics()
    queue = make_queue(
        parse(flags),
        queue_sort=None,
        binding_of=lambda _: None,
        caller=PluginCaller(),
        metrics=metrics,
        clock=lambda: 0.0,
    )
    queue.add(BindingKey("ResourceBinding", "demo", "web"))
    exposed = metrics.exposition().decode()
    assert ("scheduler_pending_bindings{" in exposed) is has_priorities
    assert ('workqueue_depth{controller="scheduler-queue"' in exposed) is not has_priorities


@pytest.mark.parametrize(("gate", "first"), [(True, "high"), (False, "low")])
def test_priorities_count_if_the_gate_is_on(gate: bool, first: str) -> None:
    options = Options(feature_gates=FeatureGates({"PriorityBasedScheduling": gate}))
    queue = make_queue(
        options,
        queue_sort=None,
        binding_of=lambda _: None,
        caller=PluginCaller(),
        metrics=Metrics(),
        clock=lambda: 0.0,
    )
    for name, priority in (("low", 0), ("high", 9)):
        queue.add(BindingKey("ResourceBinding", "demo", name), priority)
    taken = queue.pop()
    assert taken is not None
    assert taken[0].name == first
