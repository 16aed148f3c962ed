"""The scheduler as a command with built-in plugins of one's own.

``sys.exit(new_scheduler_command(with_plugin("Cost", Cost))())`` is a complete program. It has the flags and commands of
``karmada-pyscheduler``.

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
    """Runs the scheduler with these arguments, or those of the process, and returns the exit status."""

    def __call__(self, arguments: Sequence[str] | None = None, /) -> int: ...


def with_plugin(name: str, factory: Factory) -> Registration:
    """Return the registration of a plugin; profiles and ``--plugins`` treat it like any other."""
    return Registration(name, factory, _origin(factory), first_doc_line(factory))


def new_scheduler_command(*plugins: Registration) -> Command:
    """Return a command with additional plugins.

    If a plugin has problems, or two have the same name, the command prints the problems and returns 1.

    Args:
        plugins: The results of ``with_plugin``.
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
            print(f"Error: {problem}", file=sys.stderr)  # noqa: T201 (a command)
        if problems:
            return 1
        TERMINATION.install()
        from karmada_scheduler.cli import main  # takes a second

        return main.main(arguments, plugins)

    return command


def _origin(factory: Any) -> str:
    return f"{getattr(factory, '__module__', '?')}.{getattr(factory, '__qualname__', type(factory).__name__)}"
