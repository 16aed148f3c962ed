"""Makes plugins, and validates them before they run.

The factory of a plugin is a class or another callable. It is called with ``(args, handle)``, or without arguments if
that is possible. ``args`` are the plugin's ``args`` of the profile, ``handle`` is a ``Handle``.

The type of the args is the annotation of the first parameter, or a class ``Args`` in the plugin's class. If it is a
dataclass, the keys of the args are its fields, in snake case or in camel case, and their values are validated. Without
such a type a plugin gets the mapping as it is in the file.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import traceback
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from karmada_scheduler.config.problems import ConfigError, ConfigProblem
from karmada_scheduler.config.structure import structure
from karmada_scheduler.framework import load_timeout
from karmada_scheduler.framework.extension_points import PRE_FILTER_EXTENSIONS, Point, points_of
from karmada_scheduler.framework.handle import Handle
from karmada_scheduler.framework.load_timeout import LOAD_SECONDS, LoadTimeoutError, call_in_thread
from karmada_scheduler.framework.runtime.plugin_call import exception_text
from karmada_scheduler.framework.scheduling_points import Plugin
from karmada_scheduler.framework.workload import NEEDS_WORKLOAD

Factory = Callable[..., Plugin]
"""Makes a plugin: takes ``(args, handle)``, or no arguments."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A plugin that there is.

    Attributes:
        name: As in profiles and ``--plugins``; the plugin's own ``name`` has to be the same.
        factory: Makes it, once per profile.
        origin: Where it comes from, for people: a distribution with its version, a file.
        doc: One line on what it does.
        mandatory: Whether ``--plugins`` leaves it alone: upstream's flag knows Filter and Score plugins only,
            and nobody who writes ``--plugins=ClusterAffinity`` wants to do without a binder.
    """

    name: str
    factory: Factory
    origin: str = ""
    doc: str = ""
    mandatory: bool = False


def make(plugin: Registration, args: Mapping[str, Any] | None, handle: Handle) -> Plugin:
    """Make a plugin for a profile.

    It is made in a thread of its own, so that one that hangs is only an error.

    Args:
        plugin: What to make.
        args: What the profile says in ``pluginConfig``; None if it says nothing.
        handle: What the plugin may ask of the scheduler.

    Raises:
        ConfigError: The args do not fit (paths begin with ``args``), the factory raised, or what it made is
            no plugin of that name; all that can be told apart is told.
    """
    given = _arguments(plugin, args, handle)
    try:
        made = call_in_thread(lambda: plugin.factory(*given), seconds=LOAD_SECONDS)
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        hangs = isinstance(error, LoadTimeoutError)
        cause = None if hangs else told_from(error, _is_not_ours)
        what = str(error) if hangs else f"{exception_text(error)}{_place_of(error)}"
        text = f'failed to initialize plugin "{plugin.name}": {what}'
        raise ConfigError([ConfigProblem("", text, cause)]) from error
    texts = list(wrong_with(made))
    name = getattr(made, "name", None)
    if name != plugin.name:
        texts.insert(0, f"its name is {name!r}, it is registered as {plugin.name!r}")
    if texts:
        raise ConfigError([ConfigProblem("", f'plugin "{plugin.name}": {text}') for text in texts])
    return made


def _place_of(error: BaseException) -> str:
    """Return the line of the plugin's file where it raised, from what is left of the traceback."""
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    lines = [line for file, line in places if file == places[0][0] and _is_not_ours(file)]
    return f" (line {lines[-1]} of {places[0][0]})" if lines else ""


def _is_not_ours(file: str) -> bool:
    return file not in (__file__, load_timeout.__file__)


