"""``karmada-pyscheduler completion``: the script of a shell, which calls ``__complete`` for each line, and the choices for a line.

Choices are printed one in a line, then how the shell goes on: ``:4`` if nothing but the choices may follow, and ``:0`` if
file names may.

Source: github.com/spf13/cobra v1.10 completions.go ShellCompDirective; kubectl v1.35 pkg/cmd/plugin/plugin_completion.go.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from karmada_advisor.cli.commands import COMMANDS, parser_of
from karmada_advisor.cli.flags import shared

if TYPE_CHECKING:
    from karmada_scheduler.framework.profile.factory import Registration

_NO_FILES: Final = ":4"
_FILES: Final = ":0"
_LIST_SECONDS: Final = 1.0
_OF_FILES: Final = frozenset({"FILE", "DIR"})
_OF_CONTROL_PLANE: Final = {"namespace": "namespaces", "namespaces": "namespaces", "name": "bindings"}
_OF_KUBECONFIG: Final = {"context": "contexts", "kubeconfig_cluster": "clusters", "user": "users"}


def run(arguments: argparse.Namespace, _: Sequence[Registration] = ()) -> int:
    """Print the script of a shell; return the exit status."""
    script = Path(__file__).parent / "completions" / f"completion.{arguments.shell}"
    sys.stdout.write(script.read_text())
    return 0


def complete(words: Sequence[str]) -> int:
    """Print the choices for the last word, which may be empty; return 0: a shell has no use for errors.

    Args:
        words: The line so far without the name of the program; the first may be ``--``.
    """
    given = list(words[1:] if words[:1] == ["--"] else words) or [""]
    try:
        choices, directive = _completed(given)
        found = sorted({choice for choice in choices if choice.startswith(given[-1])})
    except Exception:  # noqa: BLE001 (a message would be shown in the middle of the line)
        found, directive = [], _NO_FILES
    sys.stdout.write("".join(f"{line}\n" for line in [*found, directive]))
    return 0


def _completed(words: Sequence[str]) -> tuple[Iterable[str], str]:
    *before, last = words
    if not before:
        return _commands(), _NO_FILES
    if before[0] not in COMMANDS:
        return (), _NO_FILES
    parser = parser_of(before[0])
    actions = parser._actions  # noqa: SLF001 (argparse has no public list of them)
    flags = {name: action for action in actions for name in action.option_strings}
    name, separator, _ = last.partition("=")
    if separator and name in flags:
        choices, directive = _values(flags[name], before, flags)
        return (f"{name}={choice}" for choice in choices), directive
    if last.startswith("-"):
        return _flags(actions), _NO_FILES
    previous = flags.get(before[-1])
    if previous is not None and previous.nargs != 0:
        return _values(previous, before[:-1], flags)
    positional = [action for action in actions if not action.option_strings]
    given = _positionals(before[1:], flags)
    index = len(given)
    if not positional:
        return (), _NO_FILES
    chosen = positional[min(index, len(positional) - 1)]
    if chosen.dest == "name" and chosen.nargs == "*" and index == 1:  # KIND NAME
        choices, directive = _values(chosen, before, flags, f"{given[0]}/")
        return (choice.removeprefix(f"{given[0]}/") for choice in choices), directive
    takes_more = chosen.choices or index < len(positional)
    return _values(chosen, before, flags, last) if takes_more else ((), _NO_FILES)


def _commands() -> Iterator[str]:
    for name in COMMANDS:
        yield f"{name}\t{_first_sentence(parser_of(name).description or '')}"


def _flags(actions: Iterable[argparse.Action]) -> Iterator[str]:
    for action in actions:
        for name in action.option_strings:
            yield f"{name}\t{_first_sentence(action.help or '')}" if name.startswith("--") else name


def _first_sentence(text: str) -> str:
    return " ".join(text.partition(". ")[0].partition(": ")[0].split())


def _positionals(words: Sequence[str], flags: Mapping[str, argparse.Action]) -> list[str]:
    """Return the words that are neither flags nor their values."""
    found, takes_value = [], False
    for word in words:
        if takes_value:
            takes_value = False
        elif word.startswith("-") and word != "-":
            action = flags.get(word)
            takes_value = action is not None and action.nargs is None and "=" not in word
        else:
            found.append(word)
    return found


def _values(
    action: argparse.Action, before: Sequence[str], flags: Mapping[str, argparse.Action], last: str = ""
) -> tuple[Iterable[str], str]:
    """Return the values of a flag or of a positional argument.

    Args:
        action: The flag or argument.
        before: The words before it, the command first.
        flags: Of the command.
        last: The beginning of the value of a positional argument.
    """
    if action.choices is not None:
        return map(str, action.choices), _NO_FILES
    metavar = str(action.metavar or "")
    if metavar in _OF_FILES:
        return (), _FILES
    # The line may be incomplete, so only the flags that name a control plane are read.
    known = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    own = [name for name, flag in flags.items() if flag.dest == "kubeconfig_cluster"]
    shared.add_control_plane(known, cluster_flag=own[0] if own else "--cluster")
    known.add_argument("-n", "--namespace", default="")
    known.set_defaults(request_timeout=_LIST_SECONDS)
    arguments, _ = known.parse_known_args(list(before[1:]))
    if action.dest in _OF_KUBECONFIG:
        return _of_kubeconfig(arguments.kubeconfig, _OF_KUBECONFIG[action.dest]), _NO_FILES
    kind = "clusters" if metavar == "CLUSTER" else _OF_CONTROL_PLANE.get(action.dest)
    return _names(arguments, kind, last) if kind else (), _NO_FILES


def _of_kubeconfig(path: str, kind: str) -> list[str]:
    from karmada_pyscheduler.client import kubeconfig_file

    paths = [path] if path else kubeconfig_file.default_paths()
    document = kubeconfig_file.merged(paths, lambda path: Path(path).read_bytes())
    return [entry["name"] for entry in document[kind]]


def _names(arguments: argparse.Namespace, what: str, last: str = "") -> Iterator[str]:
    """Yield names of a control plane: of clusters, of namespaces with bindings, or of bindings and their workloads.

    Workloads have the kind as ``last`` begins with it: ``deploy/``, ``deployments.apps/``, or ``shop/deploy/``.
    """
    from karmada_advisor.cli.questions import control_plane_of
    from karmada_advisor.fleet import live
    from karmada_advisor.fleet.named_binding import singular
    from karmada_pyscheduler.client.karmada import CLUSTER_RESOURCE_BINDINGS, CLUSTERS, RESOURCE_BINDINGS

    plane = control_plane_of(arguments)
    if what == "clusters":
        yield from live.read_names(plane, CLUSTERS).get("", ())
        return
    by_namespace = live.read_names(plane, RESOURCE_BINDINGS)
    if what == "namespaces":
        yield from by_namespace
        return
    begun, slash, _ = last.rpartition("/")
    namespace, _, typed = begun.rpartition("/")
    namespace = namespace or arguments.namespace or plane.default_namespace()
    names = by_namespace.get(namespace, [])
    if not slash:
        yield from names
    elif typed in {"rb", "crb"} or not any(name.endswith(f"-{singular(typed)}") for name in names):
        cluster_wide = live.read_names(plane, CLUSTER_RESOURCE_BINDINGS).get("", [])
        names = names if typed == "rb" else cluster_wide
        yield from (f"{typed}/{name}" for name in names if typed in {"rb", "crb"})
    for name in names:
        workload, _, kind = name.rpartition("-")
        if workload and (not slash or kind == singular(typed)):
            yield f"{begun if slash else kind}/{workload}"
