"""The flags of ``status``."""

from __future__ import annotations

import argparse
from typing import Final

from karmada_advisor.cli.flags import shared

_WAIT_SECONDS: Final = 300.0


def status_parser() -> argparse.ArgumentParser:
    """Return the parser of status's arguments."""
    parser = shared.make_parser(
        "status",
        "Show which schedulers the bindings name, whether they decide, by which version and rules, and how many bindings "
        "and replicas they have placed; when certificates end; and what of that you may not read.",
        "Exit status: 0 every scheduler that a binding names decides; 1 one does not, or what is read does not tell; "
        "2 there is no answer.",
    )
    shared.add_objects(parser)
    shared.add_scheduler_manifest(parser, "its version, gates and plugins are shown")
    shared.add_process(parser, "whose version, rules and queue are shown")
    text = f"wait until the exit status is 0, for this time at most (default {_WAIT_SECONDS:g}s)"
    shared.add(parser, "--wait TIME", text, shared.seconds, nargs="?", const=_WAIT_SECONDS)
    shared.add_output(parser)
    return parser
