"""The commands that only read, by name. The flags are parsed before anything that a command runs with is imported."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_scheduler.process.memory import no_collection

if TYPE_CHECKING:
    import argparse
    from types import ModuleType

    from karmada_scheduler.framework.profile.factory import Registration

COMMANDS: Final[Mapping[str, str]] = {
    "completion": "offline",
    "explain": "placement",
    "plan": "what_if",
    "plugins": "offline",
    "rebalance": "what_if",
    "simulate": "offline",
    "status": "placement",
    "survive": "what_if",
    "test": "offline",
    "web": "web",
    "why-not": "placement",
}
"""The module of ``cli.flags`` with the parser of each command. ``cli.COMMAND`` has ``answer``, or ``run``, which prints; the page is
above the command line: ``web.command``."""


COMPLETE: Final = "__complete"
"""What shells and kubectl call to complete a line; it is no command for people."""

_OVERVIEW: Final = """\
{program}: a scheduler for Karmada, and answers about placement

Ask (these only read)       status, explain, why-not, plan, survive, rebalance, web
Without a control plane     test, simulate, plugins
Run the scheduler           karmada-pyscheduler [flags]; its flags: scheduler --help
Shell                       completion bash|zsh|fish

Examples
  {program} status                     which schedulers decide, and what runs
  {program} explain deploy/web         why it is where it is
  {program} explain -A                 all bindings by state and cause, the worst first
  {program} why-not deploy/web m1      why the cluster m1 has none of it, and what would change that
  {program} plan -f policies/          what an edit would move
  {program} test tests/                placement tests: what policies do, in CI
  {program} survive                    what the loss of each cluster, zone and region would take down

{program} COMMAND --help has the flags of a command.
Exit status: 0 all is well; 1 it is not, such as a binding that is not placed; 2 there is no answer.
"""


def overview() -> str:
    """Return the help of the program."""
    from karmada_advisor.cli.flags.shared import program

    return _OVERVIEW.format(program=program())


def is_command(name: str) -> bool:
    """Return whether ``run`` knows a command."""
    return name in COMMANDS or name == COMPLETE


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command's arguments."""
    flags = importlib.import_module(f"karmada_advisor.cli.flags.{COMMANDS[name]}")
    parser: argparse.ArgumentParser = getattr(flags, f"{_module_name(name)}_parser")()
    return parser


def _module_name(command: str) -> str:
    return command.replace("-", "")


def run(given: Sequence[str], plugins: Sequence[Registration]) -> int:
    """Run one command and return its exit status.

    Args:
        given: The arguments without the program's name; the first is in ``COMMANDS``.
        plugins: The plugins of a main program of the user's own; see ``karmada_scheduler.command``.
    """
    if given[0] == COMPLETE:
        from karmada_advisor.cli import completion

        return completion.complete(given[1:])
    with no_collection():
        arguments = parser_of(given[0]).parse_intermixed_args(given[1:])
        module = "web.command" if given[0] == "web" else f"cli.{_module_name(given[0])}"
        command = importlib.import_module(f"karmada_advisor.{module}")
        gc.freeze()  # modules live as long as the command; the first collection would go through all of them
    try:
        status = _run(command, arguments, plugins)
        sys.stdout.flush()
    except NoAnswerError as error:
        from karmada_advisor.cli.output import NO_ANSWER, print_failure

        print_failure(error)
        return NO_ANSWER
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`). The interpreter flushes again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    return status


def _run(command: ModuleType, arguments: argparse.Namespace, plugins: Sequence[Registration]) -> int:
    status: int
    if hasattr(command, "answer"):
        from karmada_advisor.cli.output import print_answer

        status = print_answer(arguments, lambda: command.answer(arguments, plugins))
    else:
        status = command.run(arguments, plugins)
    return status
