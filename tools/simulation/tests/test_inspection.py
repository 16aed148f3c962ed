"""The inspection finds containers wherever they are."""

import asyncio
from functools import cache, lru_cache, partial
from typing import Any

from tools.simulation.inspection import sizes_below, task_roots


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
    sizes = sizes_below({"root": root})
    assert sizes["root.by_name"] == 3
    assert sizes["root.by_name[].entries"] == 2 + 5
    assert sizes["root.by_name[][]<closed>"] == 3


def test_the_sizes_of_all_entries_are_summed_up() -> None:
    assert sizes_below({"root": [[1], [1, 2]]}) == {"root": 2, "root[]": 3}


def test_a_cache_counts_unless_it_has_a_bound() -> None:
    caches = {"cache": cache(str), "bounded": lru_cache(maxsize=8)(str)}
    for called in caches.values():
        called(1)
    assert sizes_below(caches) == {"cache": 1}


def test_cycles_end() -> None:
    root: list[object] = []
    root.append(root)
    assert sizes_below({"root": root}) == {"root": 1}


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
        sizes = sizes_below(task_roots([task]))
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
