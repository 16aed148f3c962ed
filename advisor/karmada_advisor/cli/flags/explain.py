"""The flags of ``explain``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Final

from karmada_advisor.cli.flags import shared

_REMEDY_SECONDS: Final = 2.0
_WATCH_SECONDS: Final = 600.0


def explain_parser() -> argparse.ArgumentParser:
    """Return the parser of explain's arguments."""
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
    add = partial(shared.add, parser)
    text = "namespace of the binding (default: that of the context, or default); without a name, all bindings in it"
    add("-n --namespace NAMESPACE", text)
    _add_scope(parser)
    shared.add_objects(parser, replays_rules=True)
    shared.add_quotas(parser)
    shared.add_rules(parser)
    effect = "; its profiles, plugins, arguments and feature gates are used"
    shared.add_process(parser, "for its record and its queue", effect)
    text = (
        "also write all that the answer is made of into a file, for --replay and for bug reports; with -A all that the commands "
        "read"
    )
    add("--capture FILE", text)
    parser.add_argument(
        "--no-remedies",
        dest="remedies",
        action="store_false",
        help="do not search for changes that place a binding which is not placed",
    )
    text = f"of that search (default {_REMEDY_SECONDS:g}s); why-not searches on"
    add("--timeout TIME", text, shared.seconds, default=_REMEDY_SECONDS)
    shared.add_output(parser, "markdown", "html", "name", "wide")
    add("-q --quiet", "only the answer, the steps, and what is wrong")
    text = f"print each change of the state until the binding is placed, for this time at most (default {_WATCH_SECONDS:g}s)"
    add("-w --watch TIME", text, shared.seconds, nargs="?", const=_WATCH_SECONDS)
    return parser


def _add_scope(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name many bindings."""
    group = parser.add_argument_group("all bindings by state and cause, instead of one binding")
    add = partial(shared.add, group)
    add("-A --all-namespaces", "of all namespaces, and those without one")
    add("--policy [NS/]NAME", "those that this policy claims, of all namespaces")
    add("-l --selector SELECTOR", "those of -n or -A with these labels: app=web,tier in (a,b),!canary")
    add("--on CLUSTER", "those that are on this cluster")
