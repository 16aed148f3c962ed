"""The flags of ``plugins``."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from karmada_advisor.cli.flags import shared


def plugins_parser() -> argparse.ArgumentParser:
    """Return the parser of plugins's arguments."""
    parser = shared.make_parser(
        "plugins",
        "List all plugins, with the same flags as the scheduler.",
        "Exit status: 0; 1 if the scheduler would not start like this. Only the problems are printed then.",
    )
    add = partial(shared.add, parser)
    add("--plugins LIST...", "as for the scheduler (default *)", default=None)
    add("--config FILE", "configuration file", Path)
    shared.add_plugin_directories(parser)
    add("--scheduler-name NAME", "name of the profile", default=None)
    add("--feature-gates LIST...", "A=true,B=false")
    add("-o --output json|table", "what to print", default="table")
    return parser
