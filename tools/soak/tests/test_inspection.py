"""The inspection finds containers wherever they are."""

import asyncio
from functools import lru_cache, partial
from typing import Any

from tools.soak.inspection import inspect, task_roots


class Part:
    """Has containers in attributes and slots."""

    __slots__ = ("__dict__", "entries")

    def __init__(self, *entries: object) -> None:
        self.entries = list(entries)
        self.by_name: dict[str, Any] = {}

    def call(self) -> None: ...


def test_containers_are_found_through_attributes_methods_partials_and_closures() -> None:
    method, closed = Part(1, 2), [1, 2, 3]

    def closure() -> object:
        return closed

    root = Part()
    root.by_name = {"listener": method.call, "later": partial(closure), "last": Part(*range(5))}
    sizes = inspect({"root": root}).sizes
    assert sizes["root.by_name"] == 3
    assert sizes["root.by_name[].entries"] == 2 + 5
    assert sizes["root.by_name[][]<closed>"] == 3


def test_the_sizes_of_all_entries_are_summed_up() -> None:
    assert inspect({"root": [[1], [1, 2]]}).sizes == {"root": 2, "root[]": 3}


def test_a_bounded_cache_has_its_bound() -> None:
    @lru_cache(maxsize=8)
    def doubled(value: int) -> int:
        return value * 2

    for number in range(20):
        doubled(number)
    assert inspect({"doubled": doubled}).bounded == {"doubled": (8, 8)}


def test_cycles_end() -> None:
    root: list[object] = []
    root.append(root)
    assert inspect({"root": root}).sizes == {"root": 1}


async def test_local_variables_of_tasks_are_found() -> None:
    async def inner() -> None:
        held = [1, 2, 3]
        await asyncio.Event().wait()
        held.clear()

    async def outer() -> None:
        await inner()

    task = asyncio.create_task(outer())
    await asyncio.sleep(0)
    try:
        sizes = inspect(task_roots([task])).sizes
        assert [size for name, size in sizes.items() if name.endswith("inner.held")] == [3]
    finally:
        task.cancel()


async def test_tasks_have_the_same_order_in_each_report() -> None:
    async def first() -> None:
        held = shared
        await asyncio.Event().wait()
        held.clear()

    async def second() -> None:
        held = shared
        await asyncio.Event().wait()
        held.clear()

    shared = [1, 2]
    tasks = [asyncio.create_task(first()), asyncio.create_task(second())]
    await asyncio.sleep(0)
    try:
        assert list(task_roots(tasks)) == list(task_roots(reversed(tasks)))
    finally:
        for each in tasks:
            each.cancel()
