"""The flags of ``plugins``."""

from __future__ import annotations

import argparse
from pathlib import Path

from karmada_advisor.cli.flags import shared


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
    parser = shared.make_parser(
        "plugins",
        "List all plugins, with the same flags as the scheduler.",
        "Exit status: 0; 1 if the scheduler would not start like this. Only the problems are printed then.",
    )
    parser.add_argument("--plugins", action="append", metavar="LIST", help="as for the scheduler (default *)")
    parser.add_argument("--config", type=Path, metavar="FILE", help="configuration file")
    shared.add_plugin_directories(parser)
    parser.add_argument("--scheduler-name", help="name of the profile")
    shared.add_texts(parser, "--feature-gates", "LIST", "A=true,B=false")
    parser.add_argument("-o", "--output", choices=("json", "table"), default="table", help="default table")
    return parser
