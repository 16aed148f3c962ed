"""Plugins of installed packages: entry points of one group."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Final

from karmada_scheduler import logs
from karmada_scheduler.config.problems import ConfigError, ConfigProblem
from karmada_scheduler.framework.load_timeout import LoadTimeoutError, call_in_thread
from karmada_scheduler.framework.profile.factory import Registration, registration_problems

if TYPE_CHECKING:
    from importlib import metadata

GROUP: Final = "karmada_scheduler.plugins"
"""``[project.entry-points."karmada_scheduler.plugins"]`` in a plugin package's pyproject.toml."""

_DISTRIBUTIONS: Final = (".dist-info", ".egg-info", ".egg")


def installed() -> list[Registration]:
    """Return the plugins of installed packages, sorted by distribution and name.

    Raises:
        ConfigError: An entry point cannot be imported or is no plugin; with all problems.
    """
    problems: list[ConfigProblem] = []
    plugins = []
    for entry in sorted(_entry_points(), key=lambda each: (_origin(each), each.name)):
        place = f"{entry.name} = {entry.value} ({_origin(entry)})"
        try:
            logs.follow(entry.module)
            factory = call_in_thread(entry.load)
        except LoadTimeoutError as error:
            problems.append(ConfigProblem(place, str(error)))
            continue
        except (Exception, SystemExit) as error:  # noqa: BLE001 (code of the package)
            problems.append(ConfigProblem(place, f"{type(error).__name__}: {error}", error))
            continue
        if not callable(factory):
            problems.append(ConfigProblem(place, "is neither a class nor a function that makes a plugin"))
            continue
        plugin = Registration(entry.name, factory, _origin(entry))
        problems.extend(ConfigProblem(place, text) for text in registration_problems(plugin))
        plugins.append(plugin)
    if problems:
        raise ConfigError(problems)
    return plugins


def _entry_points() -> Iterable[metadata.EntryPoint]:
    """Return the entry points of the group; ``importlib.metadata`` is slow to import and to search, so only if there are any."""
    if not may_have_entry_points(sys.path):
        return ()
    from importlib import metadata

    return metadata.entry_points(group=GROUP)


def may_have_entry_points(folders: Iterable[str]) -> bool:
    """Return whether a distribution in some folders may have entry points of the group.

    True also if one is in an archive, or is found by anything else than a look into the folders.
    """
    if any(finder is not PathFinder and hasattr(finder, "find_distributions") for finder in sys.meta_path):
        return True
    return any(_may_have(Path(folder or ".")) for folder in folders)


def _may_have(folder: Path) -> bool:
    if folder.is_file():  # an archive
        return True
    try:
        found = [entry for entry in os.scandir(folder) if entry.name.endswith(_DISTRIBUTIONS)]
    except OSError:
        return False
    return any(_names_group(path) for path in found)


def _names_group(distribution: os.DirEntry[str]) -> bool:
    is_egg = distribution.name.endswith(".egg")
    if is_egg and distribution.is_file():
        return True
    folder = Path(distribution, "EGG-INFO") if is_egg else Path(distribution)
    try:
        return GROUP.encode() in (folder / "entry_points.txt").read_bytes()
    except OSError:
        return False


def _origin(entry: metadata.EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "installed"
