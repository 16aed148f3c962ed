"""The command line: the scheduler itself, and what can be asked of it without running it."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence
from typing import Final

import uvloop

from karmada_scheduler import __version__, app, logs, simulate
from karmada_scheduler.client.connection import ConnectionConfigError
from karmada_scheduler.config import options
from karmada_scheduler.server import ListenError

log = logging.getLogger(__name__)


_COMMANDS: Final = {"simulate": simulate}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, or 1 when it could not do what was asked."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["version"]:
        print(f"karmada-pyscheduler version: {__version__}")
        return 0
    if given and given[0] in _COMMANDS:
        return _command(given)
    try:
        chosen = options.parse(given)
    except options.OptionsError as mistakes:
        for line in str(mistakes).splitlines():
            print(f"Error: {line}", file=sys.stderr)
        print("Run 'karmada-pyscheduler --help' for the flags.", file=sys.stderr)
        return 1
    return _schedule(chosen)


def _command(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="karmada-pyscheduler")
    subparsers = parser.add_subparsers(dest="command", required=True)
    for module in _COMMANDS.values():
        module.add_parser(subparsers)
    arguments = parser.parse_args(given)
    status: int = _COMMANDS[arguments.command].run(arguments)
    return status


def _schedule(chosen: options.Options) -> int:
    logs.configure(verbosity_level=chosen.verbosity, json_format=chosen.logging_format == "json")
    status = 0
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(app.run(chosen))
    except* (ConnectionConfigError, ListenError, app.LeadershipLostError) as problems:
        for problem in _leaves(problems):
            log.error("%s", problem)  # noqa: TRY400 (the text says it all)
        status = 1
    return status


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    leaves: list[BaseException] = []
    for error in group.exceptions:
        leaves.extend(_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    return leaves
