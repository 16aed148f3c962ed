"""A QueueSort plugin may take the next binding from one of several groups."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.scheduling_queue.grouped_queue import GroupedSchedulingQueue
from karmada_pyscheduler.scheduling_queue.priority_queue import PrioritySchedulingQueue
from karmada_pyscheduler.scheduling_queue.queue_sort import make_queue
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.config.options import Options
from karmada_scheduler.framework import QueuedBinding
from karmada_scheduler.framework.profile.plugin_problems import plugin_problems
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from tests.unit.framework.plugins import answering, plugin, raising


class Fair:
    """The namespace that was served least is the next, and inside it the shortest name."""

    def __init__(self, **methods: Any) -> None:
        self.served: dict[str, int] = {}
        self.read: list[str] = []
        self.plugin = plugin(
            "Fair",
            **{
                "less": answering(False),
                "sort_key": self.sort_key,
                "queue_group": self.queue_group,
                "queue_group_key": self.queue_group_key,
                **methods,
            },
        )
        made = make_queue(
            Options(),
            queue_sort=self.plugin,
            binding_of=lambda _: None,
            caller=PluginCaller(),
            metrics=Metrics(),
            clock=lambda: 0.0,
        )
        assert isinstance(made, GroupedSchedulingQueue)
        self.queue: GroupedSchedulingQueue[BindingKey] = made

    def sort_key(self, queued: QueuedBinding) -> tuple[float, ...]:
        return (len(queued.key.name),)

    def queue_group(self, queued: QueuedBinding) -> str:
        return queued.key.namespace

    def queue_group_key(self, group: str) -> tuple[float, ...]:
        self.read.append(group)
        return (self.served.get(group, 0),)

    def add(self, *names: str) -> None:
        for name in names:
            self.queue.add(BindingKey("ResourceBinding", *name.split("/")))

    def take(self, count: int = 1000) -> list[str]:
        taken: list[str] = []
        while len(taken) < count and (item := self.queue.pop()) is not None:
            key = item[0]
            self.served[key.namespace] = self.served.get(key.namespace, 0) + 1
            taken.append(f"{key.namespace}/{key.name}")
            self.queue.done(key)
        return taken


def test_the_best_group_is_the_next_and_inside_it_the_order_is_that_of_the_sort_key() -> None:
    fair = Fair()
    fair.add("a/111", "a/1", "a/11", "a/1111", "b/2222", "b/2")
    assert fair.take() == ["a/1", "b/2", "a/11", "b/2222", "a/111", "a/1111"]


def test_keys_may_change_while_bindings_wait() -> None:
    fair = Fair()
    fair.add("a/1", "b/2", "c/3")
    fair.served = {"a": 5, "b": 1}
    assert fair.take() == ["c/3", "b/2", "a/1"]


def test_a_group_whose_key_falls_is_noticed_when_one_of_its_bindings_is_queued() -> None:
    fair = Fair()
    fair.served = {"a": 3, "b": 5}
    fair.add("a/1", "a/11", "b/2")
    fair.served["b"] = 0
    fair.add("b/22")
    assert fair.take() == ["b/2", "b/22", "a/1", "a/11"]


def test_a_group_that_a_plugin_says_has_fallen_is_read_before_the_next_binding_is_taken() -> None:
    fallen: set[str] = set()
    fair = Fair(fallen_groups=fallen)
    fair.served = {"a": 5, "b": 3}
    fair.add("a/1", "a/11", "b/2", "b/22")
    assert fair.take(1) == ["b/2"]
    fair.served["a"] = 0
    fallen |= {"a", "unknown"}
    assert fair.take(1) == ["a/1"]
    assert fallen == {"a"}


def test_the_key_of_a_group_may_be_that_of_its_next_binding() -> None:
    names = list[str]()

    def key(group: str, head: QueuedBinding | None = None) -> tuple[float, ...]:
        assert head is not None
        names.append(head.key.name)
        return (head.key.name.count("x"), ord(group))

    fair = Fair(queue_group_key=key, fallen_groups=set())
    fair.add("b/x1", "b/222", "a/x1", "a/222")
    assert fair.take() == ["a/x1", "a/222", "b/x1", "b/222"]
    fair.add("b/1", "b/x22", "b/333", "a/x1", "a/22")
    assert fair.take() == ["b/1", "a/x1", "a/22", "b/x22", "b/333"]


def test_a_key_is_read_a_few_times_per_binding() -> None:
    fair = Fair()
    fair.add(*(f"{name}/{number}" for number in range(20) for name in "abcdefgh"))
    del fair.read[:]
    assert len(fair.take()) == 160
    assert len(fair.read) < 4 * 160


def test_every_binding_is_taken_once_whatever_the_keys_do() -> None:
    fair = Fair()
    names = [f"{name}/{number}" for number in range(30) for name in "abcde"]
    taken = []
    for index, name in enumerate(names):
        fair.add(name)
        fair.served["abcde"[index * 7 % 5]] = index * 13 % 11
        if index % 3 == 2:
            taken += fair.take(2)
    taken += fair.take()
    assert sorted(taken) == sorted(names)
    assert not fair.queue._order
    assert not fair.queue._keys


def test_on_a_standby_where_nothing_is_taken_the_order_of_groups_stays_small() -> None:
    fair = Fair()
    for number in range(1000):
        fair.served["a"] = number
        fair.add(f"a/{number}", "b/0")
    assert len(fair.queue._order) < 100
    assert fair.take(1) == ["b/0"]


def test_a_new_priority_moves_a_binding_and_it_is_taken_once() -> None:
    fair = Fair()
    for priority in range(200):
        fair.queue.add(BindingKey("ResourceBinding", "a", "1"), priority)
    assert fair.take() == ["a/1"]


@pytest.mark.parametrize("broken", [raising(), answering(None), answering(7)])
def test_a_group_that_fails_is_the_empty_one(broken: Any) -> None:
    fair = Fair(queue_group=broken)
    fair.add("a/11", "b/2")
    assert fair.take() == ["b/2", "a/11"]
    assert set(fair.read) == {""}


@pytest.mark.parametrize(
    "broken", [raising(), answering(None), answering(("a",)), answering((float("nan"),))]
)
def test_a_group_key_that_fails_leaves_every_binding_in_the_queue(broken: Any) -> None:
    fair = Fair(queue_group_key=broken)
    fair.add("a/11", "b/2", "a/1")
    assert sorted(fair.take()) == ["a/1", "a/11", "b/2"]


def test_without_groups_the_queue_is_that_of_a_sort_key() -> None:
    made = make_queue(
        Options(),
        queue_sort=plugin("S", less=answering(False), sort_key=answering((0,))),
        binding_of=lambda _: None,
        caller=PluginCaller(),
        metrics=Metrics(),
        clock=lambda: 0.0,
    )
    assert type(made) is PrioritySchedulingQueue


@pytest.mark.parametrize(
    ("methods", "problem"),
    [
        (("less", "queue_group"), "has queue_group but no queue_group_key, and is called for neither"),
        (("less", "queue_group_key"), "has queue_group_key but no queue_group, and is called for neither"),
        (("queue_group", "queue_group_key"), "has queue_group but no less, and is called for neither"),
    ],
)
def test_half_of_the_methods_is_refused(methods: tuple[str, ...], problem: str) -> None:
    made = plugin(
        "S", **{name: (lambda _a, _b: False) if name == "less" else answering("") for name in methods}
    )
    assert problem in list(plugin_problems(made))
