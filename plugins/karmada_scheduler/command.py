"""The command line, and the scheduler as a command with built-in plugins of one's own.

What only one of the commands needs is imported where it starts.

``sys.exit(new_scheduler_command(with_plugin("Cost", Cost))())`` is a complete program. It has the flags and commands of
``karmada-pyscheduler``.

Source: karmada v1.18.2 cmd/scheduler/app/scheduler.go NewSchedulerCommand, WithPlugin.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from karmada_scheduler import __version__
from karmada_scheduler.process.process_exit import TERMINATION

if TYPE_CHECKING:
    from karmada_scheduler.framework.profile.factory import Factory, Registration

_COMMANDS: Final = "karmada_advisor.cli.commands"
"""The module with the commands that only read, named in text: the scheduler runs without it and never imports it."""

_PROCESS: Final = "karmada_pyscheduler.program"
"""The module that runs the scheduler, named in text: the library does not import what is built on it."""


class Command(Protocol):
    """Runs the scheduler with these arguments, or those of the process, and returns the exit status."""

    def __call__(self, arguments: Sequence[str] | None = None, /) -> int: ...


def with_plugin(name: str, factory: Factory) -> Registration:
    """Return the registration of a plugin; profiles and ``--plugins`` treat it like any other."""
    from karmada_scheduler.framework.profile.factory import Registration

    return Registration(name, factory, _origin(factory))


def new_scheduler_command(*plugins: Registration) -> Command:
    """Return a command with additional plugins.

    If a plugin has problems, or two have the same name, the command prints the problems and returns 1.

    Args:
        plugins: The results of ``with_plugin``.
    """
    from karmada_scheduler.config.problems import ConfigProblem
    from karmada_scheduler.framework.profile.factory import registration_problems

    problems = [ConfigProblem(each.name, text) for each in plugins for text in registration_problems(each)]
    names = [plugin.name for plugin in plugins]
    problems.extend(
        ConfigProblem("", f"register out of tree plugins error: a plugin named {name} already exists")
        for index, name in enumerate(names)
        if name in names[:index]
    )

    def command(arguments: Sequence[str] | None = None) -> int:
        for problem in problems:
            print(f"Error: {problem}", file=sys.stderr)
        if problems:
            return 1
        TERMINATION.install()
        return main(arguments, plugins)

    return command


def main(arguments: Sequence[str] | None = None, plugins: Sequence[Registration] = ()) -> int:
    """Run one command and return its exit status: 0, or 1 after an error.

    Args:
        arguments: The arguments without the program's name; None for those of the process.
        plugins: The plugins of a main program of the user's own; see ``new_scheduler_command``.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["help"]:
        given = [*given[1:2], "--help"]
    if given[:1] == ["scheduler"]:
        given = given[1:]
    elif given[:1] in (["-h"], ["--help"]) and importlib.util.find_spec(_COMMANDS.partition(".")[0]):
        print(importlib.import_module(_COMMANDS).overview(), end="")
        return 0
    if given[:1] == ["version"] or "--version" in given:
        print(f"karmada-pyscheduler version: {__version__}")
        return 0
    if given and not given[0].startswith("-"):
        commands = importlib.import_module(_COMMANDS)
        if commands.is_command(given[0]):
            status: int = commands.run(given, plugins)
            return status
    from karmada_scheduler.config import flags

    try:
        chosen = flags.parse(given)
    except flags.OptionsError as problems:
        for line in str(problems).splitlines():
            print(f"Error: {line}", file=sys.stderr)
        print("Run 'karmada-pyscheduler scheduler --help' for the flags.", file=sys.stderr)
        return 1
    ended: int = importlib.import_module(_PROCESS).run(chosen, plugins)
    return ended


def kubectl_plugin() -> int:
    """Run ``kubectl pyscheduler``, which only reads, and return the exit status."""
    given = sys.argv[1:] or ["--help"]
    from karmada_scheduler.config import flags, problems

    verbs = [name for name in flags.COMMANDS if name != "scheduler"]
    is_help = given[0] in ("-h", "--help", "--version") or given in (
        ["scheduler", "-h"],
        ["scheduler", "--help"],
    )
    if is_help or given[0] in (*verbs, "__complete"):
        return main(given)
    guess = problems.nearest(given[0], verbs)
    print(
        f"Error: kubectl pyscheduler begins with a command; {guess}commands: {', '.join(verbs)}",
        file=sys.stderr,
    )
    print("It never schedules: 'karmada-pyscheduler scheduler' does.", file=sys.stderr)
    return 2


def _origin(factory: Any) -> str:
    return f"{getattr(factory, '__module__', '?')}.{getattr(factory, '__qualname__', type(factory).__name__)}"
