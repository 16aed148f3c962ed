"""What a scheduler process of the simulation holds, by where it is: the sizes of its containers.

A leak may be in any container, so this walks all of them: from the application, and the local variables of the tasks. It reads
private attributes on purpose, and belongs to ``tools.simulation.flat`` only.
"""

from __future__ import annotations

import asyncio
import functools
import types
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

_OWN: Final = (
    "karmada_scheduler",
    "karmada_pyscheduler",
    "kopf",
    "tools.simulation.tests",
    "asyncio.queues",
    "aiohttp",
    "uvloop",
)
"""Instances of classes of these packages are walked into."""

_DATA: Final = "karmada_scheduler.api."
"""Objects of the API; what they contain is not the scheduler's."""

_MANIFESTS: Final = frozenset({"raw_event", "event"})
"""Local variables with a manifest."""

_CONTAINERS: Final = (dict, list, set, deque)
_WEAK: Final = (WeakKeyDictionary, WeakValueDictionary, WeakSet)
"""Their entries end with the objects of somebody else, where they are counted unless a cache with a bound has them."""
_DEPTH: Final = 14


def sizes_below(roots: Mapping[str, object]) -> Counter[str]:
    """Return the number of entries of all containers by path; what several paths lead to counts on the shortest one.

    ``[]`` in a path stands for all entries of a container, whose sizes are summed up. Caches with a bound are left out.
    """
    sizes, seen = Counter[str](), set[int]()
    waiting: deque[tuple[str, object, int]] = deque((path, each, 0) for path, each in roots.items())
    kept = []  # so that no id is used twice
    while waiting:
        path, found, depth = waiting.popleft()
        if id(found) in seen or depth > _DEPTH:
            continue
        seen.add(id(found))
        kept.append(found)
        if isinstance(found, functools._lru_cache_wrapper):
            info = found.cache_info()
            if info.maxsize is None:
                sizes[path] += info.currsize
        elif isinstance(found, _CONTAINERS):
            sizes[path] += len(found)
        waiting.extend((path + step, below, depth + 1) for step, below in _below(found))
    return sizes


def _below(found: object) -> Iterator[tuple[str, object]]:
    """Return what an object leads to, with the step to it."""
    if isinstance(found, _WEAK):
        return
    if isinstance(found, Mapping):
        entries: Iterable[Any] = list(found.values())
        yield from (("[]", each) for each in entries if _is_walked(each))
    elif isinstance(found, (list, tuple, set, frozenset, deque)):
        yield from (("[]", each) for each in list(found) if _is_walked(each))
    elif isinstance(found, functools.partial):
        yield from _below((found.func, *found.args, *found.keywords.values()))
    elif isinstance(found, types.MethodType):
        yield "", found.__self__
    elif isinstance(found, types.FunctionType):
        for name, cell in zip(found.__code__.co_freevars, found.__closure__ or (), strict=True):
            if cell != types.CellType() and _is_walked(cell.cell_contents):
                yield f"<{name}>", cell.cell_contents
    if _is_own(found):
        for name, value in _attributes(found):
            if _is_walked(value):
                yield f".{name}", value


def _is_own(found: object) -> bool:
    module = type(found).__module__
    return module.startswith(_OWN) and not module.startswith(_DATA)


def _is_walked(found: object) -> bool:
    """Return whether an object is, or may lead to, a container of the scheduler's own."""
    return (
        isinstance(
            found,
            (
                *_CONTAINERS, tuple, frozenset, Mapping, functools.partial, types.MethodType, types.FunctionType,
                functools._lru_cache_wrapper,
            ),
        )
        or _is_own(found)
    )  # fmt: skip


def _attributes(found: object) -> Iterator[tuple[str, object]]:
    yield from list(getattr(found, "__dict__", {}).items())
    for each in type(found).__mro__:
        slots = each.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            mangled = f"_{each.__name__.lstrip('_')}{name}" if name.startswith("__") else name
            if name not in ("__dict__", "__weakref__") and hasattr(found, mangled):
                yield name, getattr(found, mangled)


def task_roots(tasks: Iterable[asyncio.Task[Any]]) -> dict[str, object]:
    """Return the local variables of suspended coroutines, by the coroutine's name; equal names are in one list."""
    found: dict[str, list[object]] = {}
    for task in tasks:
        coroutine: Any = task.get_coro()
        while coroutine is not None and (frame := getattr(coroutine, "cr_frame", None)) is not None:
            for name, value in frame.f_locals.items():
                if name not in _MANIFESTS and _is_walked(value):
                    found.setdefault(f"task {coroutine.__qualname__}.{name}", []).append(value)
            coroutine = coroutine.cr_await
    # Sorted, because what several tasks lead to is named after the first of them, and tasks come in any order.
    return {name: values[0] if len(values) == 1 else tuple(values) for name, values in sorted(found.items())}
