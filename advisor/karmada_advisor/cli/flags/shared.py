"""Flags that several commands have: objects, the rules of decisions, output."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

DEFAULT_WIDTH: Final = 100
LEAST_WIDTH: Final = 40
FILES: Final = "YAML or JSON as kubectl writes it, also gzipped, - for standard input; may be repeated"
_REQUEST_SECONDS: Final = 60.0
DECISIONS_OF: Final = ("1.18", "1.17")
"""The keys of ``config.decision_rules.RULES``, the default first."""


def program() -> str:
    """Return what the user has called: kubectl runs ``kubectl-pyscheduler`` for ``kubectl pyscheduler``."""
    is_plugin = Path(sys.argv[0]).name.startswith("kubectl-pyscheduler")
    return "kubectl pyscheduler" if is_plugin else "karmada-pyscheduler"


Flags = argparse.ArgumentParser | argparse._ArgumentGroup  # noqa: SLF001 (groups have no public name)


def make_parser(command: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """Return the parser of a command's flags, still without any."""
    return argparse.ArgumentParser(prog=f"{program()} {command}", description=description, epilog=epilog)


def add_text(parser: Flags, flag: str, metavar: str, text: str) -> None:
    """Add a flag with a text, "" by default."""
    parser.add_argument(flag, default="", metavar=metavar, help=text)


def add_texts(parser: Flags, flag: str, metavar: str, text: str, *short: str) -> None:
    """Add a flag that may be repeated; its texts are a list."""
    parser.add_argument(*short, flag, action="append", default=[], metavar=metavar, help=text)


def add_expected_fleet(parser: argparse.ArgumentParser, document: str) -> None:
    """Add the flag that refuses another fleet than that of an earlier document."""
    add_text(parser, "--expect", "FLEET", f"exit with 2 if the fleet is not that of an earlier {document}")


def add_fleet(parser: argparse.ArgumentParser, document: str) -> None:
    """Add the flags of a command about a whole fleet: its objects, and the rules of its scheduler.

    Args:
        parser: The parser.
        document: What the command prints.
    """
    add_expected_fleet(parser, document)
    add_objects(parser)
    add_rules(parser)
    add_process(parser, "whose rules are used")


def add_objects(
    parser: argparse.ArgumentParser, *, cluster_flag: str = "--cluster", replays_rules: bool = False
) -> None:
    """Add the flags for files and for a control plane.

    Args:
        parser: Of a command.
        cluster_flag: The name of kubectl's ``--cluster``, where a command has another flag of this name.
        replays_rules: Whether the command decides by the rules of a capture, too.
    """
    for flag, what in (
        ("--clusters", "Clusters"),
        ("--bindings", "bindings of both kinds"),
        ("--policies", "policies, for what they say beyond the binding"),
    ):
        add_texts(parser, flag, "FILE", f"{what}: {FILES}")
    add_workloads(parser)
    add_control_plane(parser, cluster_flag=cluster_flag)
    parser.add_argument(
        "--request-timeout",
        type=seconds,
        default=_REQUEST_SECONDS,
        metavar="TIME",
        help=f"for reading everything from the control plane (default {_REQUEST_SECONDS:g}s)",
    )
    of_capture = (
        "its objects, and its rules unless flags name others" if replays_rules else "its objects only"
    )
    add_text(
        parser, "--replay", "FILE", f"a file of explain --capture instead of a control plane: {of_capture}"
    )


def add_control_plane(parser: argparse.ArgumentParser, *, cluster_flag: str = "--cluster") -> None:
    """Add the flags that name a control plane; ``cluster_flag`` as in ``add_objects``."""
    add_text(
        parser,
        "--kubeconfig",
        "FILE",
        "the control plane to read, without --clusters and --bindings (default as kubectl)",
    )
    parser.add_argument("--context", default="", help="the context of the kubeconfig to use")
    parser.add_argument(
        cluster_flag,
        dest="kubeconfig_cluster",
        default="",
        metavar="CLUSTER",
        help="the cluster of the kubeconfig to use, instead of the context's",
    )
    parser.add_argument(
        "--user", default="", help="the user of the kubeconfig to use, instead of the context's"
    )


def add_workloads(parser: argparse.ArgumentParser) -> None:
    """Add the flag for files of workloads."""
    what = "objects of any kind, for plugins that read the workload's labels and annotations"
    add_texts(parser, "--workloads", "FILE", f"{what}: {FILES}")


