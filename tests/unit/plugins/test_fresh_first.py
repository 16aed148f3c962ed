"""FreshFirst: the order of the queue."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada_pyscheduler.scheduling_queue.priority_queue import PrioritySchedulingQueue
from karmada_pyscheduler.scheduling_queue.queue_sort import sort_key_of
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.framework import QueuedBinding
from karmada_scheduler.testing import binding, make, profiles
from karmada_scheduler_plugins.fresh_first import FreshFirst

DELAY = 60
PLACED, FRESH = binding("placed").on("m1").build(), binding("fresh").build()


def sorter() -> FreshFirst:
    return make(FreshFirst, {"delaySeconds": DELAY})


def queued(kind: Binding | None, *, since: float = 0.0, priority: int = 0) -> QueuedBinding:
    return QueuedBinding(BindingKey("ResourceBinding", "demo", "x"), priority, since, kind)


entries = st.builds(
    queued,
    st.sampled_from([PLACED, FRESH, None]),
    since=st.integers(0, 200).map(float),
    priority=st.integers(-2, 2),
)


@given(entries, entries, entries)
def test_it_is_a_strict_order_that_nobody_can_be_overtaken_in_for_long(
    a: QueuedBinding, b: QueuedBinding, c: QueuedBinding
) -> None:
    less = sorter().less
    assert not less(a, a)
    assert not (less(a, b) and less(b, a))
    if less(a, b) and less(b, c):
        assert less(a, c)
    if not less(a, b) and not less(b, a) and not less(b, c) and not less(c, b):
        assert not less(a, c)
    if a.priority == b.priority and a.since + DELAY < b.since:
        assert less(a, b)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (queued(FRESH, since=59), queued(PLACED)),
        (queued(PLACED), queued(FRESH, since=61)),
        (queued(PLACED, priority=1), queued(FRESH)),
        (queued(FRESH, since=1), queued(None)),
        (queued(PLACED), queued(PLACED, since=1)),
    ],
    ids=["fresh", "placed for long", "priority", "unknown is not fresh", "first in, first out"],
)
def test_what_goes_first(first: QueuedBinding, second: QueuedBinding) -> None:
    assert sorter().less(first, second)
    assert not sorter().less(second, first)


def test_ten_new_workloads_overtake_a_storm_of_a_thousand() -> None:
    known = {f"old{number}": PLACED for number in range(1000)} | {
        f"new{number}": FRESH for number in range(10)
    }
    time = [0.0]
    queue: Any = PrioritySchedulingQueue(
        clock=lambda: time[0], sort_key=sort_key_of(sorter(), lambda key: known[key.name])
    )
    for name in known:
        time[0] += 0.001
        queue.add(BindingKey("ResourceBinding", "demo", name))
    order = []
    while (item := queue.pop()) is not None:
        order.append(item[0].name)
        queue.done(item[0])
    assert order == [*(f"new{number}" for number in range(10)), *(f"old{number}" for number in range(1000))]


def test_a_profile_enables_it_instead_of_the_default(tmp_path: Any) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        """
apiVersion: pyscheduler.karmada.io/v1alpha1
kind: KarmadaSchedulerConfiguration
profiles:
  - schedulerName: my-scheduler
    plugins:
      queueSort: {enabled: [{name: FreshFirst}], disabled: [{name: PrioritySort}]}
"""
    )
    built = profiles(config)["my-scheduler"]
    assert [each.name for each in built.plugins.queue_sort] == ["FreshFirst"]


def test_without_a_profile_that_names_them_the_new_plugins_are_not_enabled() -> None:
    (built,) = profiles().values()
    assert {"FreshFirst", "PlacementGuard"}.isdisjoint(each.name for each in built.plugins.unique)


@pytest.mark.parametrize("seconds", [0, 3601])
def test_the_delay_is_limited(seconds: int) -> None:
    with pytest.raises(ConfigError, match="delaySeconds must be 1 to 3600"):
        make(FreshFirst, {"delaySeconds": seconds})
    for accepted in (1, 3600):
        make(FreshFirst, {"delaySeconds": accepted})
