"""The commands that only read, by name. The flags are parsed before anything that a command runs with is imported."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from karmada_advisor.cli.collection import no_collection

if TYPE_CHECKING:
    from karmada_scheduler.framework.profile.factory import Registration

COMMANDS: Final[Mapping[str, str]] = {
    "explain": "explain",
    "plan": "plan",
    "plugins": "plugins",
    "rebalance": "rebalance",
    "simulate": "simulate",
    "web": "web",
    "why-not": "whynot",
}
"""The module of each command: ``cli.flags.MODULE`` has ``make_parser``, and ``cli.MODULE`` has ``run``."""


def run(given: Sequence[str], plugins: Sequence[Registration]) -> int:
    """Run one command and return its exit status.

    Args:
        given: The arguments without the program's name; the first is in ``COMMANDS``.
        plugins: The plugins of a main program of the user's own; see ``karmada_scheduler.command``.
    """
    module = COMMANDS[given[0]]
    flags = importlib.import_module(f"karmada_advisor.cli.flags.{module}")
    arguments = flags.make_parser().parse_intermixed_args(given[1:])
    with no_collection():
        command = importlib.import_module(f"karmada_advisor.cli.{module}")
    try:
        status: int = command.run(arguments, plugins)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`). The interpreter flushes again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    return status
