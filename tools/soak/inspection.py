"""What a scheduler process holds, by where it is: the sizes of its containers, and its objects by type.

/metrics has what an operator wants to know. A leak may be in any container, so this walks all of them: from the
application, the modules, and the local variables of the tasks. It reads private attributes on purpose, runs in the
process of the scheduler (``program``), and belongs to this tool only.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import sys
import types
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

_OWN: Final = ("karmada_scheduler", "kopf", "tools.soak", "asyncio.queues", "aiohttp", "uvloop")
"""Instances of classes of these packages are walked into."""

_DATA: Final = "karmada_scheduler.api."
"""Objects of the API; what they contain is not the scheduler's."""

_MANIFESTS: Final = frozenset({"raw_event", "event"})
"""Local variables with a manifest."""

_CONTAINERS: Final = (dict, list, set, deque, WeakKeyDictionary, WeakValueDictionary, WeakSet)
_DEPTH: Final = 14
_LEAST: Final = 50
"""Types with fewer objects than this are not reported."""


@dataclass(slots=True)
class Inspection:
    """The result of a walk.

    Attributes:
        sizes: The number of entries by path; ``[]`` in a path stands for all entries of a container, whose sizes are
            summed up.
        bounded: The number of entries and the bound of each ``lru_cache``, by path.
    """

    sizes: Counter[str] = field(default_factory=Counter)
    bounded: dict[str, tuple[int, int]] = field(default_factory=dict)


def inspect(roots: Mapping[str, object]) -> Inspection:
    """Walk from objects by name; what several paths lead to counts on the shortest one."""
    result, seen = Inspection(), set[int]()
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
            if info.maxsize is not None:
                result.bounded[path] = info.currsize, info.maxsize
            else:
                result.sizes[path] += info.currsize
        elif isinstance(found, _CONTAINERS):
            result.sizes[path] += len(found)
        waiting.extend((path + step, below, depth + 1) for step, below in _below(found))
    return result


def _below(found: object) -> Iterator[tuple[str, object]]:
    """Return what an object leads to, with the step to it."""
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


def module_roots() -> dict[str, object]:
    """Return the containers, caches and functions of the scheduler's modules, by name."""
    found: dict[str, object] = {}
    for module_name, module in sorted(sys.modules.items()):
        if not module_name.startswith("karmada_scheduler"):
            continue
        for name, value in list(vars(module).items()):
            is_container = isinstance(value, (*_CONTAINERS, functools._lru_cache_wrapper))
            is_container = is_container or (_is_own(value) and not isinstance(value, type))
            is_function = isinstance(value, types.FunctionType) and value.__module__ == module_name
            if (is_container or is_function) and not name.startswith("__"):
                found[f"{module_name.removeprefix('karmada_scheduler.')}:{name}"] = value
            if isinstance(value, type) and value.__module__ == module_name:
                found.update(_class_roots(module_name.removeprefix("karmada_scheduler."), value))
    return found


def _class_roots(module: str, found: type) -> dict[str, object]:
    roots: dict[str, object] = {}
    for name, value in list(vars(found).items()):
        own = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if isinstance(own, (dict, list, set, deque, functools._lru_cache_wrapper, types.FunctionType)) and (
            not name.startswith("__")
        ):
            roots[f"{module}:{found.__name__}.{name}"] = own
    return roots


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


def report(roots: Mapping[str, object]) -> dict[str, Any]:
    """Return everything that the soak test reads from inside; called in the main event loop."""
    tasks = asyncio.all_tasks()
    inspection = inspect({**roots, **module_roots(), **task_roots(tasks)})
    objects = gc.get_objects()
    return {
        "tasks": len(tasks),
        "objects": len(objects),
        "blocks": sys.getallocatedblocks(),
        "types": {name: count for name, count in _by_type(objects).items() if count >= _LEAST},
        "sizes": inspection.sizes,
        "bounded": inspection.bounded,
        "collections": [each["collections"] for each in gc.get_stats()],
        "collected": sum(each["collected"] for each in gc.get_stats()),
    }


def garbage() -> dict[str, int]:
    """Collect everything unreachable, and return how many objects of each type that freed."""
    before = _by_type(gc.get_objects())
    gc.collect()
    return before - _by_type(gc.get_objects())


def _by_type(objects: Iterable[object]) -> Counter[str]:
    return Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in objects)
