"""Validates plugins before they run: extension points, signatures, misspelt methods, declarations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Final

from karmada_scheduler.framework.evidence import RequeueEvent
from karmada_scheduler.framework.extension_points import (
    FILTER_CLUSTERS,
    FOR_CAPACITY,
    FOR_FILTER,
    GUARD_OBSERVATION,
    POST_FILTER_FOR,
    PRE_FILTER_EXTENSIONS,
    START_TERM,
    Point,
    points_of,
    post_filter_cases,
)
from karmada_scheduler.framework.workload import NEEDS_WORKLOAD

_POINT_METHODS: Final = tuple(method for point in Point for method in point.methods)
_RUN: Final = "run"
_OBSERVE: Final = "observe"
_COROUTINES: Final = frozenset({"permit", "pre_bind", "bind", "post_bind", _RUN})
_EITHER: Final = frozenset({"pre_filter", "post_filter", "pre_score", "select", "assign"})
_ARITIES: Final = {
    method: 2 if method in ("less", _OBSERVE) else 1
    for method in (
        *_POINT_METHODS,
        _OBSERVE,
        FILTER_CLUSTERS,
        "queue_group",
        "queue_group_key",
        "normalize_score",
        GUARD_OBSERVATION,
        START_TERM,
        *PRE_FILTER_EXTENSIONS,
    )
} | {_RUN: 0}
_OF_REFUSALS: Final = {"evidence": 1, "edits": 1, "events": 0}
"""Methods of filters; other classes have such names as well."""
_COUNT_TEXTS: Final = ("no argument", "1 argument", "2 arguments")
_KNOWN_METHODS: Final = (*_ARITIES, "filter_key", "score_key")
_PLAIN: Final = frozenset(_ARITIES | _OF_REFUSALS) - _COROUTINES - _EITHER
_PAIRS: Final = (
    ("reserve", "unreserve"),
    ("unreserve", "reserve"),
    ("sort_key", "less"),
    ("queue_group", "queue_group_key"),
    ("queue_group_key", "queue_group"),
    ("queue_group", "less"),
    ("normalize_score", "score"),
    (GUARD_OBSERVATION, "guard"),
    ("propose", "reconsider"),
    ("reconsider", "propose"),
    (START_TERM, "reconsider"),
    ("add_binding", "remove_binding"),
    ("remove_binding", "add_binding"),
    ("evidence", "codes"),
)


def plugin_problems(plugin: object) -> Iterator[str]:
    """Yield the problems of a plugin, or of a class of plugins."""
    misspelt = list(misspelt_method_problems(plugin))
    yield from misspelt
    yield from _declaration_problems(plugin)
    incomplete = list(_missing_counterparts(plugin))
    if not points_of(plugin) and not misspelt and not incomplete:
        runs = "run alone is not enough; " if callable(getattr(plugin, _RUN, None)) else ""
        yield f"has no extension point; {runs}there are: {', '.join(_POINT_METHODS)}"
    yield from incomplete
    yield from _event_problems(plugin)
    for method, arity in (_ARITIES | _OF_REFUSALS).items():
        function = getattr(plugin, method, None)
        if not callable(function):
            continue
        if method in _COROUTINES and not inspect.iscoroutinefunction(function):
            yield f"{method} must be a coroutine function: async def {method}"
        if method in _PLAIN and inspect.iscoroutinefunction(function):
            yield f"{method} must be a plain function: def {method}"
        if not takes(function, arity + (isinstance(plugin, type) and _is_unbound(plugin, method))):
            yield f"{method} must take {_COUNT_TEXTS[arity]} besides self"


def _missing_counterparts(plugin: object) -> Iterator[str]:
    """Yield the methods that are never called because another one is missing."""
    if hasattr(plugin, "filter") and hasattr(plugin, FILTER_CLUSTERS):
        yield f"has filter and {FILTER_CLUSTERS}; keep one of them"
    for first, second in _PAIRS:
        if hasattr(plugin, first) and not hasattr(plugin, second):
            yield f"has {first} but no {second}, and is called for neither"
    if not Point.PRE_FILTER.is_served_by(plugin):
        for method in PRE_FILTER_EXTENSIONS:
            if hasattr(plugin, method):
                yield f"{method} is called only for plugins with {Point.PRE_FILTER.methods[0]}"


def _event_problems(plugin: object) -> Iterator[str]:
    """Yield the problems of what a plugin, not a class, declares as the ends of its refusals."""
    if isinstance(plugin, type) or not callable(declare := getattr(plugin, "events", None)):
        return
    try:
        if wrong := [event for event in declare() if not isinstance(event, RequeueEvent)]:
            yield f"events must return RequeueEvents, not {wrong[0]!r}"
    except Exception as problem:  # noqa: BLE001 (a plugin can raise anything)
        yield f"events failed: {type(problem).__name__}: {problem}"


def point_methods_of(plugin: object) -> list[str]:
    """Return the methods of a plugin, or of a class, that have the name of an extension point's method."""
    return [method for method in _POINT_METHODS if callable(getattr(plugin, method, None))]


