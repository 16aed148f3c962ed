"""Flags that several commands have: objects, the rules of decisions, output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

DEFAULT_WIDTH: Final = 100
LEAST_WIDTH: Final = 40
FILES: Final = "YAML or JSON as kubectl writes it, also gzipped, - for standard input; may be repeated"
_DEFAULT_TIMES: Final = ("2s", "60s")
"""Defaults are read before a mistake in the flags is reported, for which the standard library suffices."""
DECISIONS_OF: Final = ("1.18", "1.19", "1.17")
"""The keys of ``config.features.RULES``, the default first."""


def program() -> str:
    """Return what the user has called: kubectl runs ``kubectl-pyscheduler`` for ``kubectl pyscheduler``."""
    is_plugin = Path(sys.argv[0]).name.startswith("kubectl-pyscheduler")
    return "kubectl pyscheduler" if is_plugin else "karmada-pyscheduler"


Flags = argparse.ArgumentParser | argparse._ArgumentGroup  # noqa: SLF001 (groups have no public name)


def make_parser(command: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """Return the parser of a command's flags, still without any."""
    return argparse.ArgumentParser(prog=f"{program()} {command}", description=description, epilog=epilog)


def add(parser: Flags, usage: str, text: str, **more: Any) -> None:
    """Add a flag.

    Args:
        parser: The parser, or a group of it.
        usage: As people read it: ``-q --quiet`` is a switch, ``--top N`` takes a value, ``--top N = 10`` has a default, ``--wait [TIME = 5m]``
            may be without its value, ``--run REGEX...`` may be repeated, and ``--loss gone|itself`` takes one of these values, the
            first without the flag.
        text: What it is for; a default is added, unless the text names one.
        more: Further arguments of ``add_argument``. Without a ``type``, the name of the value says how it is read; a text is
            taken as it is, "" without the flag.
    """
    names = [word for word in usage.split() if word.startswith("-")]
    written = usage.removeprefix(" ".join(names)).strip()
    may_lack = written.startswith("[") and written.endswith("]")
    value, _, default = (written[1:-1] if may_lack else written).partition(" = ")
    metavar = value.removesuffix("...")
    found: dict[str, Any] = {"metavar": metavar, "type": _READERS.get(metavar), "default": default or None}
    if not value:
        found = {"action": "store_true"}
    elif value.islower():
        choices = tuple(value.split("|"))
        found = {"choices": choices, "default": default or choices[0]}
    elif may_lack:
        found |= {"nargs": "?", "const": default, "default": None}
    elif metavar != value:
        found |= {"action": "append", "default": []}
    elif more.get("type", found["type"]) is None:
        found["default"] = default
    found |= more
    if value and found.get("default") and "default" not in text:
        text += f" (default {found['default']})"
    parser.add_argument(*names, help=text, **found)


def add_all(parser: Flags, flags: Mapping[str, str], **more: Any) -> None:
    """Add several flags: the text of each by its usage, as in ``add``, whose further arguments are those of all."""
    for usage, text in flags.items():
        add(parser, usage, text, **more)


def add_expected_fleet(parser: argparse.ArgumentParser, document: str) -> None:
    """Add the flag that refuses another fleet than that of an earlier document."""
    add(parser, "--expect FLEET", f"exit with 2 if the fleet is not that of an earlier {document}")


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


WORKLOADS: Final = {
    "--workloads FILE...": f"objects of any kind, for plugins that read the workload's labels and annotations: {FILES}",
}
QUOTAS: Final = {
    "--quotas FILE...": f"FederatedResourceQuotas, for changes of a workload that a quota refuses: {FILES}",
}
DECIDED: Final = {
    "--clusters FILE...": f"Clusters: {FILES}",
    "--bindings FILE...": f"bindings of both kinds: {FILES}",
}
_OBJECTS: Final = {
    **DECIDED,
    "--policies FILE...": f"policies, for what they say beyond the binding: {FILES}",
    **WORKLOADS,
}


def add_objects(
    parser: argparse.ArgumentParser, *, cluster_flag: str = "--cluster", replays_rules: bool = False
) -> None:
    """Add the flags for files and for a control plane.

    Args:
        parser: Of a command.
        cluster_flag: The name of kubectl's ``--cluster``, where a command has another flag of this name.
        replays_rules: Whether the command decides by the rules of a capture, too.
    """
    add_all(parser, _OBJECTS)
    add_control_plane(parser, cluster_flag=cluster_flag)
    add(parser, "--request-timeout TIME = 60s", "for reading everything from the control plane")
    rules = "its objects, and its rules unless flags name others" if replays_rules else "its objects only"
    add(parser, "--replay FILE", f"a file of explain --capture instead of a control plane: {rules}")


