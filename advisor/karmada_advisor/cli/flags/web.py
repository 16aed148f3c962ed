"""The flags of ``web``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Final

from karmada_advisor.cli.flags import shared, what_if

_DEFAULT_ADDRESS: Final = "127.0.0.1:10354"
DEFAULT_AUDIENCE: Final = "karmada-pyscheduler-web"
"""A token for it opens the page, and nothing else: the API server refuses it."""


def web_parser() -> argparse.ArgumentParser:
    """Return the parser of web's arguments."""
    parser = shared.make_parser(
        "web",
        "Serve a page on this machine that shows what 'explain' and 'why-not' print. Nothing is written.",
        "It runs until Ctrl-C. Exit status: 0 it was ended, 1 its server has failed, 2 it could not be started.",
    )
    add = partial(shared.add, parser)
    text = f"address and port (default {_DEFAULT_ADDRESS}); without --auth=token a loopback address, which kubectl port-forward reaches in a Pod"
    add(f"--bind-address HOST:PORT = {_DEFAULT_ADDRESS}", text, type=_address)
    text = "address and port of /healthz and /readyz, for kubelet, instead of those of the page"
    add("--health-probe-bind-address HOST:PORT", text, type=_address)
    text = "address and port of /metrics, for Prometheus: anyone who reaches it is answered (default: that of the page, and none with --auth=token)"
    add("--metrics-bind-address HOST:PORT", text, type=_address)
    text = "token: each request needs a bearer token, and shows what the Karmada API server lets its holder list: everything, or the bindings of a namespace (--reveal); none (default): anyone who reaches the address sees everything"
    add("--auth none|token", text)
    text = "with --auth=token, what answers to those who may not list everything are computed from, besides the bindings that they may list: own (default): the clusters, policies and Leases that they may list as well; fleet: all of these, and records"
    add("--reveal own|fleet", text)
    add("--audience NAME...", f"for which tokens are accepted (default {DEFAULT_AUDIENCE}); may be repeated")
    text = "how long a yes of the Karmada API server counts, 5s to 60s"
    add("--auth-cache TIME = 30s", text, type=_seconds_from(5, 60, "5s to 60s"))
    text = "people sign in on the page with a token, which is sealed in a cookie: a key a line (openssl rand -base64 32 | tr +/ -_); the first one seals, all open"
    add("--session-keys-file FILE", text, type=Path)
    text = "how long they are signed in at most, 1m to 24h (default 8h)"
    add("--session TIME = 8h", text, type=_seconds_from(60, 86_400, "1m to 24h"))
    add("--tls-cert-file FILE", "certificate chain of the page", type=Path)
    add("--tls-key-file FILE", "key of the certificate", type=Path)
    text = "address or network of a proxy that ends TLS, so the page needs no certificate; the last entry of its X-Forwarded-For says who asks, and that of nobody else; may be repeated"
    add("--behind-proxy NETWORK...", text, type=_network)
    text = "one line of JSON for each request: who has read what, and the status; - for standard output"
    add("--audit-log FILE", text, default=None)
    text = "a name in the Host header besides those of this machine; may be repeated"
    add("--allowed-host NAME...", text)
    text = "how often files, and decisions about a control plane, follow changes while somebody looks at the page"
    add("--refresh TIME = 10s", text, type=_seconds_from(1, 3600, "1s to 60m"))
    add("--timeout TIME", "of a search for changes (default 2s)")
    shared.add_objects(parser)
    what_if.add_reactions(parser)
    shared.add_rules(parser)
    shared.add_process(parser, "for its records and its queue", "; its feature gates are used")
    text = "https://NAME:PORT of the scheduler's records: a headless Service, behind which the page finds the replica that leads; may be repeated"
    add("--records URL...", text)
    add(
        "--records-lease NAMESPACE/NAME", "the Lease of that scheduler, which the page gets", type=_namespaced
    )
    text = "the ServiceAccount of the Karmada API server that may read the records; the page creates tokens of it"
    add("--records-account NAMESPACE/NAME", text, type=_namespaced)
    text = "authorities of the certificate of the records (default: those of the system)"
    add("--records-ca-file FILE", text, type=Path)
    return parser


def _namespaced(text: str) -> tuple[str, str]:
    namespace, _, name = text.partition("/")
    if not namespace or not name or "/" in name:
        raise argparse.ArgumentTypeError(f"expected NAMESPACE/NAME, got {text!r}")
    return namespace, name


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


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
