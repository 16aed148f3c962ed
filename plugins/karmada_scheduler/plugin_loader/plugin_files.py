"""Loads the plugins of a file, without ``sys.path`` and without cached bytecode.

Every version of a file is a new module, so bindings that are being scheduled continue with the previous version.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import itertools
import logging
import re
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from karmada_scheduler.config.problems import ConfigError, ConfigProblem, nearest
from karmada_scheduler.framework.extension_points import is_plugin
from karmada_scheduler.framework.load_timeout import LoadTimeoutError, call_in_thread
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.profile.factory import (
    Registration,
    registration_problems,
    with_traceback_from,
)
from karmada_scheduler.framework.profile.plugin_problems import (
    misspelt_method_problems,
    plugin_methods_of,
    plugin_problems,
    point_methods_of,
)
from karmada_scheduler.plugin_loader.helper_modules import NO_HELPERS, BytesLoader, HelperModules, is_helper

log = logging.getLogger(__name__)

DECLARED: Final = "PLUGINS"
"""The name of an optional mapping from names to factories in a file; by default the file's plugin classes are taken."""

_IMPORT_NAME: Final = re.compile(r"cannot import name '(\w+)'")
_versions: Final = itertools.count(1)


def load(
    path: Path, content: bytes, helpers: HelperModules = NO_HELPERS
) -> tuple[str, tuple[Registration, ...]]:
    """Execute a file, and return its plugins.

    Args:
        path: The path, for tracebacks and as the origin of the plugins.
        content: The content of the file, which is not read again.
        helpers: The helper files that it may import.

    Returns:
        The name of the module, and at least one plugin, in the order of the file.

    Raises:
        ConfigError: The file cannot be executed, has no plugin, or a plugin has problems.
    """
    stem = re.sub(r"\W", "_", path.stem)
    name = f"{helpers.package}.{stem}_v{next(_versions)}"
    specification = importlib.util.spec_from_file_location(name, path, loader=BytesLoader(path, content))
    assert specification is not None  # there is a loader
    assert specification.loader is not None
    loader, module = specification.loader, importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # dataclasses read their module from sys.modules
    try:
        call_in_thread(lambda: loader.exec_module(module), file=str(path))
        plugins = tuple(_plugins_of(module, str(path)))
        problems = [
            ConfigProblem(str(path), f"{_display_name(plugin)}: {text}")
            for plugin in plugins
            for text in registration_problems(plugin)
        ]
        if problems:
            raise ConfigError(problems)  # noqa: TRY301 (unloaded below)
    except ConfigError:
        unload(name)
        raise
    except LoadTimeoutError as error:
        unload(name)
        raise ConfigError([ConfigProblem(str(path), str(error))]) from error
    except (Exception, SystemExit) as error:
        unload(name)
        own = with_traceback_from(error, lambda file: file == str(path))
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, ImportError):
            text = _import_text(error, text, path.parent, helpers)
        raise ConfigError([ConfigProblem(str(path), text, own)]) from error
    return name, plugins


def _import_text(error: ImportError, text: str, folder: Path, helpers: HelperModules) -> str:
    """Return the text of an ImportError without the internal name of the directory's package."""
    if error.name in helpers.names:
        return f"{text}; write: from . import {error.name}"
    wanted = (error.name or "").removeprefix(f"{helpers.package}.")
    if error.name == helpers.package and (found := _IMPORT_NAME.search(str(error))):  # from . import _prices
        wanted = found[1]
    if wanted != error.name and wanted not in helpers.names:
        hint = nearest(wanted, helpers.names).strip()
        if not is_helper(Path(wanted)):
            hint = "begin a helper file's name with an underscore"
        return f"{type(error).__name__}: no {wanted}.py in {folder}{'; ' if hint else ''}{hint}"
    return text.replace(f"{helpers.package}.", "")


def unload(module: str) -> None:
    """Remove the module of a version; its plugins stay usable."""
    sys.modules.pop(module, None)


def _display_name(plugin: Registration) -> str:
    return plugin.factory.__name__ if isinstance(plugin.factory, type) else plugin.name


def _plugins_of(module: types.ModuleType, origin: str) -> Iterator[Registration]:
    declared = getattr(module, DECLARED, None)
    if declared is not None:
        yield from _declared(declared, origin)
        return
    classes = _classes_of(module)
    plugins = [kind for kind in classes.values() if is_plugin(kind)]
    others = [kind for kind in classes.values() if not is_plugin(kind)]
    broken = [
        kind for kind in others if isinstance(getattr(kind, "name", None), str) and _resembles_plugin(kind)
    ]
    problems = [
        ConfigProblem(origin, f"{kind.__name__}: {text}") for kind in broken for text in plugin_problems(kind)
    ]
    unused = [text for kind in others for text in _unused(kind)]
    if problems:
        raise ConfigError(problems)
    if not plugins:
        text = "; ".join(
            [
                "has no plugin: no class with a name and an extension point",
                *(unused or ["begin the name of a helper file with an underscore"]),
            ]
        )
        raise ConfigError([ConfigProblem(origin, text)])
    for text in unused:
        log.warning("%s: %s, so it is no plugin", origin, text)
    for plugin in plugins:
        yield Registration(cast("type[Plugin]", plugin).name, plugin, origin)


def _classes_of(module: types.ModuleType) -> dict[str, type]:
    """Return the classes of a file that may be plugins, by name.

    Excluded are names that begin with an underscore, abstract classes, exceptions, and classes that are no plugins but
    the base of another class of the file.
    """
    defined = {
        kind: name
        for name, kind in reversed(vars(module).items())
        if isinstance(kind, type) and kind.__module__ == module.__name__
    }
    bases = {base for kind in defined for base in kind.__mro__[1:]}
    return {
        name: kind
        for kind, name in reversed(defined.items())
        if not name.startswith("_")
        and not inspect.isabstract(kind)
        and not issubclass(kind, BaseException)
        and (is_plugin(kind) or kind not in bases)
    }


def _resembles_plugin(candidate: type) -> bool:
    """Return whether a class with a name is a plugin with problems, and no helper class."""
    return bool(plugin_methods_of(candidate)) or any(misspelt_method_problems(candidate))


def _unused(candidate: type) -> Iterator[str]:
    """Yield the part of a plugin that a class lacks; it may be a helper class."""
    methods = point_methods_of(candidate)
    if isinstance(getattr(candidate, "name", None), str):
        if not dataclasses.is_dataclass(candidate):
            yield f"{candidate.__name__} has a name and no extension point"
    elif methods:
        yield f"{candidate.__name__} has {' and '.join(methods)} and no name"


def _declared(declared: Any, origin: str) -> Iterator[Registration]:
    if not isinstance(declared, Mapping) or not declared:
        raise ConfigError([ConfigProblem(origin, f"{DECLARED} must map names to classes or functions")])
    for name, factory in declared.items():
        if not isinstance(name, str) or not callable(factory):
            raise ConfigError([ConfigProblem(origin, f"{DECLARED}[{name!r}] must be a class or a function")])
        yield Registration(name, factory, origin)
