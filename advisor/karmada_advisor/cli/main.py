"""The commands that only read: ``explain``, ``plan``, ``plugins``, ``rebalance``, ``simulate``, ``web`` and ``why-not``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, Final, Protocol

from karmada_scheduler.framework.profile.factory import Registration


class _Command(Protocol):
    """The module of a command."""

    def add_parser(self, subparsers: Any, /) -> object: ...

    def run(self, arguments: argparse.Namespace, plugins: Sequence[Registration], /) -> int: ...


COMMANDS: Final = frozenset({"explain", "plan", "plugins", "rebalance", "simulate", "web", "why-not"})


def _module_of(command: str) -> _Command:
    """Import the module of a command: the others, and those of the scheduler, take longer than many commands."""
    match command:
        case "explain":
            from karmada_advisor.cli import explain

            return explain
        case "plan":
            from karmada_advisor.cli import plan

            return plan
        case "plugins":
            from karmada_advisor.cli import plugins

            return plugins
        case "rebalance":
            from karmada_advisor.cli import rebalance

            return rebalance
        case "simulate":
            from karmada_advisor.cli import simulate

            return simulate
        case "web":
            from karmada_advisor.cli import web

            return web
        case _:
            from karmada_advisor.cli import whynot

            return whynot


def run(given: Sequence[str], plugins: Sequence[Registration]) -> int:
    """Run one command and return its exit status.

    Args:
        given: The arguments without the program's name; the first is in ``COMMANDS``.
        plugins: The plugins of a main program of the user's own; see ``karmada_scheduler.command``.
    """
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
