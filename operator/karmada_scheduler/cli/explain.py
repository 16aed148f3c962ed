"""``karmada-pyscheduler explain``: why a binding is where it is, or nowhere.

Reads the objects of a control plane, or files as ``simulate`` reads them, and decides again by the same rules. Nothing is
written.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from typing import Any, Final

from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.cli.sources import objects as objects_source
from karmada_scheduler.cli.sources import rules
from karmada_scheduler.cli.sources.bindings import possible_keys
from karmada_scheduler.cli.sources.inputs import explain_inputs
from karmada_scheduler.cli.sources.objects import NoAnswerError, Objects, gather
from karmada_scheduler.cli.sources.process import gates_of, read_configuration, read_process
from karmada_scheduler.config import features
from karmada_scheduler.explain.explain import explain
from karmada_scheduler.explain.model import Explanation
from karmada_scheduler.explain.policies import Template
from karmada_scheduler.explain.unclaimed import explain_unclaimed
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.views.fields import as_json, as_yaml, explanation_fields
from karmada_scheduler.views.layout import Style
from karmada_scheduler.views.text import explanation_text

GOOD: Final = 0
NOT_GOOD: Final = 1
NO_ANSWER: Final = 2

_DEFAULT_WIDTH: Final = 100
_LEAST_WIDTH: Final = 40


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "explain",
        help="why a binding is where it is, or nowhere",
        description="Explain the placement of a binding: the answer, the step that decided it, and the evidence. "
        "(karmadactl explain is another command: it documents the fields of an object.)",
        epilog="Exit status: 0 it is placed, or has nothing to place; 1 it is not placed; 2 there is no answer "
        "(bad input, unknown binding, forbidden).",
    )
    parser.add_argument(
        "name",
        metavar="[KIND/]NAME",
        help="the binding (rb/NAME, crb/NAME), or the workload that it propagates (deployment/NAME)",
    )
    parser.add_argument(
        "-n", "--namespace", default="default", help="namespace of the binding (default default)"
    )
    objects_source.add_arguments(parser)
    rules.add_arguments(parser)
    parser.add_argument(
        "--from",
        dest="process",
        default="",
        metavar="URL",
        help="the running scheduler, for its record and its queue: http://localhost:10353 after kubectl port-forward "
        "(it needs --explain-bind-address); its feature gates are used",
    )
    add_output_arguments(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="only the answer and the steps")


def add_output_arguments(
    parser: argparse.ArgumentParser, *, formats: Sequence[str] = ("json", "text", "yaml")
) -> None:
    """Add the flags for the output."""
    parser.add_argument(
        "-o",
        "--output",
        choices=formats,
        default="text",
        help="what to print (default text)",
    )
    parser.add_argument(
        "--width",
        type=_width,
        metavar="N",
        help=f"columns of the text (default: the terminal, or {_DEFAULT_WIDTH})",
    )
    parser.add_argument(
        "--color",
        choices=("always", "auto", "never"),
        default="auto",
        help="colours; they only repeat what words say (default auto, and never with NO_COLOR)",
    )
    parser.add_argument("--all", action="store_true", help="do not fold long lists")


def _width(written: str) -> int:
    width = int(written)
    if width < _LEAST_WIDTH:
        raise argparse.ArgumentTypeError(f"at least {_LEAST_WIDTH} columns are needed, got {width}")
    return width


def style_of(arguments: argparse.Namespace) -> Style:
    """Return how to write text, from the flags and the terminal."""
    terminal = sys.stdout.isatty()
    colour = arguments.color == "always" or (
        arguments.color == "auto" and terminal and not os.environ.get("NO_COLOR")
    )
    width = arguments.width
    if width is None:
        width = shutil.get_terminal_size((_DEFAULT_WIDTH, 24)).columns if terminal else _DEFAULT_WIDTH
    return Style(max(_LEAST_WIDTH, width), colour, arguments.all)


def run(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> int:
    """Run the command; return its exit status.

    Args:
        arguments: As parsed.
        own: The plugins of a main program of the user's own.
    """
    try:
        with redirect_stdout(sys.stderr):  # keeps the output of plugins out of the result
            explanation, problems = _explanation(arguments, own)
    except NoAnswerError as error:
        for line in str(error).splitlines():
            _print_error(f"Error: {line}")
        return NO_ANSWER
    sys.stdout.write(_written(explanation, arguments))
    sys.stdout.flush()
    if problems:
        return NO_ANSWER
    return GOOD if explanation.is_good else NOT_GOOD


def _explanation(
    arguments: argparse.Namespace, own: Sequence[Registration]
) -> tuple[Explanation, Sequence[str]]:
    names: frozenset[str] = frozenset()
    if arguments.process:
        configuration = read_configuration(arguments.process)
        arguments.feature_gates = gates_of(arguments.process, configuration.gates, arguments.feature_gates)
        if not arguments.scheduler_name and not arguments.config:
            names = configuration.scheduler_names
    keys = possible_keys(arguments.name, arguments.namespace)
    objects = gather(arguments, keys, all_bindings=_reads_peers(arguments.feature_gates))
    for problem in (*objects.problems, *objects.warnings):
        _print_error(problem)
    if (unclaimed := _unclaimed(arguments, objects, keys)) is not None:
        return unclaimed, objects.problems
    with explain_inputs(arguments, objects, own) as inputs_of, _without_collection():
        inputs = inputs_of(objects.find(keys))
        if arguments.process:
            view = read_process(arguments.process, inputs.binding.key)
            inputs = replace(inputs, process=view, scheduler_names=names or inputs.scheduler_names)
        return explain(inputs, source=objects.source), objects.problems


def _reads_peers(gates: Sequence[str]) -> bool:
    """Return whether decisions read other bindings: those of the same workload groups."""
    try:
        return features.parse(gates).enabled("WorkloadAffinity")
    except ValueError:
        return False  # reported where the gates are used


def _unclaimed(
    arguments: argparse.Namespace, objects: Objects, keys: Sequence[BindingKey]
) -> Explanation | None:
    """Return why a workload of the files has no binding; None if it has one, or is not in the files."""
    found = objects.find_template(arguments.name, arguments.namespace)
    if found is None or any(each.key in keys for each in objects.bindings):
        return None
    template = Template(found.api_version, found.kind, found.namespace, found.name, found.labels)
    return explain_unclaimed(template, objects.policies or (), source=objects.source)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Do not collect garbage: the objects of a large fleet would be traversed again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _written(explanation: Explanation, arguments: argparse.Namespace) -> str:
    match arguments.output:
        case "json":
            return as_json(explanation_fields(explanation))
        case "yaml":
            return as_yaml(explanation_fields(explanation))
    return explanation_text(explanation, style_of(arguments), quiet=arguments.quiet)


def _print_error(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201 (a command, not a server)
