"""The command line: the scheduler, and the commands ``explain``, ``plan``, ``plugins``,
``rebalance``, ``simulate``, ``web`` and ``why-not``.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, Final, Protocol

from karmada_scheduler import __version__, logs
from karmada_scheduler.config import flags
from karmada_scheduler.config.options import Options
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.framework.profile.factory import Registration

log = logging.getLogger(__name__)


class _Command(Protocol):
    """The module of a command."""

    def add_parser(self, subparsers: Any, /) -> object: ...

    def run(self, arguments: argparse.Namespace, plugins: Sequence[Registration], /) -> int: ...


_COMMANDS: Final = frozenset({"explain", "plan", "plugins", "rebalance", "simulate", "web", "why-not"})


def _module_of(command: str) -> _Command:
    """Import the module of a command: the others, and those of the scheduler, take longer than many commands."""
    match command:
        case "explain":
            from karmada_scheduler.cli import explain

            return explain
        case "plan":
            from karmada_scheduler.cli import plan

            return plan
        case "plugins":
            from karmada_scheduler.cli import plugins

            return plugins
        case "rebalance":
            from karmada_scheduler.cli import rebalance

            return rebalance
        case "simulate":
            from karmada_scheduler.cli import simulate

            return simulate
        case "web":
            from karmada_scheduler.cli import web

            return web
        case _:
            from karmada_scheduler.cli import whynot

            return whynot


def main(arguments: Sequence[str] | None = None, plugins: Sequence[Registration] = ()) -> int:
    """Run one command and return its exit status: 0, or 1 after an error.

    Args:
        arguments: The arguments without the program's name; None for those of the process.
        plugins: The plugins of a main program of the user's own; see ``command``.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["help"]:
        given = [*given[1:2], "--help"]
    if given[:1] == ["version"] or "--version" in given:
        print(f"karmada-pyscheduler version: {__version__}")
        return 0
    if given and given[0] in _COMMANDS:
        return _command(given, plugins)
    try:
        chosen = flags.parse(given)
    except flags.OptionsError as problems:
        for line in str(problems).splitlines():
            print(f"Error: {line}", file=sys.stderr)
        print("Run 'karmada-pyscheduler --help' for the flags.", file=sys.stderr)
        return 1
    return _schedule(chosen, plugins)


def _command(given: Sequence[str], plugins: Sequence[Registration]) -> int:
    parser = argparse.ArgumentParser(prog="karmada-pyscheduler")
    subparsers = parser.add_subparsers(dest="command", required=True)
    module = _module_of(given[0])
    module.add_parser(subparsers)
    arguments, unknown = parser.parse_known_args(given)
    if unknown:
        subparsers.choices[arguments.command].error(f"unrecognized arguments: {' '.join(unknown)}")
    try:
        status = module.run(arguments, plugins)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`). The interpreter flushes again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    return status


def _schedule(options: Options, plugins: Sequence[Registration]) -> int:
    """Run the scheduler; the process then ends without waiting for the rest of its event loop and threads."""
    import uvloop

    from karmada_scheduler import app
    from karmada_scheduler.client.identity import ConnectionConfigError
    from karmada_scheduler.process import process_exit
    from karmada_scheduler.process.server import ListenError

    logs.configure(verbosity_level=options.verbosity, json_format=options.logging_format == "json")
    status = 0
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    try:
        runner.run(app.run(options, plugins))
    except* ConfigError as problems:
        for error in _leaves(problems):
            _log_problems(error)
        status = 1
    except* (ConnectionConfigError, ListenError) as problems:
        for error in _leaves(problems):
            log.error("%s", error)  # noqa: TRY400 (the text is complete)
        status = 1
    except* Exception:
        log.exception("The scheduler failed")
        status = 1
    process_exit.end(status)
    runner.close()  # only where ``end`` is replaced, in tests
    return status


def _log_problems(error: BaseException) -> None:
    """Log every problem of a configuration, with the traceback of an error of a plugin."""
    assert isinstance(error, ConfigError)
    for problem in error.problems:
        log.error("couldn't create scheduler: %s", problem, exc_info=problem.cause)


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    leaves: list[BaseException] = []
    for error in group.exceptions:
        leaves.extend(_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    return leaves
