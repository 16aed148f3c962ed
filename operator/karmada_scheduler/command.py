"""The scheduler as a command of one's own, with plugins that are compiled in, so to speak.

``sys.exit(new_scheduler_command(with_plugin("Cost", Cost))())`` is a whole program; it takes the flags of
``karmada-pyscheduler`` and lists its plugins with ``plugins``.

Source: karmada v1.18.2 cmd/scheduler/app/scheduler.go NewSchedulerCommand, WithPlugin.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Protocol

from karmada_scheduler.config.problems import ConfigProblem
from karmada_scheduler.framework.profile.factory import (
    Factory,
    Registration,
    first_doc_line,
    registration_problems,
)
from karmada_scheduler.process.process_exit import TERMINATION


class Command(Protocol):
    """Runs with these arguments, or with those of the process, and returns the exit status."""

    def __call__(self, arguments: Sequence[str] | None = None, /) -> int: ...


def with_plugin(name: str, factory: Factory) -> Registration:
    """Say that the command has a plugin; profiles and ``--plugins`` treat it like any other."""
    return Registration(name, factory, _origin(factory), first_doc_line(factory))


def new_scheduler_command(*plugins: Registration) -> Command:
    """Make a command that has some more plugins.

    If one of them cannot work, or two have the same name, the command says so and returns 1.

    Args:
        plugins: From ``with_plugin``.
    """
    problems = [ConfigProblem(each.name, text) for each in plugins for text in registration_problems(each)]
    names = [each.name for each in plugins]
    problems.extend(
        ConfigProblem("", f"register out of tree plugins error: a plugin named {name} already exists")
        for index, name in enumerate(names)
        if name in names[:index]
    )

    def command(arguments: Sequence[str] | None = None) -> int:
        for problem in problems:
            print(f"Error: {problem}", file=sys.stderr)  # noqa: T201 (a command for people)
        if problems:
            return 1
        TERMINATION.install()
        from karmada_scheduler.cli import main  # takes a second

        return main.main(arguments, plugins)

    return command


def _origin(factory: Any) -> str:
    return f"{getattr(factory, '__module__', '?')}.{getattr(factory, '__qualname__', type(factory).__name__)}"