def add_quotas(parser: argparse.ArgumentParser) -> None:
    """Add the flag for files of quotas."""
    add_texts(
        parser,
        "--quotas",
        "FILE",
        f"FederatedResourceQuotas, for changes of a workload that a quota refuses: {FILES}",
    )


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the scheduler that determine its decisions, and what ``sources.process_rules.use`` sets."""
    parser.set_defaults(process_configuration=None, process_rules=None)
    add_text(
        parser,
        "--scheduler-manifest",
        "FILE",
        "the Deployment of the running scheduler: its gates, plugins and name are used (kubectl --context HOST -n "
        "karmada-system get deployment karmada-scheduler -o yaml)",
    )
    parser.add_argument(
        "--plugins",
        action="append",
        metavar="LIST",
        help="plugins to enable: *, *,-Name, Name,Other (default *)",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="profiles and plugin args; no extenders")
    parser.add_argument(
        "--scheduler-name",
        metavar="NAME",
        help="as for the scheduler; with it or --config, bindings of other schedulers are reported and not decided "
        "(default: without --config all bindings are decided)",
    )
    add_plugin_directories(parser)
    add_texts(parser, "--feature-gates", "LIST", "gates, as A=true,B=false")
    add_decisions_of(parser, "--decisions-of")
    parser.add_argument(
        "--enable-empty-workload-propagation",
        nargs="?",
        const="true",
        default="false",
        choices=("true", "false"),
        help="keep selected clusters with 0 replicas in the result",
    )


def add_decisions_of(parser: Flags, flag: str) -> None:
    """Add a flag with a version of karmada-scheduler, None by default."""
    parser.add_argument(
        flag,
        choices=DECISIONS_OF,
        help=f"the version of karmada-scheduler whose decisions are made (default {DECISIONS_OF[0]})",
    )


def add_plugin_directories(parser: argparse.ArgumentParser) -> None:
    """Add the flag for directories of plugin files."""
    parser.add_argument(
        "--plugin-dir",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="directory of plugin files; may be repeated",
    )


def add_process(parser: argparse.ArgumentParser, purpose: str, effect: str = "") -> None:
    """Add the flags for a running scheduler; the texts say what for, and what follows."""
    parser.add_argument(
        "--from",
        dest="process",
        default="",
        metavar="URL",
        help=f"the running scheduler, {purpose}: http://localhost:10353 after kubectl port-forward (it needs "
        f"--explain-bind-address){effect}",
    )
    parser.add_argument(
        "--from-token-file",
        type=Path,
        metavar="FILE",
        help="for --from with https: a token of the Karmada API server for the audience karmada-pyscheduler-records, as kubectl create token makes one",
    )
    parser.add_argument(
        "--from-ca-file",
        type=Path,
        metavar="FILE",
        help="for --from with https: the certificates of the authority (default: those of the system)",
    )
    parser.add_argument(
        "--from-server-name",
        default="",
        metavar="NAME",
        help="for --from with https: the name in the certificate, if it is not the host of the URL, as after kubectl port-forward",
    )


def add_output(parser: argparse.ArgumentParser, *documents: str) -> None:
    """Add the flags for the output; ``documents`` are further formats."""
    parser.add_argument(
        "-o",
        "--output",
        choices=("json", "text", "yaml", *documents),
        default="text",
        help="what to print (default text)",
    )
    parser.add_argument(
        "--width",
        type=_width,
        metavar="N",
        help=f"columns of the text (default: the terminal, or {DEFAULT_WIDTH})",
    )
    parser.add_argument(
        "--color",
        choices=("always", "auto", "never"),
        default="auto",
        help="colours; they only repeat what words say (default auto: on a terminal without NO_COLOR, and with FORCE_COLOR)",
    )
    parser.add_argument("--all", action="store_true", help="do not fold long lists")


def _width(text: str) -> int:
    """Return the number of columns of a text."""
    columns = int(text)
    if columns < LEAST_WIDTH:
        raise argparse.ArgumentTypeError(f"at least {LEAST_WIDTH} columns are needed, got {columns}")
    return columns


def positive(text: str) -> int:
    """Return a number from 1 with at most 31 bits, written with digits only."""
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 2**31):
        raise argparse.ArgumentTypeError(f"expected a number from 1, got {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """Return a time such as ``2s`` or ``500ms`` in seconds."""
    for suffix, factor in (("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("", 1.0)):
        if text.endswith(suffix):
            try:
                found = float(text.removesuffix(suffix)) * factor
            except ValueError:
                break
            if 0 < found < float("inf"):
                return found
    raise argparse.ArgumentTypeError(f"expected a time such as 2s or 500ms, got {text!r}")
