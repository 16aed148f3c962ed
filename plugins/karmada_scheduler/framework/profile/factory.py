"""Makes plugins, and validates them before they run.

The factory of a plugin is a class or another callable. It is called with ``(args, handle)``, or without arguments if
that is possible. ``args`` are the plugin's ``args`` of the profile, ``handle`` is a ``Handle``.

The type of the args is the annotation of the first parameter, or a class ``Args`` in the plugin's class. If it is a
dataclass or a struct of msgspec, the keys of the args are its fields, in snake case or in camel case, and their values are
validated. Without such a type a plugin gets the mapping as it is in the file.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import traceback
import typing
from collections.abc import Callable, Iterator, Mapping
from pkgutil import resolve_name
from typing import Any, Final

from karmada_scheduler.config.problems import ConfigError, ConfigProblem
from karmada_scheduler.config.structure import structure
from karmada_scheduler.framework import load_timeout
from karmada_scheduler.framework.handle import Handle
from karmada_scheduler.framework.load_timeout import LoadTimeoutError, call_in_thread
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.profile.plugin_problems import plugin_problems, takes
from karmada_scheduler.framework.runtime.plugin_call import exception_text
from karmada_scheduler.structs import Struct, is_struct

Factory = Callable[..., Plugin]
"""Makes a plugin: takes ``(args, handle)``, or no arguments."""

OURS: Final = "in-tree"
"""The origin of the plugins of this distribution."""

_NAME: Final = re.compile(r"\w[\w.-]*")


class Registration(Struct, frozen=True):
    """A known plugin.

    Attributes:
        name: The name in profiles and ``--plugins``, which must be the plugin's own ``name``.
        made_by: Makes the plugin, once per profile; a text as ``package.module:Class`` is imported when it is used.
        origin: The distribution with its version, or the file, for texts; ``OURS`` for ours.
        mandatory: Whether ``--plugins`` cannot disable it. Upstream's flag has Filter and Score plugins only, so
            ``--plugins=ClusterAffinity`` must not disable the binder.
        opt_in: Whether only a profile, or its name in ``--plugins``, enables it; ``*`` and the defaults do not.
    """

    name: str
    made_by: Factory | str
    origin: str = ""
    mandatory: bool = False
    opt_in: bool = False

    @property
    def factory(self) -> Factory:
        """What makes the plugin."""
        factory: Factory = resolve_name(self.made_by) if isinstance(self.made_by, str) else self.made_by
        return factory

    @property
    def doc(self) -> str:
        """The first line of the factory's docstring, "" without one."""
        factory: Any = self.factory.func if isinstance(self.factory, functools.partial) else self.factory
        found = getattr(factory, "__doc__", None)
        text = inspect.cleandoc(found).strip() if isinstance(found, str) else ""
        generated = dataclasses.is_dataclass(factory) and text.startswith(
            f"{getattr(factory, '__name__', '')}("
        )
        return "" if generated or not text else text.splitlines()[0]


def make(plugin: Registration, args: Mapping[str, Any] | None, handle: Handle) -> Plugin:
    """Return a new plugin for a profile. Its factory runs in a thread with a timeout, and the result is checked.

    Ours are not: their tests do both.

    Args:
        plugin: The registration.
        args: The args in the profile's ``pluginConfig``, None without an entry.
        handle: The handle for the plugin.

    Raises:
        ConfigError: The args are invalid (paths begin with ``args``), the factory raised or exceeded its timeout, or
            the result is no plugin of that name. It has as many problems as possible.
    """
    given = _arguments(plugin, args, handle)
    try:
        factory = plugin.factory
        made = factory(*given) if plugin.origin == OURS else call_in_thread(lambda: factory(*given))
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        hangs = isinstance(error, LoadTimeoutError)
        cause = None if hangs else with_traceback_from(error, _is_plugin_file)
        what = str(error) if hangs else f"{exception_text(error)}{_place_of(error)}"
        text = f'failed to initialize plugin "{plugin.name}": {what}'
        raise ConfigError([ConfigProblem("", text, cause)]) from error
    texts = [] if plugin.origin == OURS else list(plugin_problems(made))
    name = getattr(made, "name", None)
    if name != plugin.name:
        texts.insert(0, f"its name is {name!r}, it is registered as {plugin.name!r}")
    if texts:
        raise ConfigError([ConfigProblem("", f'plugin "{plugin.name}": {text}') for text in texts])
    return made


def _place_of(error: BaseException) -> str:
    """Return the line of the plugin's file at which the factory raised, as a text."""
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    lines = [line for file, line in places if file == places[0][0] and _is_plugin_file(file)]
    return f" (line {lines[-1]} of {places[0][0]})" if lines else ""


def _is_plugin_file(file: str) -> bool:
    return file not in (__file__, load_timeout.__file__)


def with_traceback_from(error: BaseException, begins: Callable[[str], bool]) -> BaseException:
    """Return the error with its traceback from the first frame on whose file ``begins`` accepts."""
    trace = error.__traceback__
    while trace is not None and not begins(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return error.with_traceback(trace)


def registration_problems(plugin: Registration) -> Iterator[str]:
    """Yield the problems of a registration that are known before the plugin is made."""
    if not _NAME.fullmatch(plugin.name):
        yield f"{plugin.name!r} is no name for a plugin: letters, digits, dots, dashes, not a dash first"
    if inspect.isclass(plugin.factory):
        name = getattr(plugin.factory, "name", None)
        if isinstance(name, str) and name != plugin.name:
            yield f"its name is {name!r}, it is registered as {plugin.name!r}"
        yield from plugin_problems(plugin.factory)


def _arguments(plugin: Registration, args: Mapping[str, Any] | None, handle: Handle) -> tuple[object, ...]:
    """Return the arguments for the factory of a plugin: none, or args and handle."""
    factory = plugin.factory
    if takes(factory, 0):
        if args:
            raise ConfigError([ConfigProblem("args", "the plugin takes none")])
        return ()
    if not takes(factory, 2):
        text = f'plugin "{plugin.name}": its factory (__init__ of a class) must take (args, handle), or no arguments'
        raise ConfigError([ConfigProblem("", text)])
    return _read_args(args, _args_type(factory)), handle


def _args_type(factory: Any) -> Any:
    """Return the annotation of the first parameter or the class ``Args`` in the plugin's class, None without either."""
    function = factory.func if isinstance(factory, functools.partial) else factory
    try:
        hints = typing.get_type_hints(function.__init__ if inspect.isclass(function) else function)
        first = next(iter(inspect.signature(factory).parameters))
    except (NameError, TypeError, AttributeError, ValueError):
        hints, first = {}, ""  # an annotation that cannot be resolved, code in C
    for hint in (hints.get(first), getattr(factory, "Args", None)):
        known = dataclasses.is_dataclass(hint) or is_struct(hint) or hasattr(hint, "__attrs_attrs__")
        if isinstance(hint, type) and known:
            return hint
    return None


def _read_args(args: Mapping[str, Any] | None, type_: Any) -> object:
    if type_ is None:
        return dict(args or {})
    try:
        return structure(dict(args or {}), type_, python_names=True)
    except ConfigError as error:
        raise ConfigError([problem.below("args") for problem in error.problems]) from error