def plugin_methods_of(plugin: object) -> list[str]:
    """Return the methods that only plugins have; ``run`` is not one of them, because many classes have it."""
    return [name for name in _KNOWN_METHODS if name != _RUN and callable(getattr(plugin, name, None))]


def _declaration_problems(plugin: object) -> Iterator[str]:
    """Yield the problems of what a plugin declares: that it needs the workload, and after what PostFilter is called."""
    cases = post_filter_cases(plugin)
    if (
        not isinstance(cases, (set, frozenset, tuple, list))
        or not {FOR_FILTER, FOR_CAPACITY}.issuperset(cases)
        or not cases
    ):
        yield f"{POST_FILTER_FOR} must be {{'{FOR_FILTER}'}}, {{'{FOR_CAPACITY}'}} or both, not {cases!r}"
    needs = getattr(plugin, NEEDS_WORKLOAD, False)
    if needs is not True and needs is not False:
        yield f"{NEEDS_WORKLOAD} must be True or False, not {needs!r}"
    owner = plugin if isinstance(plugin, type) else type(plugin)
    for name in dir(owner):
        for meant in (NEEDS_WORKLOAD, POST_FILTER_FOR):
            if name != meant and _differs_by_one_letter(_plain(name), _plain(meant)):
                yield f"{name} declares nothing; did you mean {meant}?"


def misspelt_method_problems(plugin: object) -> Iterator[str]:
    """Yield the methods that differ from those of an extension point by one letter, and would never be called."""
    owner = plugin if isinstance(plugin, type) else type(plugin)
    for name in dir(owner):
        if name.startswith("_") or name in _KNOWN_METHODS or not callable(getattr(owner, name, None)):
            continue
        meant = next(
            (each for each in _KNOWN_METHODS if _differs_by_one_letter(_plain(name), _plain(each))), None
        )
        if meant is not None:
            yield (
                f"{name} is the method of no extension point; did you mean {meant}? "
                f"(a helper's name may begin with an underscore)"
            )


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _differs_by_one_letter(one: str, other: str) -> bool:
    """Return whether two texts differ by one letter that is added, missing, replaced or swapped with the next."""
    if len(one) > len(other):
        one, other = other, one
    same = next((index for index, letter in enumerate(one) if letter != other[index]), len(one))
    rest, other_rest = one[same:], other[same:]
    if len(one) < len(other):
        return rest == other_rest[1:]
    return rest[1:] == other_rest[1:] or (rest[1::-1] + rest[2:] == other_rest)


def _is_unbound(plugin: type, method: str) -> bool:
    return not isinstance(inspect.getattr_static(plugin, method), (staticmethod, classmethod))


def takes(function: Callable[..., object], count: int) -> bool:
    """Return whether a function can be called with a number of positional arguments."""
    if getattr(function, "__init__", None) is object.__init__ and isinstance(function, type):
        return count == 0  # inspect would read it from the text of C's documentation
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # a function of C without a signature
        return True
    return True