def add_control_plane(parser: argparse.ArgumentParser, *, cluster_flag: str = "--cluster") -> None:
    """Add the flags that name a control plane; ``cluster_flag`` as in ``add_objects``."""
    text = "the control plane to read, without --clusters and --bindings (default as kubectl)"
    add(parser, "--kubeconfig FILE", text)
    add(parser, "--context CONTEXT", "the context of the kubeconfig to use")
    text = "the cluster of the kubeconfig to use, instead of the context's"
    add(parser, f"{cluster_flag} CLUSTER", text, dest="kubeconfig_cluster")
    add(parser, "--user USER", "the user of the kubeconfig to use, instead of the context's")


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the scheduler that determine its decisions."""
    add_scheduler_manifest(parser, "its gates, plugins and name are used")
    add(parser, "--plugins LIST...", "plugins to enable: *, *,-Name, Name,Other (default *)", default=None)
    add(parser, "--config FILE", "profiles and plugin args; no extenders", type=Path)
    text = "as for the scheduler; with it or --config, bindings of other schedulers are reported and not decided (default: without --config all bindings are decided)"
    add(parser, "--scheduler-name NAME", text, default=None)
    add_plugin_directories(parser)
    add(parser, "--feature-gates LIST...", "gates, as A=true,B=false")
    add_decisions_of(parser, "--decisions-of")
    parser.add_argument(
        "--enable-empty-workload-propagation",
        nargs="?",
        const="true",
        default="false",
        choices=("true", "false"),
        help="keep selected clusters with 0 replicas in the result",
    )


def add_scheduler_manifest(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add the flag for the Deployment of a scheduler; the text says what for."""
    how = "kubectl --context HOST -n karmada-system get deployment karmada-scheduler -o yaml"
    add(parser, "--scheduler-manifest FILE", f"the Deployment of the running scheduler: {purpose} ({how})")


def add_decisions_of(parser: Flags, flag: str) -> None:
    """Add a flag with a version of karmada-scheduler, None by default."""
    text = f"the version of karmada-scheduler whose decisions are made (default {DECISIONS_OF[0]})"
    parser.add_argument(flag, choices=DECISIONS_OF, help=text)


def add_plugin_directories(parser: argparse.ArgumentParser) -> None:
    """Add the flag for directories of plugin files."""
    add(parser, "--plugin-dir DIR...", "directory of plugin files; may be repeated")


_FILES_OF_PROCESS: Final = {
    "--from-token-file FILE": "for --from with https: a token of the Karmada API server for the audience karmada-pyscheduler-records, as kubectl create token makes one",
    "--from-ca-file FILE": "for --from with https: the certificates of the authority (default: those of the system)",
}


def add_process(parser: argparse.ArgumentParser, purpose: str, effect: str = "") -> None:
    """Add the flags for a running scheduler; the texts say what for, and what follows."""
    text = f"the running scheduler, {purpose}: http://localhost:10353 after kubectl port-forward (it needs --explain-bind-address)"
    add(parser, "--from URL", f"{text}{effect}", dest="process")
    add_all(parser, _FILES_OF_PROCESS, type=Path)
    text = "the name in the certificate, if it is not the host of the URL, as after kubectl port-forward"
    add(parser, "--from-server-name NAME", f"for --from with https: {text}")


_LAYOUT: Final = {
    "--color always|auto|never = auto": "colours; they only repeat what words say (default auto: on a terminal without NO_COLOR, and with FORCE_COLOR)",
    "--all": "do not fold long lists",
}


def add_output(parser: argparse.ArgumentParser, *documents: str) -> None:
    """Add the flags for the output; ``documents`` are further formats."""
    formats = "|".join(("json", "text", "yaml", *documents))
    add(parser, f"-o --output {formats} = text", "what to print")
    text = f"columns of the text (default: the terminal, or {DEFAULT_WIDTH})"
    add(parser, "--width N", text, type=_width)
    add_all(parser, _LAYOUT)


def _width(text: str) -> int:
    """Return the number of columns of a text."""
    columns = int(text)
    if columns < LEAST_WIDTH:
        raise argparse.ArgumentTypeError(f"at least {LEAST_WIDTH} columns are needed, got {columns}")
    return columns


def positive(text: str) -> int:
    """Return a number from 1 with at most 31 bits, written with digits only."""
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 2**31):
        raise argparse.ArgumentTypeError(f"expected a number from 1 to {2**31 - 1}, got {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """Return a time such as ``2s`` or ``500ms`` in seconds."""
    if text in _DEFAULT_TIMES:
        return float(text[:-1])
    from karmada_scheduler.api.manifest import duration_seconds  # --help needs the standard library only

    with suppress(ValueError):
        if (found := duration_seconds(text if text[-1:].isalpha() else f"{text}s")) > 0:
            return found
    raise argparse.ArgumentTypeError(f"expected a time such as 2s or 500ms, got {text!r}")


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {"N": positive, "TIME": seconds, "DIR": Path}
"""What reads a value, by its name."""
