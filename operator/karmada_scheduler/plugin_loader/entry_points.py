"""Plugins of installed packages: entry points of one group."""

from __future__ import annotations

from importlib import metadata
from typing import Final

from karmada_scheduler import logs
from karmada_scheduler.config.problems import ConfigError, ConfigProblem
from karmada_scheduler.framework.load_timeout import LOAD_SECONDS, LoadTimeoutError, call_in_thread
from karmada_scheduler.framework.profile.factory import Registration, first_doc_line, registration_problems

GROUP: Final = "karmada_scheduler.plugins"
"""``[project.entry-points."karmada_scheduler.plugins"]`` in a plugin package's pyproject.toml."""


def installed() -> list[Registration]:
    """Return the plugins of installed packages, sorted by distribution and name.

    Raises:
        ConfigError: An entry point cannot be imported or is no plugin; with all problems.
    """
    problems: list[ConfigProblem] = []
    plugins = []
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda each: (_origin(each), each.name)):
        place = f"{entry.name} = {entry.value} ({_origin(entry)})"
        try:
            logs.follow(entry.module)
            factory = call_in_thread(entry.load, seconds=LOAD_SECONDS)
        except LoadTimeoutError as error:
            problems.append(ConfigProblem(place, str(error)))
            continue
        except (Exception, SystemExit) as error:  # noqa: BLE001 (code of the package)
            problems.append(ConfigProblem(place, f"{type(error).__name__}: {error}", error))
            continue
        if not callable(factory):
            problems.append(ConfigProblem(place, "is neither a class nor a function that makes a plugin"))
            continue
        plugin = Registration(entry.name, factory, _origin(entry), first_doc_line(factory))
        problems.extend(ConfigProblem(place, text) for text in registration_problems(plugin))
        plugins.append(plugin)
    if problems:
        raise ConfigError(problems)
    return plugins


def _origin(entry: metadata.EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "installed"
