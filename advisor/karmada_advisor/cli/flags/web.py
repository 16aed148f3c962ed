"""The flags of ``web``."""

from __future__ import annotations

import argparse
from typing import Final

from karmada_advisor.cli.flags import shared, survive

_DEFAULT_ADDRESS: Final = "127.0.0.1:10354"
_REFRESH_SECONDS: Final = 10.0


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
    parser = shared.make_parser(
        "web",
        "Serve a page on this machine that shows what 'explain' and 'why-not' print. Nothing is written.",
        "It runs until Ctrl-C. Exit status: 0 it was ended, 1 its server has failed, 2 it could not be started.",
    )
    parser.add_argument(
        "--bind-address",
        type=_address,
        default=_DEFAULT_ADDRESS,
        metavar="HOST:PORT",
        help=f"loopback address and port (default {_DEFAULT_ADDRESS}); kubectl port-forward reaches it in a Pod",
    )
    shared.add_texts(
        parser,
        "--allowed-host",
        "NAME",
        "a name in the Host header besides those of this machine; may be repeated",
    )
    parser.add_argument(
        "--refresh",
        type=_refresh_seconds,
        default=_REFRESH_SECONDS,
        metavar="TIME",
        help=f"how often files, and decisions about a control plane, follow changes while somebody looks at the page (default {_REFRESH_SECONDS:g}s)",
    )
    parser.add_argument(
        "--timeout", type=shared.seconds, metavar="TIME", help="of a search for changes (default 2s)"
    )
    shared.add_objects(parser)
    survive.add_reactions(parser)
    shared.add_rules(parser)
    shared.add_process(parser, "for its records and its queue", "; its feature gates are used")
    return parser


def _address(text: str) -> str:
    from karmada_scheduler.config import validation  # not for --help

    try:
        found = validation.loopback_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if not found:
        raise argparse.ArgumentTypeError(f"expected an address such as {_DEFAULT_ADDRESS}, got {text!r}")
    return found


def _refresh_seconds(text: str) -> float:
    """Return the time between two readings in seconds, from 1 second to an hour."""
    found = shared.seconds(text)
    if not 1 <= found <= 3600:
        raise argparse.ArgumentTypeError(f"expected 1s to 60m, got {text!r}")
    return found
