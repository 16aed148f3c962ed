"""The flags of ``explain``."""

from __future__ import annotations

import argparse
from typing import Final

from karmada_advisor.cli.flags import shared

_REMEDY_SECONDS: Final = 2.0
_WATCH_SECONDS: Final = 600.0


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
    parser = shared.make_parser(
        "explain",
        "Explain the placement of a binding: the answer, the step that decided it, and the evidence. "
        "(karmadactl explain is another command: it documents the fields of an object.)",
        "Exit status: 0 it is placed, or has nothing to place; 1 it is not placed; 2 there is no answer "
        "(bad input, unknown binding, forbidden).",
    )
    parser.add_argument(
        "name",
        nargs="*",
        default=[],
        metavar="[NS/][KIND/]NAME",
        help="the binding (rb/NAME, crb/NAME), or the workload that it propagates (deploy/NAME, or deploy NAME)",
    )
    parser.add_argument(
        "-n",
        "--namespace",
        default="",
        help="namespace of the binding (default: that of the context, or default); without a name, all bindings in it",
    )
    _add_scope(parser)
    shared.add_objects(parser, replays_rules=True)
    shared.add_quotas(parser)
    shared.add_rules(parser)
    shared.add_process(
        parser,
        "for its record and its queue",
        "; its profiles, plugins, arguments and feature gates are used",
    )
    shared.add_text(
        parser,
        "--capture",
        "FILE",
        "also write all that the answer is made of into a file, for --replay and for bug reports",
    )
    parser.add_argument(
        "--anonymise",
        action="store_true",
        help="with --capture: replace names by numbers, so that the reasons stay the same",
    )
    parser.add_argument(
        "--no-remedies",
        dest="remedies",
        action="store_false",
        help="do not search for changes that place a binding which is not placed",
    )
    parser.add_argument(
        "--timeout",
        type=shared.seconds,
        default=_REMEDY_SECONDS,
        metavar="TIME",
        help=f"of that search (default {_REMEDY_SECONDS:g}s); why-not searches on",
    )
    shared.add_output(parser, "markdown", "html", "name", "wide")
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="only the answer, the steps, and what is wrong"
    )
    parser.add_argument(
        "-w",
        "--watch",
        nargs="?",
        type=shared.seconds,
        const=_WATCH_SECONDS,
        metavar="TIME",
        help=f"print each change of the state until the binding is placed, for this time at most (default {_WATCH_SECONDS:g}s)",
    )
    return parser


def _add_scope(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name many bindings."""
    group = parser.add_argument_group("all bindings by state and cause, instead of one binding")
    group.add_argument(
        "-A", "--all-namespaces", action="store_true", help="of all namespaces, and those without one"
    )
    shared.add_text(group, "--policy", "[NS/]NAME", "those that this policy claims, of all namespaces")
    group.add_argument(
        "-l",
        "--selector",
        default="",
        metavar="SELECTOR",
        help="those of -n or -A with these labels: app=web,tier in (a,b),!canary",
    )
    shared.add_text(group, "--on", "CLUSTER", "those that are on this cluster")