def told_from(error: BaseException, begins: Callable[[str], bool]) -> BaseException:
    """Leave out of a traceback how somebody else's code came to be called; ``begins`` knows its file."""
    trace = error.__traceback__
    while trace is not None and not begins(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return error.with_traceback(trace)


def wrong_with_registration(plugin: Registration) -> Iterator[str]:
    """Say what can be known to be wrong before the plugin is made."""
    if not _NAME.fullmatch(plugin.name):
        yield f"{plugin.name!r} is no name for a plugin: letters, digits, dots, dashes, not a dash first"
    if inspect.isclass(plugin.factory):
        name = getattr(plugin.factory, "name", None)
        if isinstance(name, str) and name != plugin.name:
            yield f"its name is {name!r}, it is registered as {plugin.name!r}"
        yield from wrong_with(plugin.factory)


def wrong_with(plugin: object) -> Iterator[str]:
    """Say what is wrong with the points of a plugin, or of a class of plugins."""
    misspelt = list(misspelt_methods(plugin))
    yield from misspelt
    yield from _wrong_with_needs(plugin)
    incomplete = list(_incomplete(plugin))
    if not points_of(plugin) and not misspelt and not incomplete:
        runs = "run alone is not enough; " if callable(getattr(plugin, _RUN, None)) else ""
        yield f"has no extension point; {runs}there are: {', '.join(_POINT_METHODS)}"
    yield from incomplete
    for method, arity in _ARITIES.items():
        function = getattr(plugin, method, None)
        if not callable(function):
            continue
        if method in _COROUTINES and not inspect.iscoroutinefunction(function):
            yield f"{method} must be a coroutine function: async def {method}"
        if method in _PLAIN and inspect.iscoroutinefunction(function):
            yield f"{method} must be a plain function: it is called in the midst of a decision and cannot wait"
        if not _takes(function, arity + (isinstance(plugin, type) and _is_unbound(plugin, method))):
            yield f"{method} must take {_COUNTED[arity]} beside self"


def _incomplete(plugin: object) -> Iterator[str]:
    """Say which methods are never called because another one is missing."""
    for first, second in _PAIRS:
        if hasattr(plugin, first) and not hasattr(plugin, second):
            yield f"has {first} but no {second}, and is asked for neither"
    if not Point.PRE_FILTER.is_served_by(plugin):
        for method in PRE_FILTER_EXTENSIONS:
            if hasattr(plugin, method):
                yield f"{method} is called only for plugins with {Point.PRE_FILTER.methods[0]}"


def point_methods_of(plugin: object) -> list[str]:
    """Return the methods of a plugin, or of a class, that have the name of an extension point's method."""
    return [method for method in _POINT_METHODS if callable(getattr(plugin, method, None))]


def plugin_methods_of(plugin: object) -> list[str]:
    """Return the methods that only plugins have a use for; ``run`` is not one, as many classes have it."""
    return [name for name in _KNOWN_METHODS if name != _RUN and callable(getattr(plugin, name, None))]


def _wrong_with_needs(plugin: object) -> Iterator[str]:
    """Say what is wrong with how a plugin declares that it needs the workload."""
    needs = getattr(plugin, NEEDS_WORKLOAD, False)
    if needs is not True and needs is not False:
        yield f"{NEEDS_WORKLOAD} must be True or False, not {needs!r}"
    owner = plugin if isinstance(plugin, type) else type(plugin)
    for name in dir(owner):
        if name != NEEDS_WORKLOAD and _is_nearly(_plain(name), _plain(NEEDS_WORKLOAD)):
            yield f"{name} declares nothing; did you mean {NEEDS_WORKLOAD}?"


def misspelt_methods(plugin: object) -> Iterator[str]:
    """Say which methods of a plugin, or of a class of plugins, differ from those of an extension point by one letter.

    Such a method would never be called, and nobody would warning.
    """
    owner = plugin if isinstance(plugin, type) else type(plugin)
    for name in dir(owner):
        if name.startswith("_") or name in _KNOWN_METHODS or not callable(getattr(owner, name, None)):
            continue
        meant = next((each for each in _KNOWN_METHODS if _is_nearly(_plain(name), _plain(each))), None)
        if meant is not None:
            yield (
                f"{name} is the method of no extension point; did you mean {meant}? "
                f"(a helper's name may begin with an underscore)"
            )


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _is_nearly(one: str, other: str) -> bool:
    """Tell whether two texts are equal but for one letter: more, less, another, or changed places with the next."""
    if len(one) > len(other):
        one, other = other, one
    same = next((index for index, letter in enumerate(one) if letter != other[index]), len(one))
    rest, other_rest = one[same:], other[same:]
    if len(one) < len(other):
        return rest == other_rest[1:]
    return rest[1:] == other_rest[1:] or (rest[1::-1] + rest[2:] == other_rest)


_NAME: Final = re.compile(r"\w[\w.-]*")
_POINT_METHODS: Final = tuple(method for point in Point for method in point.methods)
_RUN: Final = "run"
_COROUTINES: Final = frozenset({"permit", "pre_bind", "bind", "post_bind", _RUN})
_EITHER: Final = frozenset({"pre_filter", "pre_score", "select", "assign"})
_ARITIES: Final = {
    method: 2 if method == "less" else 1
    for method in (*_POINT_METHODS, "normalize_score", *PRE_FILTER_EXTENSIONS)
} | {_RUN: 0}
_COUNTED: Final = ("no argument", "1 argument", "2 arguments")
_KNOWN_METHODS: Final = (*_ARITIES, "filter_key", "score_key")
_PLAIN: Final = frozenset(_ARITIES) - _COROUTINES - _EITHER
_PAIRS: Final = (
    ("reserve", "unreserve"),
    ("unreserve", "reserve"),
    ("normalize_score", "score"),
    ("add_binding", "remove_binding"),
    ("remove_binding", "add_binding"),
)


def _is_unbound(plugin: type, method: str) -> bool:
    return not isinstance(inspect.getattr_static(plugin, method), (staticmethod, classmethod))


def _takes(function: Callable[..., object], count: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # no signature to be had
        return True
    return True


def _arguments(plugin: Registration, args: Mapping[str, Any] | None, handle: Handle) -> tuple[object, ...]:
    """Return the arguments for the factory of a plugin: none, or args and handle."""
    factory = plugin.factory
    if _takes(factory, 0):
        if args:
            raise ConfigError([ConfigProblem("args", "the plugin takes none")])
        return ()
    if not _takes(factory, 2):
        text = f'plugin "{plugin.name}": its factory (__init__ of a class) must take (args, handle), or no arguments'
        raise ConfigError([ConfigProblem("", text)])
    return _read_args(args, _args_type(factory)), handle


def _args_type(factory: Any) -> Any:
    """Return the annotation of the first parameter or the class ``Args`` in the plugin's class, None without either."""
    function = factory.func if isinstance(factory, functools.partial) else factory
    try:
        hints = typing.get_type_hints(function.__init__ if inspect.isclass(function) else function)
        first = next(iter(inspect.signature(factory).parameters))
    except (
        NameError,
        TypeError,
        AttributeError,
        ValueError,
    ):  # an annotation that cannot be resolved, code in C
        hints, first = {}, ""
    for hint in (hints.get(first), getattr(factory, "Args", None)):
        if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or hasattr(hint, "__attrs_attrs__")):
            return hint
    return None


def _read_args(args: Mapping[str, Any] | None, type_: Any) -> object:
    if type_ is None:
        return dict(args or {})
    try:
        return structure(dict(args or {}), type_, python_names=True)
    except ConfigError as error:
        raise ConfigError([each.below("args") for each in error.problems]) from error


def first_line(factory: Any) -> str:
    """Return the first line of a factory's docstring, "" if nobody wrote one."""
    factory = factory.func if isinstance(factory, functools.partial) else factory
    text = inspect.cleandoc(getattr(factory, "__doc__", None) or "").strip()
    generated = dataclasses.is_dataclass(factory) and text.startswith(f"{getattr(factory, '__name__', '')}(")
    return "" if generated or not text else text.splitlines()[0]
