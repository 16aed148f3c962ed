"""The flags of ``web``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Final

from karmada_advisor.cli.flags import shared, survive

_DEFAULT_ADDRESS: Final = "127.0.0.1:10354"
_REFRESH_SECONDS: Final = 10.0
_AUTH_CACHE_SECONDS: Final = 30.0
_SESSION_SECONDS: Final = 8 * 3600.0
DEFAULT_AUDIENCE: Final = "karmada-pyscheduler-web"
"""A token for it opens the page, and nothing else: the API server refuses it."""


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
        help=f"address and port (default {_DEFAULT_ADDRESS}); without --auth=token a loopback address, which kubectl port-forward reaches in a Pod",
    )
    parser.add_argument(
        "--health-probe-bind-address",
        type=_address,
        metavar="HOST:PORT",
        help="address and port of /healthz and /readyz, for kubelet, instead of those of the page",
    )
    parser.add_argument(
        "--metrics-bind-address",
        type=_address,
        metavar="HOST:PORT",
        help="address and port of /metrics, for Prometheus: anyone who reaches it is answered (default: that of the page, and none with --auth=token)",
    )
    parser.add_argument(
        "--auth",
        choices=("none", "token"),
        default="none",
        help="token: each request needs a bearer token, and shows what the Karmada API server lets its holder list: everything, or the bindings of a namespace; none (default): anyone who reaches the address sees everything",
    )
    shared.add_texts(
        parser,
        "--audience",
        "NAME",
        f"for which tokens are accepted (default {DEFAULT_AUDIENCE}); may be repeated",
    )
    parser.add_argument(
        "--auth-cache",
        type=_seconds_from(5, 60, "5s to 60s"),
        default=_AUTH_CACHE_SECONDS,
        metavar="TIME",
        help=f"how long a yes of the Karmada API server counts, 5s to 60s (default {_AUTH_CACHE_SECONDS:g}s)",
    )
    parser.add_argument(
        "--session-keys-file",
        type=Path,
        metavar="FILE",
        help="people sign in on the page with a token, which is sealed in a cookie: a key a line (openssl rand -base64 32 | tr +/ -_); the first one seals, all open",
    )
    parser.add_argument(
        "--session",
        type=_seconds_from(60, 86_400, "1m to 24h"),
        default=_SESSION_SECONDS,
        metavar="TIME",
        help=f"how long they are signed in at most, 1m to 24h (default {_SESSION_SECONDS / 3600:g}h)",
    )
    parser.add_argument("--tls-cert-file", type=Path, metavar="FILE", help="certificate chain of the page")
    parser.add_argument("--tls-key-file", type=Path, metavar="FILE", help="key of the certificate")
    parser.add_argument(
        "--behind-proxy",
        action="store_true",
        help="TLS ends before the page, so an address that is no loopback address needs no certificate",
    )
    parser.add_argument(
        "--audit-log",
        metavar="FILE",
        help="one line of JSON for each request: who has read what, and the status; - for standard output",
    )
    shared.add_texts(
        parser,
        "--allowed-host",
        "NAME",
        "a name in the Host header besides those of this machine; may be repeated",
    )
    parser.add_argument(
        "--refresh",
        type=_seconds_from(1, 3600, "1s to 60m"),
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
    _add_records(parser)
    return parser


def _add_records(parser: argparse.ArgumentParser) -> None:
    shared.add_texts(
        parser,
        "--records",
        "URL",
        "https://NAME:PORT of the scheduler's records: a headless Service, behind which the page finds the replica that leads; may be repeated",
    )
    parser.add_argument(
        "--records-lease",
        type=_namespaced,
        metavar="NAMESPACE/NAME",
        help="the Lease of that scheduler, which the page gets",
    )
    parser.add_argument(
        "--records-account",
        type=_namespaced,
        metavar="NAMESPACE/NAME",
        help="the ServiceAccount of the Karmada API server that may read the records; the page creates tokens of it",
    )
    parser.add_argument(
        "--records-ca-file",
        type=Path,
        metavar="FILE",
        help="authorities of the certificate of the records (default: those of the system)",
    )


def _namespaced(text: str) -> tuple[str, str]:
    namespace, _, name = text.partition("/")
    if not namespace or not name or "/" in name:
        raise argparse.ArgumentTypeError(f"expected NAMESPACE/NAME, got {text!r}")
    return namespace, name


def _address(text: str) -> str:
    from karmada_scheduler.config import validation  # not for --help

    try:
        found = validation.address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if not found:
        raise argparse.ArgumentTypeError(f"expected an address such as {_DEFAULT_ADDRESS}, got {text!r}")
    return found


def _seconds_from(least: float, most: float, bounds: str) -> Callable[[str], float]:
    """Return what reads a time in seconds; ``bounds`` are its bounds as the user writes them."""

    def read(text: str) -> float:
        found = shared.seconds(text)
        if not least <= found <= most:
            raise argparse.ArgumentTypeError(f"expected {bounds}, got {text!r}")
        return found

    return read
